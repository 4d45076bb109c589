"""Runs problem 201 inside the sandbox: a backend over a small pool, fresh for every case."""

import torch

from minisgl.attention.fi import FlashInferBackend
from minisgl.core import Batch, Context, Req, SamplingParams, reset_global_ctx, set_global_ctx
from minisgl.distributed.info import DistributedInfo, reset_tp_info, set_tp_info
from minisgl.kvcache.mha_pool import MHAKVCache
from minisgl.models.config import ModelConfig, RotaryConfig

CONFIG = ModelConfig(
    architecture="small",
    num_layers=1,
    num_qo_heads=2,
    num_kv_heads=1,
    head_dim=64,
    hidden_size=128,
    intermediate_size=64,
    vocab_size=1,
    rms_norm_eps=1e-6,
    rotary_config=RotaryConfig(head_dim=64, max_position=1, base=1e4),
    tie_word_embeddings=True,
    qkv_bias=False,
    o_bias=False,
    qk_norm=False,
)
FIELDS = (
    "cu_seqlens_q_cpu",
    "cu_seqlens_k_cpu",
    "cu_seqlens_q_gpu",
    "indices",
    "last_page_len_cpu",
    "seq_lens_cpu",
    "num_qo_heads",
    "num_kv_heads",
    "head_dim",
    "dtype",
    "wrapper",
    "initialized",
)


def run(submission, inputs):
    table, page_size = inputs["page_table"], inputs["page_size"]
    reset_tp_info()
    set_tp_info(DistributedInfo(0, 1))
    reset_global_ctx()
    set_global_ctx(Context(page_size=page_size, page_table=table))
    num_pages = int(table.max()) // page_size + 1
    backend = FlashInferBackend(
        CONFIG, MHAKVCache(CONFIG, num_pages, page_size, torch.float32, torch.device("cpu"))
    )
    batch = make_batch(inputs)
    backend.prepare_metadata(batch)
    if "next" not in inputs:
        return look(batch, backend)
    following = make_batch(inputs["next"])
    backend.prepare_metadata(following)
    return {**look(batch, backend), "next": look(following, backend)}


def make_batch(inputs):
    reqs = [make_req(i, *r) for i, r in enumerate(inputs["reqs"])]
    batch = Batch(reqs=reqs, phase=inputs["phase"])
    batch.padded_reqs = reqs + [make_req(-1, *r) for r in inputs["padding"]]
    return batch


def make_req(uid, table_idx, cached_len, device_len):
    return Req(
        input_ids=torch.zeros(device_len, dtype=torch.int32),
        table_idx=table_idx,
        cached_len=cached_len,
        output_len=4,
        uid=uid,
        sampling_params=SamplingParams(),
        cache_handle=None,
    )


def look(batch, backend):
    """The fields of the metadata; what is not there is left out. Wrappers and dtypes go by name."""
    metadata = getattr(batch, "attn_metadata", None)
    found = {name: getattr(metadata, name) for name in FIELDS if hasattr(metadata, name)}
    if "dtype" in found:
        dtype = found["dtype"]
        known = isinstance(dtype, torch.dtype)
        found["dtype"] = str(dtype).removeprefix("torch.") if known else f"a {type(dtype).__name__}"
    if "wrapper" in found:
        names = {id(backend.prefill_wrapper): "prefill", id(backend.decode_wrapper): "decode"}
        found["wrapper"] = names.get(id(found["wrapper"]), f"another {type(found['wrapper']).__name__}")
    return found
