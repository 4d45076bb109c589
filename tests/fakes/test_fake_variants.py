"""Variants as classes: what a caller's own can do in each place, that the library's compose, and that the plain one
stays the reference backend's call.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels.errors import KernelError
from fake_kernels.reference import Request, attend
from fake_kernels.variants import (
    LOG2E,
    Alibi,
    AttentionVariant,
    Chain,
    CustomMask,
    LlamaRope,
    ScaledScores,
    Scores,
    Sink,
    SlidingWindow,
    SoftCap,
    Variant,
    alibi_slopes,
)
from paged_batches import PagedBatch, dense_float64, make_batch, plan, wrapper_for


def jit_args(
    variant: Any,
    tensors: tuple[str, ...] = (),
    scalars: tuple[str, ...] = (),
    dtype: torch.dtype = torch.float32,
) -> list[Any]:
    """The declaration of a variant, as the library takes it."""
    types = (dtype, dtype, dtype, torch.int32)
    named = (list(tensors), ["float"] * len(tensors), list(scalars), ["double"] * len(scalars))
    return ["my_variant", *types, 64, 64, *named, "MyVariant", variant]


def run(variant: Any, batch: PagedBatch, *values: Any, names: Any = ((), ()), **options: Any) -> Any:
    """Output and base-2 LSE of a causal fa2 plan with this variant."""
    wrapper = wrapper_for("fa2", jit_args=jit_args(variant, *names), **options)
    plan(wrapper, batch)
    return wrapper.run(batch.q, (batch.k, batch.v), *values, return_lse=True)


BATCH = make_batch((9, 40, 5), (3, 1, 5), dtype=torch.float32)


def agrees(got: tuple[torch.Tensor, torch.Tensor], **rule: Any) -> None:
    want, natural = dense_float64(BATCH, causal=True, **rule)
    torch.testing.assert_close(got[0].double(), want, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(got[1].double(), natural / math.log(2), atol=1e-5, rtol=1e-5)


class Tempered(AttentionVariant):
    """Scores divided by a temperature, left to softmax as the library's default variant leaves its scale."""

    def __init__(self, params: SimpleNamespace, at: Scores) -> None:
        self.sm_scale_log2 = params.sm_scale / params.temperature * LOG2E


def test_a_callers_variant_gets_its_scalars_and_keeps_the_causal_mask() -> None:
    got = run(Tempered, BATCH, 0.125, 2.0, names=((), ("sm_scale", "temperature")))
    agrees(got, scale=0.125 / 2)


def test_sm_scale_is_filled_in_when_run_leaves_it_out() -> None:
    wrapper = wrapper_for("fa2", jit_args=jit_args(Tempered, (), ("temperature", "sm_scale")))
    plan(wrapper, BATCH, sm_scale=0.25)
    agrees(wrapper.run(BATCH.q, (BATCH.k, BATCH.v), 2.0, return_lse=True), scale=0.125)


class EveryPlace(AttentionVariant):
    """The scale in the query, a sign in key and output, a cap in the logits, a window in the mask."""

    sm_scale_log2 = LOG2E

    def __init__(self, params: SimpleNamespace, at: Scores) -> None:
        self.gains = params.gains

    def query_transform(self, q: torch.Tensor, at: Scores) -> torch.Tensor:
        return -q * self.gains.view(1, -1, 1)

    def key_transform(self, k: torch.Tensor, at: Scores) -> torch.Tensor:
        return -k

    def logits_transform(self, logits: torch.Tensor, at: Scores) -> torch.Tensor:
        return 2.5 * torch.tanh(logits / 2.5)

    def logits_mask(self, at: Scores) -> torch.Tensor:
        return at.kv_idx >= at.own_position - 4

    def output_transform(
        self, output: torch.Tensor, m: torch.Tensor, d: torch.Tensor, scale: torch.Tensor, at: Scores
    ) -> torch.Tensor:
        return -super().output_transform(output, m, d, scale, at)


def test_every_place_is_called() -> None:
    out, lse = run(EveryPlace, BATCH, torch.full((8,), 0.3), names=(("gains",), ()))
    agrees((-out, lse), window=(4, -1), soft_cap=2.5, scale=0.3)


class Linear(AttentionVariant):
    """No softmax: the scores themselves are the weights."""

    use_softmax = False

    def __init__(self, params: SimpleNamespace, at: Scores) -> None:
        pass


