"""Cases of problem 60: the keys of config.json that matter here, in the spellings of hub files, of transformers 5, and of
models from before grouped KV heads."""


def case(hidden=1024, heads=16, **keys):
    return {"raw": {"hidden_size": hidden, "num_attention_heads": heads, **keys}}


def public():
    return {
        "hub_file": case(
            num_key_value_heads=8,
            head_dim=128,
            rope_theta=1000000,
            rope_scaling=None,
            eos_token_id=151645,
        ),
        "transformers_5": case(
            num_key_value_heads=8,
            head_dim=128,
            rope_parameters={"rope_type": "default", "rope_theta": 1000000.0},
            eos_token_id=[151645, 151643],
        ),
        "old_llama": case(4096, 32, rope_scaling={"type": "linear", "factor": 2.0}, eos_token_id=2),
    }


NOTES = {
    "hub_file": {
        "zh": "theta 在最外层；head_dim 不等于 1024 / 16。",
        "en": "theta at top level; head_dim is not 1024 / 16.",
    },
    "transformers_5": {"zh": "theta 在子字典里。", "en": "theta inside RoPE's dict."},
    "old_llama": {
        "zh": "没有 KV 头数，没有 theta，类型叫 type。",
        "en": "No KV heads, no theta, and the type is called type.",
    },
}


def fixed():
    return {
        "bare": case(512, 8),
        "nulls": case(512, 8, num_key_value_heads=None, head_dim=None, rope_theta=None, eos_token_id=None),
        "eos_zero": case(eos_token_id=0, num_key_value_heads=2),
        "eos_one_in_list": case(eos_token_id=[7], head_dim=64),
        "eos_three": case(eos_token_id=[128009, 128001, 128008], num_key_value_heads=8),
        "llama3_hub": case(
            2048,
            32,
            num_key_value_heads=8,
            rope_theta=500000.0,
            rope_scaling={"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0},
        ),
        "llama3_transformers_5": case(
            2048,
            32,
            num_key_value_heads=8,
            rope_parameters={"rope_type": "llama3", "factor": 32.0, "rope_theta": 500000.0},
        ),
        "theta_in_both": case(
            rope_theta=10000.0, rope_parameters={"rope_type": "yarn", "rope_theta": 5000000.0}
        ),
        "theta_outside_of_parameters": case(
            rope_theta=250000, rope_parameters={"rope_type": "linear", "factor": 4.0}
        ),
        "both_dicts": case(
            rope_theta=40000,
            rope_parameters={"rope_type": "yarn", "rope_theta": 80000.0},
            rope_scaling={"type": "dynamic", "rope_theta": 3.0},
        ),
        "both_types": case(rope_scaling={"type": "su", "rope_type": "longrope"}, rope_theta=1e6),
        "old_type": case(4096, 32, rope_scaling={"type": "dynamic", "factor": 4.0}, rope_theta=10000.0),
        "one_kv_head": case(896, 14, num_key_value_heads=1, head_dim=64, eos_token_id=11),
        "wide_heads": case(2560, 32, num_key_value_heads=8, head_dim=128, rope_theta=1000000),
    }


def teach():
    return {
        "bare": case(8, 2),
        "kv": case(8, 2, num_key_value_heads=1),
        "head_dim": case(8, 2, head_dim=8),
        "null_head_dim": case(8, 2, head_dim=None),
        "theta": case(8, 2, rope_theta=500.0),
        "theta_inside": case(8, 2, rope_parameters={"rope_theta": 500.0}),
        "old_type": case(8, 2, rope_scaling={"type": "linear"}),
        "eos": case(8, 2, eos_token_id=0),
        "eos_list": case(8, 2, eos_token_id=[1, 2]),
        "both_thetas": case(8, 2, rope_theta=100.0, rope_parameters={"rope_theta": 500.0}),
    }


def generate(rng):
    heads = rng.choice([2, 4, 8, 14])
    keys = {}
    if rng.chance(2, 3):
        keys["num_key_value_heads"] = rng.choice([1, 2, None])
    if rng.chance(1, 2):
        keys["head_dim"] = rng.choice([128, 256, None])
    kind = rng.choice(["llama3", "yarn", "linear", "default"])
    if rng.chance(1, 2):
        keys["rope_theta"] = rng.choice([1e6, 500000, 10000.0])
    if rng.chance(1, 2):
        keys["rope_parameters"] = {"rope_type": kind, "rope_theta": float(rng.integer(2, 90) * 1000)}
    elif rng.chance(1, 2):
        keys["rope_scaling"] = {rng.choice(["type", "rope_type"]): kind, "factor": 2.0}
    keys["eos_token_id"] = rng.choice([None, 0, 5, [5, 9], [0]])
    return case(heads * 64, heads, **keys)


FEATURES = {
    "rope_parameters": {"zh": "有 rope_parameters", "en": "there is rope_parameters"},
    "null": {"zh": "有键的值是 None", "en": "some key is None"},
}


def features(inputs):
    raw = inputs["raw"]
    return {"rope_parameters": "rope_parameters" in raw, "null": any(v is None for v in raw.values())}
