import torch

MERGED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
MERGED_INTO = {part: merged for merged, parts in MERGED.items() for part in parts}


def merge_stream(tensors):
    waiting = {}
    for name, tensor in tensors:
        *owner, layer, kind = name.split(".")
        merged = MERGED_INTO.get(layer)
        if merged is None:
            yield name, tensor
            continue
        full_name = ".".join([*owner, merged, kind])
        parts = waiting.setdefault(full_name, {})
        parts[layer] = tensor
        if len(parts) == len(MERGED[merged]):
            del waiting[full_name]
            yield name, torch.cat([parts[part] for part in MERGED[merged]])
