"""Operations that are worth a kernel of their own. Callers import them from here and need not know
which implementation they get."""

from minisgl.kernel.torch_ops import common_prefix_len, embedding_lookup, linear, pack_linear_weight, store_kv

__all__ = ["common_prefix_len", "embedding_lookup", "linear", "pack_linear_weight", "store_kv"]