def test_without_softmax_masked_scores_count_nothing() -> None:
    batch = make_batch((4,), (4,), heads=(2, 2), dtype=torch.float32)
    out, _ = run(Linear, batch)
    q, k, v = (
        batch.q,
        batch.k[batch.indices.long()].flatten(0, 1)[:4],
        batch.v[batch.indices.long()].flatten(0, 1)[:4],
    )
    scores = torch.einsum("nhd,khd->hnk", q, k).tril()
    torch.testing.assert_close(out, torch.einsum("hnk,khd->nhd", scores, v), atol=1e-4, rtol=1e-4)


class OwnMask(AttentionVariant):
    """Every row sees even positions, later ones too."""

    sm_scale_log2 = 0.125 * LOG2E

    def __init__(self, params: SimpleNamespace, at: Scores) -> None:
        pass

    def logits_mask(self, at: Scores) -> torch.Tensor:
        return at.kv_idx % 2 == 0


def test_a_variant_that_owns_the_mask_isnt_causal() -> None:
    batch = make_batch((6,), (4,), page_size=1, heads=(2, 1), dtype=torch.float32)
    k, v = batch.k[batch.indices.long()].squeeze(1), batch.v[batch.indices.long()].squeeze(1)
    even = (torch.arange(6) % 2 == 0).expand(4, 6)
    for owns, mask in ((True, even), (False, even & torch.ones(4, 6, dtype=torch.bool).tril(2))):
        out, _ = run(OwnMask, batch, variant_owns_mask=owns)
        want = flashinfer.single_prefill_with_kv_cache(batch.q, k, v, custom_mask=mask, sm_scale=0.125)
        torch.testing.assert_close(out, want, atol=1e-5, rtol=1e-5)


def test_decode_and_ragged_take_variants_too() -> None:
    batch = make_batch((9, 40), dtype=torch.float32)
    wrapper = wrapper_for("dec", jit_args=jit_args(Tempered, (), ("sm_scale", "temperature")))
    plan(wrapper, batch)
    want, _ = dense_float64(batch, causal=False, scale=0.5)
    torch.testing.assert_close(
        wrapper.run(batch.q, (batch.k, batch.v), 1.0, 2.0).double(), want, atol=1e-5, rtol=1e-5
    )
    one = make_batch((9,), (9,), page_size=1, dtype=torch.float32)
    ragged = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(
        torch.empty(1 << 20, dtype=torch.uint8),
        backend="fa2",
        jit_args=jit_args(Tempered, (), ("sm_scale", "temperature")),
    )
    ragged.plan(one.qo_indptr, one.qo_indptr, 8, 2, 64, q_data_type=torch.float32, causal=True)
    order = one.indices.long()
    out = ragged.run(one.q, one.k[order].squeeze(1), one.v[order].squeeze(1), 1.0, 2.0)
    torch.testing.assert_close(
        out.double(), dense_float64(one, causal=True, scale=0.5)[0], atol=1e-5, rtol=1e-5
    )


def refused(call: Any) -> KernelError:
    with pytest.raises(KernelError) as caught:
        call()
    return caught.value


def test_what_is_wrong_with_a_declaration() -> None:
    cpp = "struct MyVariant : AttentionVariantBase { ... };"
    error = refused(lambda: wrapper_for("fa2", jit_args=jit_args(cpp)))
    assert error.code == "not_modelled"
    assert "No C++ is compiled here" in str(error)
    with pytest.raises(ValueError, match="Invalid backend: auto"):
        flashinfer.BatchPrefillWithPagedKVCacheWrapper(
            torch.empty(64, dtype=torch.uint8), jit_args=jit_args(Tempered)
        )
    with pytest.raises(ValueError, match="requires a custom JIT module"):
        wrapper_for("fa2", variant_owns_mask=True)
    with pytest.raises(ValueError, match="only supported on the fa2 backend"):
        wrapper_for("fa3", variant_owns_mask=True, jit_args=jit_args(OwnMask))
    wrapper = wrapper_for("fa2", jit_args=jit_args(Tempered, dtype=torch.float16))
    assert refused(lambda: plan(wrapper, BATCH)).code == "jit_plan_differs"
    flags = {"jit_args": jit_args(Tempered), "jit_kwargs": {"use_fp16_qk_reduction": True}}
    assert refused(lambda: wrapper_for("fa2", **flags)).argument == "use_fp16_qk_reduction"
    wrapper_for("fa2", jit_args=jit_args(Tempered), jit_kwargs={"use_sliding_window": True})


