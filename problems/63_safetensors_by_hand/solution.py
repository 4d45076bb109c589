import json

import torch

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


def read_tensor(file, name):
    length = int.from_bytes(bytes(file[:8].tolist()), "little")
    data = 8 + length
    header = json.loads(bytes(file[8:data].tolist()))
    entry = header[name]
    begin, end = entry["data_offsets"]
    raw = file[data + begin : data + end].clone()
    return raw.view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
