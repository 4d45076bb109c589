from minisgl.kvcache.radix_cache import RadixNode


def _split(self, node, at):
    """Cut `node` (a RadixNode below the root) after `at` tokens, whole
    pages, 0 < at < len(node.key).

    Returns the node with the first part, whose child is the node with
    the rest.
    """
    raise NotImplementedError
