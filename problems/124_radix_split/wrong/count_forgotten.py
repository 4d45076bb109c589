from minisgl.kvcache.radix_cache import RadixNode


def _split(self, node, at):
    parent = node.parent
    upper = RadixNode(node.key[:at], node.value[:at], parent)
    upper.locks = node.locks
    upper.used = node.used
    parent.children[self._first_page(node.key)] = upper
    node.key = node.key[at:]
    node.value = node.value[at:]
    node.parent = upper
    upper.children[self._first_page(node.key)] = node
    return upper
