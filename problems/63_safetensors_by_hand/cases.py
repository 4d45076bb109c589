"""Cases of problem 63: files made here by the format's rules, with entries in and out of the data's order, padded headers,
and data that begins at no multiple of 4."""

import json

import torch

from judge.core.draw import tensor
from judge.core.rng import Rng

NAMES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}


def pack(tensors, pad=0, metadata=False, order=None):
    """The file's bytes. `order`: the entries' order in the header; data always lies in the order of `tensors`."""
    entries, data = {}, []
    for name, t in tensors.items():
        raw = t.contiguous().reshape(-1).view(torch.uint8).tolist()
        entries[name] = {
            "dtype": NAMES[t.dtype],
            "shape": list(t.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    header = {"__metadata__": {"format": "pt"}} if metadata else {}
    header |= {name: entries[name] for name in order or entries}
    text = json.dumps(header, separators=(",", ":")).encode() + b" " * pad
    return torch.tensor([*len(text).to_bytes(8, "little"), *text, *data], dtype=torch.uint8)


def case(name, tensors, **options):
    return {"file": pack(tensors, **options), "name": name}


def three(seed, dtypes=("float32", "bfloat16", "float16")):
    rng = Rng(seed.encode())
    shapes = ([2, 3], [4], [3, 2])
    return {n: tensor(rng, s, d) for n, s, d in zip("abc", shapes, dtypes, strict=True)}


def public():
    return {
        "two_tensors": case("b", {"a": torch.tensor([1.0]), "b": torch.tensor([[2.0, -0.5]])}),
    }


NOTES = {"two_tensors": {"zh": "b 的数据在 a 后面。", "en": "b's data comes after a's."}}


def fixed():
    return {
        "first": case("a", three("a")),
        "second": case("b", three("b")),
        "third": case("c", three("c")),
        "order_differs": case("b", three("d"), order="cab"),
        "order_reversed": case("a", three("e"), order="cba"),
        "metadata": case("c", three("f"), metadata=True),
        "metadata_and_padding": case("b", three("g"), metadata=True, pad=5),
        "padded": case("a", three("h"), pad=3),
        "bfloat16_square": case("w", {"x": torch.ones(3), "w": tensor(Rng(b"i"), [3, 3], "bfloat16")}),
        "float16_square": case("w", {"x": torch.ones(3), "w": tensor(Rng(b"j"), [3, 3], "float16")}),
        "scalar": case("s", {"w": torch.ones(2, 2), "s": torch.tensor(3.25)}),
        "three_dimensions": case("w", {"w": tensor(Rng(b"k"), [2, 3, 2]), "v": torch.zeros(1)}, pad=1),
    }


def teach():
    return {
        "one": case("a", {"a": torch.tensor([1.5])}),
        "two": case("b", {"a": torch.tensor([1.5]), "b": torch.tensor([2.5])}),
        "matrix": case("a", {"a": torch.tensor([[1.0, 2.0], [3.0, 4.0]])}),
        "bfloat16": case("a", {"a": torch.tensor([1.5, -3.0], dtype=torch.bfloat16)}),
        "float16": case("a", {"a": torch.tensor([1.5, -3.0], dtype=torch.float16)}),
        "order": case("b", {"a": torch.tensor([1.5]), "b": torch.tensor([2.5])}, order="ba"),
    }


def generate(rng):
    tensors = {
        name: tensor(
            rng, [rng.integer(1, 3), rng.integer(1, 4)], rng.choice(["float32", "bfloat16", "float16"])
        )
        for name in "abcd"
    }
    return case(
        rng.choice("abcd"),
        tensors,
        pad=rng.below(8),
        metadata=rng.chance(1, 2),
        order=rng.choice(["abcd", "cbda", "dbac"]),
    )


FEATURES = {
    "half": {"zh": "这个张量是 BF16 或 F16", "en": "the tensor is BF16 or F16"},
    "first": {"zh": "它的数据在最前面", "en": "its data comes first"},
}


def features(inputs):
    raw = bytes(inputs["file"].tolist())
    length = int.from_bytes(raw[:8], "little")
    entry = json.loads(raw[8 : 8 + length])[inputs["name"]]
    return {"half": entry["dtype"] != "F32", "first": entry["data_offsets"][0] == 0}
