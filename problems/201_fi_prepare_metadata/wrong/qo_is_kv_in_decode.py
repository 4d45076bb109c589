import torch

from minisgl.attention.fi import FIMetadata
from minisgl.core import Batch, get_global_ctx
from minisgl.utils.device import pin


def prepare_metadata(self, batch: Batch) -> None:
    reqs = batch.padded_reqs
    query_lens = [req.extend_len for req in reqs]
    kv_lens = [req.device_len for req in reqs]
    host = {"dtype": torch.int32, "pin_memory": pin(self.device)}

    kv_indptr = torch.tensor([0, *kv_lens], **host).cumsum_(dim=0)
    if batch.is_decode or all(req.cached_len == 0 for req in reqs):
        qo_indptr = kv_indptr
    else:
        qo_indptr = torch.tensor([0, *query_lens], **host).cumsum_(dim=0)

    page_table = get_global_ctx().page_table
    batch.attn_metadata = FIMetadata(
        cu_seqlens_q_cpu=qo_indptr,
        cu_seqlens_k_cpu=kv_indptr,
        cu_seqlens_q_gpu=qo_indptr.to(self.device, non_blocking=True),
        indices=torch.cat([page_table[req.table_idx, : req.device_len] for req in reqs]),
        last_page_len_cpu=self._get_ones_cpu(len(reqs)),
        num_qo_heads=self.qo_head_local,
        num_kv_heads=self.kv_head_local,
        head_dim=self.config.head_dim,
        seq_lens_cpu=torch.tensor(kv_lens, **host),
        dtype=self.kvcache.dtype,
        wrapper=self.decode_wrapper if batch.is_decode else self.prefill_wrapper,
    )
