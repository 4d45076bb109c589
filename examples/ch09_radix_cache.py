"""Chapter 9: the prefix cache as a tree.

First the tree alone, with pages of 2 tokens: what is inserted, where sequences part, how much of a new prompt is
found, and in which order leaves are evicted. Then the tree at work: three prompts with one beginning, and how
many of their tokens had to be computed.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from minisgl.core import SamplingParams  # noqa: E402
from minisgl.kvcache import create_prefix_cache  # noqa: E402
from minisgl.kvcache.radix_cache import RadixNode, RadixPrefixCache  # noqa: E402
from minisgl.llm import LLM  # noqa: E402


def model_folder() -> str:
    if given := os.environ.get("MINISGL_MODEL"):
        return given
    from tools.models import cached

    return str(cached("qwen3"))


def ids(*tokens: int) -> torch.Tensor:
    return torch.tensor(tokens, dtype=torch.int32)


def show(node: RadixNode, depth: int = 0) -> None:
    for child in node.children.values():
        locked = f"  锁 {child.locks}" if child.locks else ""
        print(f"  {'    ' * depth}{child.key.tolist()} → 位置 {child.value.tolist()}{locked}")
        show(child, depth + 1)


def the_tree_alone() -> None:
    tree = create_prefix_cache("radix", 2, torch.device("cpu"))
    assert isinstance(tree, RadixPrefixCache)
    first = 0
    for tokens in ([7, 8, 9, 4, 1, 2], [7, 8, 9, 4, 5, 5, 6], [3, 3]):
        result = tree.insert_prefix(ids(*tokens), torch.arange(first, first + len(tokens), dtype=torch.int32))
        print(f"插入 {tokens}: 已有 {result.already_cached} 个，存到第 {result.handle.cached_len} 个（整页）")
        first += 10
    root = tree.nodes()[0]
    show(root)
    for tokens in ([7, 8, 9, 4, 1, 2, 0], [7, 8, 9, 0], [9, 9]):
        handle = tree.match_prefix(ids(*tokens))
        print(f"查找 {tokens}: 命中 {handle.cached_len}，位置 {handle.matched_indices().tolist()}")
    handle = tree.match_prefix(ids(7, 8, 9, 4))
    tree.lock(handle)
    print(f"锁住 [7, 8, 9, 4] 之后（可淘汰, 锁定）= {tuple(tree.size_info())}")
    order = []
    while tree.size_info().evictable:
        order.append(tree.evict(1).tolist())
    print(f"淘汰次序（最久没用的叶子先走）: {order}")
    show(root)
    tree.unlock(handle)
    print(f"解锁之后还能淘汰: {tree.evict(4).tolist()}")


def the_tree_at_work() -> None:
    llm = LLM(
        model_folder(),
        device=torch.device("cpu"),
        num_page_override=256,
        max_seq_len_override=96,
        max_running_req=4,
        check_pages=True,
    )
    beginning = [(37 * i) % 480 + 5 for i in range(48)]
    prompts = [[*beginning, 11], [*beginning, 12, 13], [*beginning[:20], 14]]
    params = SamplingParams(max_tokens=4, ignore_eos=True)
    print("三个提示词同时到达:")
    for name, done in zip("ABC", llm.generate(prompts, params), strict=True):
        computed = done["prompt_tokens"] - done["cached_tokens"]
        print(
            f"  {name}: 提示词 {done['prompt_tokens']}，命中 {done['cached_tokens']}，"
            f"算了 {computed}，说出 {done['token_ids']}"
        )
    llm.shutdown()


if __name__ == "__main__":
    the_tree_alone()
    the_tree_at_work()
