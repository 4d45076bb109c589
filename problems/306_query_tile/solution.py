def query_tile(qo_lens, num_qo_heads, num_kv_heads, head_dim):
    group = num_qo_heads // num_kv_heads
    packed = [n * group for n in qo_lens]
    average = sum(packed) // len(packed)
    if average > 64 and head_dim < 256:
        tile = 128
    elif average > 16:
        tile = 64
    else:
        tile = 16
    return tile, [-(-n // tile) for n in packed]
