import pytest
import torch
import torch.nn.functional as F
from transformers import Qwen3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from minisgl.distributed import DistributedInfo, reset_tp_info, set_tp_info
from minisgl.layers.activation import silu_and_mul
from minisgl.layers.base import BaseOP, OPList, StateLessOP
from minisgl.layers.embedding import VocabParallelEmbedding
from minisgl.layers.linear import (
    LinearColParallelMerged,
    LinearQKVMerged,
    LinearReplicated,
    LinearRowParallel,
)
from minisgl.layers.norm import RMSNorm, RMSNormFused
from minisgl.layers.rotary import get_rope, inverse_frequencies
from minisgl.models.config import RotaryConfig

pytestmark = pytest.mark.usefixtures("single_rank")


class Leaf(BaseOP):
    def __init__(self) -> None:
        self.weight = torch.zeros(2, 3)
        self.bias = None
        self._private = torch.zeros(1)

    def forward(self) -> None:
        return


class Silent(StateLessOP):
    def __init__(self) -> None:
        self.table = torch.zeros(4)

    def forward(self) -> None:
        return


class Model(BaseOP):
    def __init__(self) -> None:
        self.scale = torch.zeros(1)
        self.layers = OPList([Leaf(), Leaf()])
        self.silent = Silent()
        self.head = Leaf()

    def forward(self) -> None:
        return


NAMES = ["scale", "layers.0.weight", "layers.1.weight", "head.weight"]


def full() -> dict[str, torch.Tensor]:
    return {name: torch.ones(1) if name == "scale" else torch.ones(2, 3) for name in NAMES}


def test_names_are_paths_through_the_layers() -> None:
    assert list(Model().state_dict()) == NAMES


def test_weights_land_where_their_names_say() -> None:
    model = Model()
    weights = full()
    model.load_state_dict(weights)
    assert all(model.state_dict()[name] is weights[name] for name in NAMES)
    assert next(iter(model.layers)).weight is weights["layers.0.weight"]


def test_a_stream_is_never_held_as_a_whole() -> None:
    taken: list[str] = []
    model = Model()

    def stream():
        for name, tensor in full().items():
            assert all(model.state_dict()[before].sum() > 0 for before in taken)
            taken.append(name)
            yield name, tensor

    model.load_state_dict(stream())
    assert taken == NAMES


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: [*w.items(), ("extra.weight", torch.ones(1))], "'extra.weight' is not part of this model"),
        (lambda w: [*w.items(), ("scale", torch.ones(1))], "'scale' is given twice"),
        (lambda w: [pair for pair in w.items() if pair[0] != "head.weight"], "missing weights: head.weight"),
        (lambda w: [], r"missing weights: scale, layers\.0\.weight, layers\.1\.weight and 1 more"),
        (
            lambda w: {**w, "scale": torch.ones(2)},
            r"'scale' is torch.float32 \(2,\), the model expects .* \(1,\)",
        ),
        (lambda w: {**w, "scale": torch.ones(1).half()}, "'scale' is torch.float16"),
    ],
)
def test_exactly_the_models_weights_are_taken(change, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Model().load_state_dict(change(full()))


def test_rms_norm() -> None:
    x = torch.randn(3, 8, dtype=torch.float32)
    norm = RMSNorm(8, eps=1e-6)
    norm.weight = torch.randn(8)
    torch.testing.assert_close(norm.forward(x), F.rms_norm(x, (8,), norm.weight, eps=1e-6))
    half = norm_in(x.bfloat16(), norm)
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), norm.forward(x.bfloat16().float()), atol=2e-2, rtol=2e-2)


def norm_in(x: torch.Tensor, norm: RMSNorm) -> torch.Tensor:
    other = RMSNorm(8, eps=1e-6)
    other.weight = norm.weight.to(x.dtype)
    return other.forward(x)


def test_fused_norm_hands_the_residual_stream_on() -> None:
    norm = RMSNormFused(4, eps=1e-6)
    norm.weight = torch.ones(4)
    x, residual = torch.randn(2, 4), torch.randn(2, 4)
    kept = x.clone(), residual.clone()
    normed, stream = norm.forward(x, residual)
    torch.testing.assert_close(stream, kept[0] + kept[1])
    torch.testing.assert_close(normed, F.rms_norm(stream, (4,), eps=1e-6))
    _, first = norm.forward(x)
    torch.testing.assert_close(first, kept[0])


