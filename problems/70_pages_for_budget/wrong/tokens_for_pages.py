def plan_pool(config, page_size, dtype_bytes, tp_size, budget):
    local_heads = max(1, config["num_kv_heads"] // tp_size)
    bytes_per_token = 2 * config["num_layers"] * local_heads * config["head_dim"] * dtype_bytes
    return bytes_per_token, max(0, budget // bytes_per_token - 1)
