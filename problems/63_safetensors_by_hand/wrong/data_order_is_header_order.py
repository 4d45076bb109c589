import json

import torch

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


def read_tensor(file, name):
    length = int.from_bytes(bytes(file[:8].tolist()), "little")
    data = 8 + length
    header = json.loads(bytes(file[8:data].tolist()))
    entry = header[name]
    begin = 0
    for other, there in header.items():
        if other == name:
            break
        if other != "__metadata__":
            begin += there["data_offsets"][1] - there["data_offsets"][0]
    end = begin + entry["data_offsets"][1] - entry["data_offsets"][0]
    raw = file[data + begin : data + end].clone()
    return raw.view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