def test_silu_and_mul() -> None:
    x = torch.randn(5, 6)
    torch.testing.assert_close(silu_and_mul(x), F.silu(x[:, :3]) * x[:, 3:])


SCALINGS: list[dict[str, object]] = [
    {},
    {"rope_type": "linear", "factor": 4.0},
    {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 256,
    },
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512, "attention_factor": 1.25},
    {
        "rope_type": "yarn",
        "factor": 8.0,
        "original_max_position_embeddings": 256,
        "beta_fast": 16,
        "beta_slow": 2,
    },
    {
        "rope_type": "yarn",
        "factor": 8.0,
        "original_max_position_embeddings": 256,
        "mscale": 1.0,
        "mscale_all_dim": 0.8,
        "truncate": False,
    },
]


@pytest.mark.parametrize("scaling", SCALINGS, ids=lambda scaling: str(scaling.get("rope_type", "default")))
def test_frequencies_are_those_of_transformers(scaling: dict[str, object]) -> None:
    got, factor = inverse_frequencies(RotaryConfig(64, 2048, 10000.0, scaling))
    if not scaling:
        wanted, wanted_factor = 1.0 / 10000.0 ** (torch.arange(0, 64, 2) / 64), 1.0
    else:
        config = Qwen3Config(
            head_dim=64, max_position_embeddings=2048, rope_parameters={"rope_theta": 10000.0, **scaling}
        )
        wanted, wanted_factor = ROPE_INIT_FUNCTIONS[str(scaling["rope_type"])](config, torch.device("cpu"))
    torch.testing.assert_close(got, wanted, rtol=1e-6, atol=0)
    assert factor == pytest.approx(wanted_factor)


def test_rotation_depends_on_distance_alone_and_keeps_lengths() -> None:
    rope = get_rope(RotaryConfig(64, 128, 10000.0))
    q, k = torch.randn(1, 2, 64), torch.randn(1, 2, 64)

    def score(at_q: int, at_k: int) -> torch.Tensor:
        rotated_q, _ = rope.forward(torch.tensor([at_q], dtype=torch.int32), q, k)
        _, rotated_k = rope.forward(torch.tensor([at_k], dtype=torch.int32), q, k)
        torch.testing.assert_close(rotated_q.norm(dim=-1), q.norm(dim=-1))
        return (rotated_q * rotated_k).sum(-1)

    torch.testing.assert_close(score(9, 4), score(105, 100), rtol=1e-4, atol=1e-4)
    assert not torch.allclose(score(9, 4), score(9, 5), atol=1e-2)
    torch.testing.assert_close(rope.forward(torch.zeros(1, dtype=torch.int32), q, k)[0], q)


def test_one_table_a_configuration() -> None:
    scaling = {"rope_type": "linear", "factor": 2.0}
    assert get_rope(RotaryConfig(64, 128, 1e4, scaling)) is get_rope(
        RotaryConfig(64, 128, 1e4, dict(scaling))
    )
    assert get_rope(RotaryConfig(64, 128, 1e4)) is not get_rope(RotaryConfig(64, 128, 1e4, scaling))


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        ({"rope_type": "dynamic"}, "'dynamic' is not built"),
        ({"rope_type": "llama3"}, "needs 'low_freq_factor'"),
    ],
)
def test_rope_scalings_we_lack_are_refused(scaling: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        inverse_frequencies(RotaryConfig(64, 128, 1e4, scaling))


def test_layers_are_cut_for_their_rank() -> None:
    reset_tp_info()
    set_tp_info(DistributedInfo(1, 4))
    assert LinearReplicated(8, 12).weight.shape == (12, 8)
    assert LinearColParallelMerged(8, [16, 16]).weight.shape == (8, 8)
    assert LinearRowParallel(16, 8).weight.shape == (8, 4)
    assert LinearQKVMerged(8, 2, 8, 4, False).weight.shape == ((2 + 1 + 1) * 2, 8)
    assert LinearQKVMerged(8, 2, 8, 2, False).weight.shape == ((2 + 1 + 1) * 2, 8)  # a KV head for two ranks
    assert VocabParallelEmbedding(10, 8).weight.shape == (3, 8)
    with pytest.raises(ValueError, match="number of query heads 6 cannot be divided evenly by 4"):
        LinearQKVMerged(8, 2, 6, 2, False)
