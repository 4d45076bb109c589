def plan_pool(config, page_size, dtype_bytes, tp_size, budget):
    bytes_per_token = 2 * config["num_layers"] * config["num_kv_heads"] * config["head_dim"] * dtype_bytes // tp_size
    pages = budget // (bytes_per_token * page_size)
    return bytes_per_token, max(0, pages - 1)
