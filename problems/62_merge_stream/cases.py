"""Cases of problem 62: names of checkpoints in several orders; each tensor's numbers say which part it is."""

import torch

ATTENTION = ("q_proj", "k_proj", "v_proj")
MLP = ("gate_proj", "up_proj")


def attn(layer, part, kind="weight"):
    return f"model.layers.{layer}.self_attn.{part}.{kind}"


def mlp(layer, part, kind="weight"):
    return f"model.layers.{layer}.mlp.{part}.{kind}"


def case(*names):
    tensors = []
    for i, name in enumerate(names):
        rows = 2 if ".q_proj." in name else 1
        shape = [rows] if name.endswith("bias") else [rows, 2]
        tensors.append(
            torch.full(shape, float(i + 1))
            + torch.arange(float(rows)).reshape([rows] + [1] * (len(shape) - 1)) / 4
        )
    return {"names": list(names), "tensors": tensors}


def whole_layer(layer, *kinds):
    names = [f"model.layers.{layer}.input_layernorm.weight"]
    names += [attn(layer, part, kind) for kind in kinds for part in ATTENTION]
    return names + [attn(layer, "o_proj")] + [mlp(layer, part) for part in (*MLP, "down_proj")]


def public():
    return {
        "one_layer": case("model.norm.weight", attn(0, "q_proj"), attn(0, "k_proj"), attn(0, "v_proj")),
        "gate_and_up": case(mlp(1, "up_proj"), mlp(1, "down_proj"), mlp(1, "gate_proj")),
    }


NOTES = {
    "one_layer": {"zh": "q 有两行，k、v 各一行。", "en": "q has two rows, k and v one each."},
    "gate_and_up": {"zh": "up 先到，gate 仍在上面。", "en": "up comes first, and gate still goes on top."},
}


def fixed():
    return {
        "in_order": case(*whole_layer(0, "weight")),
        "alphabetical": case(*sorted(whole_layer(3, "weight"))),
        "with_bias": case(*whole_layer(2, "weight", "bias")),
        "bias_between": case(
            *[attn(0, part, kind) for part in ("v_proj", "q_proj", "k_proj") for kind in ("bias", "weight")]
        ),
        "layers_mixed": case(
            attn(0, "q_proj"),
            attn(1, "k_proj"),
            attn(1, "q_proj"),
            attn(0, "v_proj"),
            attn(1, "v_proj"),
            attn(0, "k_proj"),
        ),
        "layer_1_and_11": case(
            *[mlp(n, part) for part in MLP for n in (1, 11)], "model.embed_tokens.weight", "lm_head.weight"
        ),
        "nothing_to_merge": case("model.embed_tokens.weight", "model.norm.weight", attn(0, "o_proj")),
        "router_is_no_gate": case(mlp(0, "gate"), mlp(0, "gate_proj"), attn(0, "q_norm"), mlp(0, "up_proj")),
        "nothing": case(),
        "two_layers": case(*whole_layer(0, "weight"), *whole_layer(1, "weight"), "model.norm.weight"),
        "reversed": case(*reversed(whole_layer(0, "weight"))),
    }


def teach():
    return {
        "nothing_to_merge": case("model.norm.weight"),
        "qkv": case(*[attn(0, part) for part in ATTENTION]),
        "vkq": case(*[attn(0, part) for part in reversed(ATTENTION)]),
        "up_gate": case(mlp(0, "up_proj"), mlp(0, "gate_proj")),
        "gate_norm_up": case(mlp(0, "gate_proj"), "model.norm.weight", mlp(0, "up_proj")),
        "mixed": case(mlp(0, "gate_proj"), mlp(1, "up_proj"), mlp(0, "up_proj"), mlp(1, "gate_proj")),
        "bias": case(*[attn(0, part, "bias") for part in ATTENTION]),
    }


def generate(rng):
    kinds = rng.choice([("weight",), ("weight", "bias")])
    names = [
        *whole_layer(rng.below(4), *kinds),
        *whole_layer(rng.integer(4, 12), "weight"),
        "model.norm.weight",
    ]
    return case(*(rng.shuffled(names) if rng.chance(2, 3) else names))


FEATURES = {
    "bias": {"zh": "有 bias", "en": "there is a bias"},
    "unordered": {"zh": "同一组的各部分不按顺序到达", "en": "parts of a set come out of order"},
}


def features(inputs):
    order = {part: i for parts in (ATTENTION, MLP) for i, part in enumerate(parts)}
    seen, unordered = {}, False
    for name in inputs["names"]:
        head, _, kind = name.rpartition(".")
        owner, _, part = head.rpartition(".")
        if part in order:
            unordered |= order[part] < seen.get((owner, kind), -1)
            seen[owner, kind] = order[part]
    return {"bias": any(n.endswith("bias") for n in inputs["names"]), "unordered": unordered}
