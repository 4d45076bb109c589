def mlp_part(x, up, up_bias, down, down_bias, rank, size):
    share = up.shape[0] // size
    mine = slice(rank * share, (rank + 1) * share)
    inner = (x @ up[mine].T + up_bias[mine]).clamp(min=0)
    part = inner @ down[:, :share].T
    if rank == 0:
        part = part + down_bias
    return part
