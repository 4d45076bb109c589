"""Runs problem 222 on views as an engine has them: k and v are slices of a qkv tensor, both pools lie in one piece of
memory."""


def run(submission, inputs):
    heads = inputs["pool"].shape[1]
    qkv, pool = inputs["qkv"].clone(), inputs["pool"].clone()
    k, v = qkv[:, -2 * heads : -heads], qkv[:, -heads:]
    submission.store_kv(k, v, pool[:, :, 0], pool[:, :, 1], inputs["out_loc"].clone())
    return {"pool": pool}
