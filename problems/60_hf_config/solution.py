def read_config(raw):
    heads = raw["num_attention_heads"]
    rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    theta = rope.get("rope_theta") or raw.get("rope_theta") or 10000.0
    eos = raw.get("eos_token_id")
    return {
        "num_kv_heads": raw.get("num_key_value_heads") or heads,
        "head_dim": raw.get("head_dim") or raw["hidden_size"] // heads,
        "rope_theta": float(theta),
        "rope_type": rope.get("rope_type") or rope.get("type") or "default",
        "eos_ids": [] if eos is None else list(eos) if isinstance(eos, list) else [eos],
    }
