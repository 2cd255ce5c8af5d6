"""Class D: scalings of frequencies, and configurations that are read half."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
import torch

import posenc
import posenc.frequencies
from field_bugs.reference import angles, frequencies, rotated
from field_bugs.worlds import heads, near, same, tokens
from posenc import Positions
from posenc.configs import spec as specs
from posenc.encodings.rope import RoPE
from posenc.frequencies import dynamic, longrope, proportional, rotary, yarn_range
from posenc.frequencies.lengths import DynamicNTK, LongRoPE
from posenc.support.tensors import tables_at

L = 32  # the trained length


def of_dynamic(length: int = 1) -> RoPE:
    return RoPE(8, frequencies=dynamic(rotary(8), 2.0, L), length=length)


def of_longrope(length: int = 1) -> RoPE:
    return RoPE(8, frequencies=longrope(rotary(8), [1.0] * 4, [3.0] * 4, L, factor=4.0), length=length)


FAMILIES = {"dynamic": of_dynamic, "longrope": of_longrope}


def reads_the_longest(patch):
    """The frequencies follow the largest position of the call, as in libraries that scale inside of forward."""
    fixed = RoPE.tables

    def tables(self, at, dtype):
        by_length = self.configuration["frequencies"]
        if isinstance(by_length, (DynamicNTK, LongRoPE)):
            self = RoPE(self.d_head, frequencies=by_length.at_length(int(at.coords.max()) + 1))
        return fixed(self, at, dtype)

    patch.setattr(RoPE, "tables", tables)


# D1, D2, D4, D5, D6 -----------------------------------------------------------------------------------------------------


def test_D1_short_long_short_gives_the_same_short():
    x, at = heads(1, 8), Positions.arange(1, 8)
    for name, make in FAMILIES.items():
        encoding = make()
        first = encoding.at_length(8).rotate(x, at, "query")
        encoding.at_length(8 * L).rotate(heads(1, 8 * L), Positions.arange(1, 8 * L), "query")
        same(encoding.at_length(8).rotate(x, at, "query"), first, name)
        same(encoding.rotate(x, at, "query"), first, name)


def plant_D1_the_longest_length_stays(patch):
    at_length = DynamicNTK.at_length
    longest = [1]

    def remembers(self, n):
        longest[0] = max(longest[0], n)
        return at_length(self, longest[0])

    patch.setattr(DynamicNTK, "at_length", remembers)


def test_D2_keys_cached_one_by_one_are_the_keys_of_one_pass():
    x, n = heads(1, 2 * L), 2 * L
    for name, make in FAMILIES.items():
        encoding = make().at_length(n)
        whole = encoding.rotate(x, Positions.arange(1, n), "key")
        steps = [encoding.rotate(x[:, :, t : t + 1], Positions.decode([t]), "key") for t in range(n)]
        near(torch.cat(steps, dim=2), whole, name, 1e-6)


def plant_D2_each_key_by_the_length_so_far(patch):
    reads_the_longest(patch)


def test_D4_dynamic_frequencies_follow_the_formula():
    family = dynamic(rotary(64), 2.0, L)
    assert family.at_length(L).base == family.at_length(L // 2).base == 10000.0
    for n in (2 * L, 4 * L):
        base = 10000.0 * (2.0 * n / L - 1.0) ** (64 / 62)
        np.testing.assert_allclose(family.at_length(n).values, frequencies(64, base), rtol=1e-12)
    assert family.at_length(4 * L)[-1] < family.at_length(2 * L)[-1] < family.at_length(L)[-1]


def plant_D4_dynamic_is_a_constant(patch):
    at_length = DynamicNTK.at_length
    patch.setattr(DynamicNTK, "at_length", lambda self, n: at_length(self, 2 * self.trained_length))


def test_D5_a_long_batch_mate_does_not_change_a_short_row():
    x = heads(2, 6)
    for name, make in FAMILIES.items():
        for length in (6, 4 * L):
            encoding = make().at_length(length)
            together = encoding.rotate(x, Positions.arange(2, 6, torch.tensor([0, 3 * L])), "query")
            same(together[:1], encoding.rotate(x[:1], Positions.arange(1, 6), "query"), name)


def plant_D5_the_longest_row_decides(patch):
    reads_the_longest(patch)


def test_D6_longrope_keeps_one_set_of_factors_across_the_trained_length():
    """The caller says which: at_length(n). Tables of the other set are refused."""
    n, x = L + 8, heads(1, L + 8)
    for declared in (L, n):
        encoding = of_longrope().at_length(declared)
        whole = encoding.rotate(x, Positions.arange(1, n), "key")
        stretch = 3.0 if declared > L else 1.0
        scale = math.sqrt(1 + math.log(4.0) / math.log(L))
        near(whole, rotated(x, range(n), frequencies(8) / stretch, scale=scale), f"declared {declared}", 1e-5)
        steps = [encoding.rotate(x[:, :, t : t + 1], Positions.decode([t]), "key") for t in range(n)]
        near(torch.cat(steps, dim=2), whole, f"declared {declared}", 1e-6)
    stale = of_longrope().at_length(L).prepare(Positions.arange(1, n))
    with pytest.raises(ValueError, match=r"prepared by .* used with"):
        of_longrope().at_length(n).rotate(x, stale, "key")


def plant_D6_the_set_changes_in_the_middle_of_a_request(patch):
    reads_the_longest(patch)


def plant_D6_stale_tables_are_taken(patch):
    def anybodys(encoding, at, dtype):
        return next(iter(at.tables.values()), None) or encoding.tables(at, dtype)

    patch.setattr(sys.modules[RoPE.__module__], "tables_at", anybodys)


# D7 … D9: YaRN ----------------------------------------------------------------------------------------------------------


def config(model_type: str = "llama", **changes) -> dict:
    sizes = {
        "hidden_size": 256,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "max_position_embeddings": 16384,
        "rope_theta": 10000.0,
    }
    return {"model_type": model_type, **sizes, **changes}


def scaled(rope_type: str, key: str = "rope_type", **settings) -> posenc.frequencies.Frequencies:
    """The frequencies that a config.json with this scaling gives."""
    given = {key: rope_type, "original_max_position_embeddings": 4096, **settings}
    return posenc.read_config(config(rope_scaling=given)).encoding(0).frequencies


MAGNITUDES = [
    ({"factor": 64.0}, 1.4158883),
    ({"factor": 64.0, "attention_factor": 1.0}, 1.0),
    ({"factor": 16.0, "mscale": 1.0, "mscale_all_dim": 1.0}, 1.0),
    ({"factor": 16.0}, 1.2772589),
    ({"factor": 128.0}, 1.4852030),
    ({"factor": 1.0}, 1.0),
]


def test_D7_the_magnitude_of_yarn_is_the_files():
    for settings, expected in MAGNITUDES:
        assert scaled("yarn", **settings).cos_sin_scale == pytest.approx(expected, abs=5e-8), settings


def test_D7_the_magnitude_reaches_cos_and_sin_once():
    cos, sin = tables_at(RoPE(64, frequencies=scaled("yarn", factor=64.0)), Positions.arange(1, 5, 700), torch.float64)
    near((cos.square() + sin.square()).sqrt(), torch.full_like(cos, 1.4158883083359672), "√(cos² + sin²)", 1e-12)


def test_D7_a_misspelt_key_is_said():
    """`attn_factor`, as one published configuration spells it, is not dropped in silence."""
    spec = posenc.read_config(
        config(
            rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096, "attn_factor": 1.0}
        )
    )
    assert any("attn_factor" in f"{remark.key} {remark.text}" for remark in spec.remarks)


def plant_D7_the_attention_factor_is_ignored(patch):
    made = posenc.frequencies.yarn

    def ignores(f, *given, attention_factor=None, **named):
        return made(f, *given, **named)

    patch.setattr(posenc.frequencies, "yarn", ignores)


def plant_D7_the_attention_factor_goes_through_a_second_logarithm(patch):
    from posenc.frequencies import scalings

    made = scalings._attention_factor

    def twice(factor, attention_factor, *rest):
        scale, said = made(factor, attention_factor, *rest)
        return 1 + 0.1 * math.log(scale) + scale - 1, said

    patch.setattr(scalings, "_attention_factor", twice)


def deepseek(**changes) -> posenc.PositionSpec:
    scaling = {
        "type": "yarn",
        "factor": 40.0,
        "original_max_position_embeddings": 4096,
        "beta_fast": 32,
        "beta_slow": 1,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    }
    return posenc.read_config(
        config(
            "deepseek_v3",
            qk_rope_head_dim=64,
            qk_nope_head_dim=128,
            v_head_dim=128,
            rope_scaling={**scaling, **changes},
            max_position_embeddings=163840,
        )
    )


def test_D8_the_two_halves_of_deepseeks_magnitude():
    """cos and sin keep their size; the softmax scale carries mscale². Position 0 or a single key would not show it."""
    for mscale, expected in ((0.707, 1.590), (1.0, 1.874)):
        encoding = deepseek(mscale=mscale, mscale_all_dim=mscale).encoding(0)
        cos, sin = tables_at(encoding, Positions.arange(1, 4, 700), torch.float64)
        near((cos.square() + sin.square()).sqrt(), torch.ones_like(cos), f"mscale {mscale}", 1e-12)
        assert encoding.softmax_scale(192) * math.sqrt(192) == pytest.approx(expected, abs=5e-4)


def plant_D8_the_softmax_half_is_missing(patch):
    patch.setattr(RoPE, "softmax_scale", posenc.PositionalEncoding.softmax_scale)


def test_D9_the_range_of_yarn():
    assert yarn_range(rotary(64, 150000.0), 4096, truncate=False) == pytest.approx((8.092779, 17.398025), abs=5e-7)
    assert yarn_range(rotary(64, 150000.0), 4096, truncate=True) == (8, 18)
    assert yarn_range(rotary(64), 131072, truncate=False)[1] == pytest.approx(34.55, abs=5e-3)  # beyond the last pair, 31
    low, high = yarn_range(rotary(8), 4096, beta_fast=1.0, beta_slow=1.0)
    assert low < high


def test_D9_truncate_of_the_file_is_read():
    settings = {"factor": 32.0, "original_max_position_embeddings": 4096, "rope_type": "yarn"}
    values = []
    for truncate in (True, False):
        low, high = (8, 18) if truncate else (8.092779, 17.398025)
        expected = []
        for i, w in enumerate(frequencies(64, 150000.0)):
            slow = min(max((i - low) / (high - low), 0), 1)
            expected.append(w * (1 - slow) + w / 32.0 * slow)
        spec = posenc.read_config(config(rope_theta=150000.0, rope_scaling={**settings, "truncate": truncate}))
        values.append(spec.encoding(0).frequencies.values)
        np.testing.assert_allclose(values[-1], expected, rtol=1e-6)
    assert values[0] != values[1]


def plant_D9_always_truncated(patch):
    made = posenc.frequencies.yarn
    patch.setattr(posenc.frequencies, "yarn", lambda *given, truncate=True, **named: made(*given, **named))


# D11, D12 ---------------------------------------------------------------------------------------------------------------

LLAMA3 = {"factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


def llama3(key: str = "rope_type") -> posenc.frequencies.Frequencies:
    spec = posenc.read_config(config(rope_theta=5e5, rope_scaling={key: "llama3", **LLAMA3}))
    return spec.encoding(0).frequencies


def test_D11_llama3_by_its_turns_in_the_trained_length():
    plain = frequencies(64, 5e5)
    for key in ("rope_type", "type"):
        got = np.array(llama3(key).values)
        np.testing.assert_allclose(got[:15], plain[:15], rtol=1e-12)
        assert ((got[15:18] < plain[15:18]) & (got[15:18] > plain[15:18] / 32)).all()
        np.testing.assert_allclose(got[18:], plain[18:] / 32, rtol=1e-12)
        turns = 8192 * plain[15:18] / (2 * np.pi)
        keep = (turns - 1) / 3
        np.testing.assert_allclose(got[15:18], (1 - keep) * plain[15:18] / 32 + keep * plain[15:18], rtol=1e-12)


def test_D11_the_table_of_decoding_is_that_of_prefill():
    encoding = RoPE(64, frequencies=llama3())
    whole = tables_at(encoding, Positions.arange(1, 8, 29_000), torch.float32)
    for t in range(8):
        for mine, theirs in zip(tables_at(encoding, Positions.decode([29_000 + t]), torch.float32), whole, strict=True):
            near(mine[0, 0], theirs[0, t], f"token {t}", 1e-7)


def plant_D11_the_context_length_takes_the_trained_lengths_place(patch):
    made = posenc.frequencies.llama3
    patch.setattr(
        posenc.frequencies, "llama3", lambda f, *given, **named: made(f, *given, **{**named, "trained_length": 131072})
    )


def plant_D11_the_scaling_is_dropped(patch):
    patch.setattr(posenc.frequencies, "llama3", lambda f, *given, **named: f)


def test_D12_the_base_is_the_files_in_both_spellings():
    old = config(rope_theta=5e5)
    new = {key: value for key, value in old.items() if key != "rope_theta"}
    new["rope_parameters"] = {"rope_type": "default", "rope_theta": 5e5}
    for given in (old, new):
        assert posenc.read_config(given).encoding(0).frequencies.base == 5e5


def test_D12_a_missing_base_is_said():
    given = {key: value for key, value in config().items() if key != "rope_theta"}
    spec = posenc.read_config(given)
    assert any("rope_theta" in f"{remark.key} {remark.text}" for remark in spec.remarks)


def test_D12_every_kind_of_layer_has_its_own_base():
    """Gemma 3: sliding layers at 10 000, full ones at 1 000 000 with positions divided by 8."""
    spec = posenc.read_config(
        config(
            "gemma3_text",
            head_dim=64,
            layer_types=["sliding_attention", "full_attention"],
            rope_theta=1e6,
            rope_local_base_freq=1e4,
            rope_scaling={"rope_type": "linear", "factor": 8.0},
        )
    )
    np.testing.assert_allclose(spec.encoding(0).frequencies.values, frequencies(64, 1e4), rtol=1e-12)
    np.testing.assert_allclose(spec.encoding(1).frequencies.values, frequencies(64, 1e6) / 8, rtol=1e-12)


def plant_D12_the_base_is_10000_whatever_the_file_says(patch):
    made = specs.Rotation.frequencies

    def forgets(self, arithmetic="float64"):
        return made(specs.Rotation(self.width, 10000.0, self.kind, self.parameters, self.maps), arithmetic)

    patch.setattr(specs.Rotation, "frequencies", forgets)


# D13, D14 ---------------------------------------------------------------------------------------------------------------


def test_D13_channels_beyond_the_rotary_ones_pass_bit_by_bit():
    positions = range(700, 2356, 207)
    x, at = heads(1, len(positions), 64), Positions.at(torch.tensor([list(positions)]))
    for layout in ("half", "interleaved"):
        got = RoPE(64, rotary_dim=16, layout=layout).rotate(x, at, "query")
        assert torch.equal(got[..., 16:], x[..., 16:])
        near(got, rotated(x, positions, frequencies(16), layout), layout, 2e-6)


def test_D13_the_factor_of_the_file_is_applied_once():
    spec = posenc.read_config(config("phi", partial_rotary_factor=0.5))
    encoding = spec.encoding(0)
    assert encoding.rotary_dim == 32
    np.testing.assert_allclose(encoding.frequencies.values, frequencies(32), rtol=1e-12)


def test_D13_proportional_is_another_method():
    got = proportional(64, 10000.0, 0.25).values
    np.testing.assert_allclose(got[:8], frequencies(64)[:8], rtol=1e-12)
    assert set(got[8:]) == {0.0}


def test_D13_widths_that_cannot_turn_are_refused():
    for wrong in (15, 66, 16.0, 0):
        with pytest.raises((ValueError, TypeError), match="rotary_dim"):
            RoPE(64, rotary_dim=wrong)


def plant_D13_the_exponent_has_the_whole_head(patch):
    import posenc.encodings.rope as rope

    made = rope._shared_evenly

    def wrong(d_head, rotary_dim, axes, base):
        values = tuple(base ** (-2 * i / d_head) for i in range(rotary_dim // 2))
        return posenc.frequencies.Frequencies(values) if rotary_dim < d_head else made(d_head, rotary_dim, axes, base)

    patch.setattr(rope, "_shared_evenly", wrong)


def smollm3() -> posenc.PositionSpec:
    return posenc.read_config(config("smollm3", num_hidden_layers=4, num_key_value_heads=4, no_rope_layers=[1, 1, 1, 0]))


def test_D14_a_layer_without_rotation_does_not_read_positions():
    """`no_rope_layers` says 1 where the layer rotates."""
    spec, q = smollm3(), heads(1, 6, 64)
    near_at, far_at = Positions.arange(1, 6), Positions.at(torch.tensor([[0, 5, 9, 700, 701, 2000]]))
    for layer, rotates in enumerate([True, True, True, False]):
        outs = [spec.attend(layer, q, q, q, at) for at in (near_at, far_at)]
        assert torch.equal(*outs) is not rotates, layer


def test_D14_layers_are_listed_with_what_they_do():
    spec = smollm3()
    assert [bool(layer.uses) for layer in spec.layers] == [True, True, True, False]
    made = spec.encodings()
    x, at = tokens(1, 4, 256), Positions.arange(1, 4, 50)
    q = heads(1, 4, 64)
    assert torch.equal(made.at_layer(3).rotate(q, at, "query"), q)
    assert not torch.equal(made.at_layer(0).rotate(q, at, "query"), q)
    same(made.at_layer(0).embed(x, at), x)


def plant_D14_the_flag_is_read_the_other_way_round(patch):
    layer = specs.PositionSpec.layer

    def turned_round(self, n):
        return layer(self, len(self.layers) - 1 - n)

    patch.setattr(specs.PositionSpec, "layer", turned_round)


def test_D13_angles_of_a_partial_head_use_its_own_width():
    """The exponent divides by the rotary width, not by the width of the head."""
    cos, _ = tables_at(RoPE(64, rotary_dim=16), Positions.arange(1, 4, 700), torch.float64)
    near(cos[0], np.cos(angles(range(700, 704), frequencies(16))), "cos", 1e-12)
