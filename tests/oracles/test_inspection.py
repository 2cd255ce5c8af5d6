"""What frequencies mean, where two models part, how a context grows: against sums done here."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from transformers import Gemma3TextConfig, LlamaConfig
from transformers.models.gemma3.modeling_gemma3 import Gemma3RotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from posenc.configs import read_config
from posenc.configs.report.difference import APART, differences, first_apart
from posenc.configs.report.extension import METHODS, extend
from posenc.configs.report.meaning import bfloat16, distinct_in_bfloat16, leaving, meaning
from posenc.configs.report.tables import structure
from posenc.frequencies import rotary

LLAMA = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "max_position_embeddings": 4096,
    "rope_theta": 10000.0,
}


def test_unfinished_pairs_of_the_textbook_model():
    """Base 10 000, 128 channels, 4096 positions: 18 of 64 pairs; base 500 000 at 8192: 29 (methods, tutorial claim f)."""
    for base, length, expected in ((1e4, 4096, 18), (5e5, 8192, 29)):
        slow = [i for i in range(64) if 2 * math.pi * base ** (2 * i / 128) > length]
        assert len(slow) == expected
        found = meaning(rotary(128, base), length)
        assert (found.unfinished, found.first_unfinished) == (expected, slow[0])
        assert leaving(rotary(128, base), length, 2 * length) == tuple(slow)


def test_nothing_leaves_within_the_trained_length_or_within_a_window():
    f = rotary(128)
    assert leaving(f, 4096, 4096) == ()
    assert leaving(f, 4096, 8192, window=1024) == ()
    assert leaving(f, 4096, 8192, window=8192) != ()


def test_the_error_of_fp32_angles_is_that_of_numpy():
    values = [5e5 ** (-2 * i / 128) for i in range(64)]
    last = 131071
    worst = max(abs(math.cos(float(np.float32(v) * np.float32(last))) - math.cos(v * last)) for v in values)
    found = meaning(rotary(128, 5e5), last + 1)
    assert found.float32_error == pytest.approx(worst, rel=1e-9)
    assert found.largest_angle == last
    assert found.longest == pytest.approx(2 * math.pi * 5e5 ** (126 / 128))


def test_bfloat16_is_that_of_torch():
    values = torch.randn(500, dtype=torch.float64) * torch.logspace(-6, 6, 500, dtype=torch.float64)
    rounded = values.float().bfloat16().double()  # through fp32: 24 bits, then 8
    again = torch.tensor([bfloat16(v) for v in values.float().double().tolist()], dtype=torch.float64)
    assert (again == rounded).all()
    for length in [*range(1, 1100), 4096, 5001, 131072]:
        assert distinct_in_bfloat16(length) == torch.arange(length).bfloat16().unique().numel(), length


def test_positions_where_two_models_part_are_found_by_trying_them_all():
    for a, b, limit in ((1e4, 1.1e4, 4096), (1e4, 1.0001e4, 8192), (5e5, 5.00001e5, 4096), (1e4, 1e6, 100)):
        one, two = rotary(64, a), rotary(64, b)
        first = None
        for p in range(limit):
            apart = [
                abs(complex(math.cos(p * x), math.sin(p * x)) - complex(math.cos(p * y), math.sin(p * y)))
                for x, y in zip(one, two, strict=True)
            ]
            if max(apart) > APART:
                first = (p, next(i for i, value in enumerate(apart) if value > APART))
                break
        assert first_apart(one, two, limit) == (first or (None, None))


def test_a_magnitude_parts_models_at_once():
    yarn = LLAMA | {"rope_scaling": {"type": "yarn", "factor": 1.0001, "original_max_position_embeddings": 4096}}
    assert differences(read_config(LLAMA), read_config(LLAMA)) == []
    louder = LLAMA | {"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}}
    (only,) = differences(read_config(LLAMA), read_config(louder))
    assert (only.position, only.pair) == (0, 0)
    assert "scaling rotary against yarn" in only.what
    quiet = differences(read_config(LLAMA), read_config(yarn))
    assert quiet[0].position is None or quiet[0].position > 0


def test_layers_windows_lengths_and_kinds_are_compared():
    fewer = differences(read_config(LLAMA), read_config(LLAMA | {"num_hidden_layers": 3}))
    assert [one.what for one in fewer] == ["2 layers against 3"]
    longer = differences(read_config(LLAMA), read_config(LLAMA | {"max_position_embeddings": 8192}))
    assert longer == []  # of the same positions
    learned = read_config({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 4096})
    assert "RoPE against Learned" in differences(read_config(LLAMA), learned)[0].what
    window = {"model_type": "mistral", **{k: v for k, v in LLAMA.items() if k != "model_type"}, "sliding_window": 64}
    assert differences(read_config(LLAMA), read_config(window))[0].what == "a window of everything against 64"


@pytest.mark.parametrize("spelling", ["v4", "v5"])
@pytest.mark.parametrize("method", METHODS)
def test_transformers_takes_every_fragment_and_turns_as_promised(method, spelling, caplog):
    config = dict(LLAMA)
    if spelling == "v5":
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": config.pop("rope_theta")}
    (made,) = extend(config, read_config(config), 32768, (method,))
    merged = config | json.loads(json.dumps(made.fragment))
    with caplog.at_level("WARNING"):
        loaded = LlamaConfig(**{key: value for key, value in merged.items() if key != "model_type"})
    assert "nrecognized" not in caplog.text
    turning = LlamaRotaryEmbedding(loaded)
    turning(torch.zeros(1, 1, 128), torch.tensor([[32767]]))  # the long set of longrope is chosen here
    frequencies = turning.inv_freq.double()
    assert torch.allclose(frequencies, torch.tensor(made.after.values, dtype=torch.float64), rtol=3e-6, atol=0)
    assert float(turning.attention_scaling) == pytest.approx(made.after.cos_sin_scale, rel=1e-6)
    assert loaded.max_position_embeddings == 32768


def test_extension_starts_from_the_length_before_any_scaling():
    scaled = LLAMA | {
        "max_position_embeddings": 32768,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 4096,
        },
    }
    (yarn,) = extend(scaled, read_config(scaled), 65536, ("yarn",))
    assert yarn.factor == 16
    assert yarn.fragment["rope_scaling"] == {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 4096}
    with pytest.raises(ValueError, match="more than the 32768 positions that the file's settings are made for"):
        extend(scaled, read_config(scaled), 32768)  # the trained length is 4096, and the file already reads that far


def test_linear_slows_all_alike_and_ntk_only_the_slowest_by_the_factor():
    linear, ntk = extend(LLAMA, read_config(LLAMA), 16384, ("linear", "ntk"))
    assert linear.after[5] == pytest.approx(linear.before[5] / 4)
    assert (ntk.after[0], ntk.after[63]) == pytest.approx((ntk.before[0], ntk.before[63] / 4))
    assert ntk.fragment["rope_theta"] == pytest.approx(1e4 * 4 ** (128 / 126))


def test_a_sinusoid_is_a_perfectly_relative_table_and_noise_is_not():
    p = torch.arange(200, dtype=torch.float64)[:, None]
    w = 10000.0 ** (-torch.arange(32, dtype=torch.float64) / 32)
    table = torch.cat([(p * w).sin(), (p * w).cos()], dim=1)
    found = structure(table)
    assert found["by_distance"] == pytest.approx(1, abs=1e-9)
    assert found["offset_symmetry"] == pytest.approx(0, abs=1e-9)
    assert found["similarity"]["4"] == pytest.approx(float((4 * w).cos().mean()))
    noise = torch.randn(200, 64, generator=torch.Generator().manual_seed(0))
    noise[[3, 77]] *= 1e-4
    found = structure(noise)
    assert found["by_distance"] < 0.1
    assert found["offset_symmetry"] > 0.05
    assert found["dead_rows"] == [3, 77]


def test_nested_settings_change_for_the_layers_that_see_everything():
    config = json.loads(json.dumps(Gemma3TextConfig().to_dict(), default=str))
    for made in extend(config, read_config(config), 10**6, ("yarn", "ntk", "linear", "llama3")):
        turning = Gemma3RotaryEmbedding(Gemma3TextConfig(**{**config, **made.fragment}))
        wide = turning.full_attention_inv_freq.double()
        assert torch.allclose(wide, torch.tensor(made.after.values, dtype=torch.float64), rtol=3e-6, atol=0)
        assert float(turning.full_attention_attention_scaling) == pytest.approx(made.after.cos_sin_scale, rel=1e-6)
        assert float(turning.sliding_attention_inv_freq[1]) == pytest.approx(1e4 ** (-2 / 256), rel=1e-6)


@pytest.mark.parametrize("order", [("sliding_attention", "indexed_attention"), ("indexed_attention", "sliding_attention")])
def test_indexed_layers_see_everything_and_change_in_whatever_order_the_settings_come(order):
    bases = {"sliding_attention": 5e4, "indexed_attention": 8e7}
    nested = {kind: {"rope_type": "default", "rope_theta": bases[kind]} for kind in order}
    config = {
        "model_type": "dots3_note_text",
        "num_hidden_layers": 4,
        "layer_types": [*order, *order],
        "max_position_embeddings": 4096,
        "rope_parameters": nested,
    }
    for made in extend(config, read_config(config), 16384, ("yarn", "ntk", "linear", "llama3")):
        changed = made.fragment["rope_parameters"]
        assert changed["sliding_attention"] == nested["sliding_attention"]
        assert changed["indexed_attention"] != nested["indexed_attention"]
        assert made.after.values[-1] < made.before.values[-1]


def test_a_method_that_the_family_cannot_be_told_is_said_so():
    long = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 48, "long_factor": [2.0] * 48}
    config = {
        "model_type": "phi3",
        "hidden_size": 3072,
        "num_attention_heads": 32,
        "rope_parameters": long,
        "max_position_embeddings": 131072,
        "original_max_position_embeddings": 4096,
    }
    found = {one.method: one for one in extend(config, read_config(config), 262144)}
    assert found["yarn"].fragment == {}
    english, chinese = found["yarn"].note.both()
    assert "short_factor: missing" in english
    assert "short_factor" in chinese
    assert "missing" not in chinese
    assert found["longrope"].fragment["original_max_position_embeddings"] == 4096
    with pytest.raises(ValueError, match="--method yarn: phi3's code does not support it"):
        extend(config, read_config(config), 262144, ("yarn",))
