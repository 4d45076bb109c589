import torch

MERGED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}


def merge_stream(tensors):
    """tensors: an iterator of (name, tensor).
    Yields (name, tensor), merged, as soon as each can be.
    """
    raise NotImplementedError