def test_values_of_a_run_are_counted() -> None:
    for values in ((), (0.5, 2.0, 3.0)):
        error = refused(lambda v=values: run(Tempered, BATCH, *v, names=((), ("temperature", "x"))))
        assert (error.code, error.params["got"]) == ("jit_argument", len(values))
    plain = wrapper_for("fa2")
    plan(plain, BATCH)
    assert refused(lambda: plain.run(BATCH.q, (BATCH.k, BATCH.v), 1.0)).argument == "args"


def formula(variant: Variant, kv_len: int = 7, rows: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    q = torch.randn(rows, 4, 16, generator=generator, dtype=torch.float64)
    k, v = (torch.randn(kv_len, 1, 2, 16, generator=generator, dtype=torch.float64) for _ in range(2))
    request = Request(0, rows, torch.arange(kv_len))
    out, lse = attend(q, k, v, [request], variant, with_lse=True)
    assert lse is not None
    return out, lse


def test_parts_that_change_nothing_leave_the_numbers_alone() -> None:
    plain = formula(Variant(0.25))
    everything = torch.full((3,), 255, dtype=torch.uint8)
    neutral = (
        AttentionVariant(),
        SlidingWindow(100),
        Alibi(torch.zeros(4)),
        CustomMask(everything, [0]),
        Sink(torch.full((4,), -math.inf)),
        Chain([]),
    )
    for part in (*neutral, Chain(neutral)):
        out, lse = formula(Variant(0.25, more=(part,)))
        torch.testing.assert_close(out, plain[0])
        torch.testing.assert_close(lse, plain[1])
    out, _ = formula(Variant(0.25, own=lambda at: Chain([ScaledScores(0.25), SoftCap(1e4)])))
    torch.testing.assert_close(out, plain[0], atol=1e-6, rtol=1e-6)


def test_two_sinks_are_one_with_both_weights() -> None:
    first, second = torch.tensor([0.5, -1, 2, 0]), torch.tensor([1.0, 1, -3, 0])
    both = formula(Variant(0.25, more=(Sink(first), Sink(second))))
    joined = formula(Variant(0.25, more=(Sink(torch.logaddexp(first, second)),)))
    torch.testing.assert_close(both[0], joined[0], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(both[1], joined[1], atol=1e-6, rtol=1e-6)


def test_a_row_that_sees_only_the_sink() -> None:
    sinks = torch.tensor([0.5, -1, 2, 0])
    for kv_len in (0, 1):
        out, lse = formula(Variant(0.25, more=(Sink(sinks),)), kv_len=kv_len)
        blind = slice(0, 3 - kv_len)
        assert not out[blind].any()
        torch.testing.assert_close(lse[blind], sinks.expand(3 - kv_len, 4))


def test_rope_depends_on_distances_only() -> None:
    """q and k of one vector everywhere: scores depend on how far a position is, so rows agree where they
    see the same distances."""
    q = torch.ones(3, 1, 16)
    k = torch.ones(9, 1, 1, 16)
    v = torch.arange(9.0).view(9, 1, 1, 1).expand(9, 1, 1, 16).contiguous()
    variant = Variant(0.25, window_left=2, more=(LlamaRope(1.0, 1e4),))
    out, _ = attend(q, k, v, [Request(0, 3, torch.arange(9))], variant)
    torch.testing.assert_close(out[1], out[0] + 1)
    torch.testing.assert_close(out[2], out[0] + 2)


def test_alibi_slopes_are_the_papers() -> None:
    assert alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    assert alibi_slopes(12)[8:].tolist() == pytest.approx([2.0**-e for e in (0.5, 1.5, 2.5, 3.5)])


def test_only_the_plain_variant_is_plain() -> None:
    assert Variant(1.0).is_plain
    for other in (
        Variant(1.0, window_left=0),
        Variant(1.0, window_right=0),
        Variant(1.0, soft_cap=1.0),
        Variant(1.0, more=(AttentionVariant(),)),
        Variant(1.0, own=lambda at: AttentionVariant()),
    ):
        assert not other.is_plain
