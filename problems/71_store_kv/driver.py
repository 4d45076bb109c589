"""Runs problem 71 on the middle layer of a pool of three, laid out as the case says."""

import torch

LAYERS, LAYER = 3, 1


def run(submission, inputs):
    pages, page_size = inputs["pages"], inputs["page_size"]
    qkv = inputs[
        "kv"
    ]  # [tokens, 2, heads, head_dim]: k and v are slices of one tensor, as after a merged projection
    heads, dim = qkv.shape[2:]
    combined = inputs["layout"] == "combined"
    shape = (LAYERS, pages, 2, page_size) if combined else (2, LAYERS, pages, page_size)
    pool = torch.zeros(*shape, heads, dim)
    k_cache, v_cache = views(pool, combined, LAYER)
    old = -1.0 - torch.arange(pages * page_size * heads * dim, dtype=torch.float32).reshape(k_cache.shape)
    k_cache.copy_(old)
    v_cache.copy_(old)
    submission.store_kv(k_cache, v_cache, inputs["out_loc"].clone(), qkv[:, 0], qkv[:, 1])
    k_cache, v_cache = views(pool, combined, LAYER)
    untouched = all(not view.any() for layer in (0, 2) for view in views(pool, combined, layer))
    return {"k_cache": k_cache.clone(), "v_cache": v_cache.clone(), "other_layers": untouched}


def views(pool, combined, layer):
    return (pool[layer, :, 0], pool[layer, :, 1]) if combined else (pool[0, layer], pool[1, layer])
