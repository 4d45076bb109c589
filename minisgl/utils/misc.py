"""Integer arithmetic on sizes, and the one way in which sizes are divided among ranks."""

from __future__ import annotations


def div_even(a: int, b: int, *, what: str = "value") -> int:
    """a / b; ValueError, naming `what`, if b does not divide a."""
    if a % b:
        raise ValueError(f"{what} {a} cannot be divided evenly by {b}")
    return a // b


def div_ceil(a: int, b: int) -> int:
    """a / b, rounded up, for b > 0."""
    return -(-a // b)


def align_down(a: int, b: int) -> int:
    """The largest multiple of b that is <= a, for b > 0."""
    return a // b * b


def align_up(a: int, b: int) -> int:
    """The smallest multiple of b that is >= a, for b > 0."""
    return div_ceil(a, b) * b


def local_kv_heads(num_kv_heads: int, tp_size: int) -> int:
    """KV heads of one rank: an even share, or one head that several ranks hold a copy of."""
    if tp_size > num_kv_heads:
        div_even(tp_size, num_kv_heads, what="tensor-parallel size")
        return 1
    return div_even(num_kv_heads, tp_size, what="number of KV heads")
