def read_config(raw):
    """raw: dict, as read from config.json.

    Returns {num_kv_heads, head_dim, rope_theta, rope_type, eos_ids}.
    """
    raise NotImplementedError
