"""A caller's own attention variant, in the place where the real library compiles one.

There `jit_args` ends with a name and the C++ text of a struct. Here the last entry is a class that derives
from `fake_kernels.variants.AttentionVariant` (or a function that returns one); everything before it is as
in the library. The class is called as the struct is: with the parameters and with where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from fake_kernels.errors import not_modelled
from fake_kernels.findings import Finding, settle
from fake_kernels.mistakes_masks import JIT_ARGUMENT, JIT_PLAN
from fake_kernels.outcomes import UNMEASURED, Path
from fake_kernels.variants import AttentionVariant, Scores, alibi_slopes

from flashinfer._options import only_default

_KWARGS = {
    "pos_encoding_mode": 0,
    "use_fp16_qk_reduction": False,
    "fp8_enabled": False,
}
"""Flags that change numbers, with the values computed here; the others choose among equal kernels."""
_HINTS = ("use_sliding_window", "use_logits_soft_cap", "paged_kv_stride_mode", "module_surface")


class JitVariant:
    """A declared variant.

    jit_args: [uri, dtype_q, dtype_kv, dtype_o, idtype, head_dim_qk, head_dim_vo, tensor names, tensor types,
    scalar names, scalar types, variant name, variant], as gen_customize_batch_prefill_module takes them.
    run gives the tensors and scalars by position; tensors named maybe_custom_mask, maybe_mask_indptr and
    maybe_alibi_slopes are filled in, and scalars named sm_scale and logits_soft_cap if they are left out.
    The variant is made once a request as variant(params, at): params has the declared names and window_left,
    num_qo_heads, num_kv_heads; at is a `Scores`.
    """

    def __init__(self, jit_args: list[Any], jit_kwargs: dict[str, Any] | None) -> None:
        if not isinstance(jit_args, list | tuple):
            raise not_modelled("jit_args", type(jit_args).__name__)
        variant = jit_args[12] if len(jit_args) > 12 else None
        if len(jit_args) != 13 or not callable(variant):
            raise not_modelled(
                "jit_args",
                [str(part)[:40] for part in jit_args],
                why={
                    "en": "No C++ is compiled here: the last of 13 entries must be a subclass of "
                    "fake_kernels.variants.AttentionVariant.",
                    "zh": "这里不编译 C++：13 项的最后一项应当是 fake_kernels.variants.AttentionVariant 的子类。",
                },
            )
        for name, value in (jit_kwargs or {}).items():
            if name not in _HINTS:
                only_default(**{name: (value, _KWARGS.get(name))})
        self.dtypes: tuple[torch.dtype, torch.dtype] = (jit_args[1], jit_args[2])
        self.head_dims: tuple[int, int] = (jit_args[5], jit_args[6])
        self.tensors: list[str] = list(jit_args[7])
        self.scalars: list[str] = list(jit_args[9])
        self.make: Callable[[SimpleNamespace, Scores], AttentionVariant] = variant

    @property
    def takes_tensors(self) -> bool:
        """Whether run has to be given tensors."""
        return any(not name.startswith("maybe_") for name in self.tensors)

    def plan_findings(
        self, dtypes: tuple[torch.dtype, torch.dtype], head_dims: tuple[int, int]
    ) -> Iterator[Finding]:
        """Whether a plan is for the types (q, KV) and head dimensions (QK, VO) that were declared."""
        if (dtypes, head_dims) != (self.dtypes, self.head_dims):
            planned = f"{self.dtypes}, head_dim {self.head_dims}"
            wider = dtypes == self.dtypes and all(
                asked >= made for asked, made in zip(head_dims, self.head_dims, strict=True)
            )
            told = {"value": f"{dtypes}, head_dim {head_dims}", "planned": planned}
            yield Finding(JIT_PLAN, "jit_args", told, None if wider else UNMEASURED)

    def bound(
        self, args: tuple[Any, ...], known: dict[str, Any], path: Path
    ) -> Callable[[Scores], AttentionVariant]:
        """The variant with the values of one run. `known`: what the wrapper can fill in, by name."""
        left = list(args)
        values: dict[str, Any] = {}
        missing: list[str] = []
        for name in self.tensors:
            if name == "maybe_alibi_slopes":
                values[name] = alibi_slopes(known["num_qo_heads"])
            elif name in ("maybe_custom_mask", "maybe_mask_indptr"):
                values[name] = known[name]
            elif left:
                values[name] = left.pop(0)
            else:
                missing.append(name)
        for name in self.scalars:
            if left:
                values[name] = left.pop(0)
            elif name in ("sm_scale", "logits_soft_cap"):
                values[name] = known[name]
            else:
                missing.append(name)
        if missing or left:
            names = ", ".join([*self.tensors, *self.scalars])
            lacks_tensor = any(name in self.tensors for name in missing)
            found = Finding(
                JIT_ARGUMENT,
                "args",
                {"got": len(args), "names": names},
                None if lacks_tensor else UNMEASURED,
            )
            settle([found], path, during="run")
        params = SimpleNamespace(**{**known, **values})
        return lambda at: self.make(params, at)
