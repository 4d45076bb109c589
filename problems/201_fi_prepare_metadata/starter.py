import torch

from minisgl.attention.fi import FIMetadata
from minisgl.core import Batch, get_global_ctx
from minisgl.utils.device import pin


def prepare_metadata(self, batch: Batch) -> None:
    """Set batch.attn_metadata to the FIMetadata of batch.padded_reqs.

    self.device, self.config.head_dim, self.kvcache.dtype,
    self.qo_head_local, self.kv_head_local,
    self.prefill_wrapper, self.decode_wrapper and self._get_ones_cpu(bs)
    are there already.
    """
    raise NotImplementedError
