from minisgl.kvcache.radix_cache import RadixNode


def _split(self, node, at):
    key, value = node.key, node.value
    node.key, node.value = key[:at], value[:at]
    node.end -= len(key) - at
    lower = RadixNode(key[at:], value[at:], node)
    lower.locks, lower.used = node.locks, node.used
    lower.children = node.children
    for child in lower.children.values():
        child.parent = lower
    node.children = {self._first_page(lower.key): lower}
    self._node_count += 1
    return node
