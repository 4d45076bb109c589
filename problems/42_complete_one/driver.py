"""Runs problem 42: one request and the events that befall it, with its lengths after each."""

import torch

from minisgl.core import Req, SamplingParams


def run(submission, inputs):
    req = Req(
        input_ids=torch.arange(inputs["prompt_len"], dtype=torch.int32),
        table_idx=0,
        cached_len=inputs["cached_len"],
        output_len=inputs["output_len"],
        uid=1,
        sampling_params=SamplingParams(),
        cache_handle=None,
    )
    names = ("cached_len", "device_len", "remain_len", "can_decode", "known_tokens")
    rows = {name: [] for name in names}
    for number, event in enumerate(inputs["events"]):
        if event == "forward":
            req.complete_one()
        else:
            req.append_host(torch.tensor([1000 + number], dtype=torch.int32))
        values = (req.cached_len, req.device_len, req.remain_len, req.can_decode, len(req.input_ids))
        for name, value in zip(names, values, strict=True):
            rows[name].append(value)
    return rows
