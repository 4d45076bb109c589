"""The prefix cache as a radix tree: a path from the root spells a token sequence, and knows where its KV is.

A node holds a stretch of tokens and their places in the pool. Two sequences share a path as far as they
agree, in whole pages, and part at a node's end; a node is split when a sequence parts inside of it.

    root --[7 8 9 4]--+--[1 2]          two prompts that begin with 7 8 9 4, page size 2
                      +--[5 5 6 6]

Requests lock the paths that they read. What nobody locks may be evicted, leaf by leaf, the least recently
used first; a node whose children are all gone becomes a leaf itself.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count

import torch

from minisgl.kernel import common_prefix_len
from minisgl.kvcache.base import BaseCacheHandle, BasePrefixCache, InsertResult, SizeInfo
from minisgl.utils.misc import align_down

_serial = count()


class RadixNode:
    """A stretch of tokens that follows its parent's.

    key: int32 [n] on the CPU, the tokens. value: int32 [n], their positions in the pool.
    end: tokens from the root to this node's last.
    locks: requests that read this node or one below it.
    used: when it was last locked or inserted, by the tree's own clock.

    Invariants
    - n is a positive multiple of the page size; only the root is empty;
    - no two children begin with the same page;
    - a parent's locks are at least the sum of its children's.
    """

    def __init__(self, key: torch.Tensor, value: torch.Tensor, parent: RadixNode | None) -> None:
        self.key = key
        self.value = value
        self.parent = parent
        self.children: dict[bytes, RadixNode] = {}
        self.end = len(key) + (parent.end if parent is not None else 0)
        self.locks = 0
        self.used = 0
        self.serial = next(_serial)

    @property
    def start(self) -> int:
        return self.end - len(self.key)

    def __lt__(self, other: RadixNode) -> bool:
        return self.serial < other.serial


@dataclass(frozen=True)
class RadixCacheHandle(BaseCacheHandle):
    """`node` is where the stretch ends, or has a part of it: its first cached_len tokens from the root."""

    node: RadixNode

    def matched_indices(self) -> torch.Tensor:
        parts = []
        node: RadixNode | None = self.node
        while node is not None and node.parent is not None:
            if node.start < self.cached_len:
                parts.append(node.value[: self.cached_len - node.start])
            node = node.parent
        return torch.cat(parts[::-1]) if parts else self.node.value[:0]


class RadixPrefixCache(BasePrefixCache):
    """Invariants
    - evictable + protected is the number of tokens in the tree; protected are those of nodes with locks;
    - the heap has an entry for every leaf that could be evicted; entries that are out of date are passed
      over;
    - time is counted, not measured: all processes of a group evict the same leaves.
    """

    def __init__(self, page_size: int = 1, device: torch.device | None = None) -> None:
        self._page_size = page_size
        self._root = RadixNode(
            torch.empty(0, dtype=torch.int32), torch.empty(0, dtype=torch.int32, device=device), None
        )
        self._evictable = 0
        self._protected = 0
        self._clock = 0
        self._heap: list[tuple[int, RadixNode]] = []
        self._node_count = 0

    # -- looking up ---------------------------------------------------------------------------------

    def match_prefix(self, input_ids: torch.Tensor) -> RadixCacheHandle:
        node, matched = self._walk(input_ids)
        return RadixCacheHandle(matched, node)

    def _walk(self, ids: torch.Tensor) -> tuple[RadixNode, int]:
        """The node in which the longest match ends, and its length in tokens, whole pages. Changes nothing."""
        node, matched = self._root, 0
        end = align_down(len(ids), self._page_size)
        while matched < end:
            child = node.children.get(self._first_page(ids[matched:]))
            if child is None:
                break
            node = child
            common = self._common_pages(child.key, ids[matched:end])
            matched += common
            if common < len(child.key):
                break
        return node, matched

    def _first_page(self, ids: torch.Tensor) -> bytes:
        return ids[: self._page_size].numpy().tobytes()

    def _common_pages(self, a: torch.Tensor, b: torch.Tensor) -> int:
        """Length of the common beginning, in tokens of whole pages."""
        return align_down(common_prefix_len(a, b), self._page_size)

    # -- locks --------------------------------------------------------------------------------------

    def lock(self, handle: BaseCacheHandle) -> None:
        node = self._end_node(handle)
        if node.end > handle.cached_len:
            # The match ended inside a node: from here on that place is a border.
            node = self._split(node, handle.cached_len - node.start)
        now = self._tick()
        while node is not self._root:
            if node.locks == 0:
                self._evictable -= len(node.key)
                self._protected += len(node.key)
            node.locks += 1
            node.used = now
            node = _parent(node)

    def unlock(self, handle: BaseCacheHandle) -> None:
        node = self._end_node(handle)
        if node.end != handle.cached_len or (node is not self._root and node.locks == 0):
            raise RuntimeError(f"a handle of {handle.cached_len} tokens is unlocked that was not locked")
        while node is not self._root:
            node.locks -= 1
            if node.locks == 0:
                self._evictable += len(node.key)
                self._protected -= len(node.key)
                self._offer(node)
            node = _parent(node)

    def _end_node(self, handle: BaseCacheHandle) -> RadixNode:
        """The node that holds the handle's last token; nodes may have been split since it was made."""
        assert isinstance(handle, RadixCacheHandle)
        node = handle.node
        while node is not self._root and node.start >= handle.cached_len:
            node = _parent(node)
        return node

    def _split(self, node: RadixNode, at: int) -> RadixNode:
        """Cut a node after `at` tokens. The beginning becomes a new node, which is returned; the rest stays
        the old one, so handles that end there stay true."""
        parent = _parent(node)
        upper = RadixNode(node.key[:at], node.value[:at], parent)
        upper.locks, upper.used = node.locks, node.used
        parent.children[self._first_page(node.key)] = upper
        node.key, node.value, node.parent = node.key[at:], node.value[at:], upper
        upper.children[self._first_page(node.key)] = node
        self._node_count += 1
        return upper

    # -- insertion and eviction ---------------------------------------------------------------------

    def insert_prefix(self, input_ids: torch.Tensor, indices: torch.Tensor) -> InsertResult:
        end = align_down(len(input_ids), self._page_size)
        node, matched = self._walk(input_ids[:end])
        if matched < node.end:
            node = self._split(node, matched - node.start)
        now = self._tick()
        if matched < end:
            # Copied: the indices are a row of the page table, the ids may be a view of a longer prompt.
            leaf = RadixNode(input_ids[matched:end].clone(), indices[matched:end].clone(), node)
            node.children[self._first_page(leaf.key)] = leaf
            self._evictable += len(leaf.key)
            self._node_count += 1
            node = leaf
        inserted = node
        while node is not self._root:
            node.used = now
            node = _parent(node)
        self._offer(inserted)
        return InsertResult(matched, RadixCacheHandle(end, inserted))

    def evict(self, size: int) -> torch.Tensor:
        if size > self._evictable:
            raise RuntimeError(f"{size} tokens are to be evicted, but only {self._evictable} are not locked")
        freed = [self._root.value]
        count = 0
        while count < size:
            used, node = heapq.heappop(self._heap)
            if not self._is_evictable(node) or node.used != used:
                continue
            parent = _parent(node)
            del parent.children[self._first_page(node.key)]
            freed.append(node.value)
            count += len(node.key)
            self._node_count -= 1
            node.locks = -1  # gone: entries of the heap that still name it are passed over
            self._offer(parent)
        self._evictable -= count
        return torch.cat(freed)

    def _is_evictable(self, node: RadixNode) -> bool:
        return node is not self._root and not node.children and node.locks == 0

    def _offer(self, node: RadixNode) -> None:
        """Note a node for eviction if it is a leaf that nobody locks."""
        if not self._is_evictable(node):
            return
        heapq.heappush(self._heap, (node.used, node))
        if len(self._heap) > 4 * self._node_count + 64:  # mostly out of date: without this it would only grow
            current = {node: used for used, node in self._heap if self._is_evictable(node)}
            self._heap = [(node.used, node) for node in current]
            heapq.heapify(self._heap)

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    # -- counting and checking ----------------------------------------------------------------------

    def size_info(self) -> SizeInfo:
        return SizeInfo(self._evictable, self._protected)

    def cached_indices(self) -> torch.Tensor:
        return torch.cat([node.value for node in self.nodes()])

    def nodes(self) -> list[RadixNode]:
        """Every node, the root first, children after their parents in the order of insertion."""
        found = [self._root]
        for node in found:
            found += node.children.values()
        return found

    def check_integrity(self) -> None:
        evictable = protected = 0
        offered = {(used, node) for used, node in self._heap}
        for node in self.nodes()[1:]:
            where = f"the node of tokens {node.start} to {node.end}"
            if not len(node.key) or len(node.key) % self._page_size or len(node.key) != len(node.value):
                raise RuntimeError(f"{where}: {len(node.key)} tokens, {len(node.value)} places")
            parent = _parent(node)
            if (
                node.end != parent.end + len(node.key)
                or parent.children.get(self._first_page(node.key)) is not node
            ):
                raise RuntimeError(f"{where} is not where its parent looks for it")
            if node.locks < sum(child.locks for child in node.children.values()):
                raise RuntimeError(f"{where} has fewer locks than its children")
            if self._is_evictable(node) and (node.used, node) not in offered:
                raise RuntimeError(f"{where} could be evicted, and never will be")
            if node.locks:
                protected += len(node.key)
            else:
                evictable += len(node.key)
        if (evictable, protected) != self.size_info():
            raise RuntimeError(f"{evictable} evictable and {protected} protected, but {self.size_info()}")


def _parent(node: RadixNode) -> RadixNode:
    assert node.parent is not None
    return node.parent
