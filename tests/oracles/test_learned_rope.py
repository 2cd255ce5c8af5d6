"""Frequencies as parameters: by loops, against Mistral-Large-4, and what belongs to whom."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import LlamaConfig
from transformers.models.mistral_large4.modeling_mistral_large4 import (
    MistralLarge4TextRotaryEmbedding,
    apply_rotary_pos_emb_interleave,
)

from posenc import Positions, frequencies
from posenc.checking import laws
from posenc.configs import float32
from posenc.encodings.bases.learned_rope import LeRoPE, MixedRoPE
from posenc.encodings.rope import RoPE
from posenc.frequencies import rotary
from sampling import one_in

from .by_hand import channels, close, draw, each, turned

LAYOUTS = ["interleaved", "half"]
ALPHA = [0.3, -0.7, 0.05, 1.2]


def with_alpha(**options):
    encoding = LeRoPE(8, **options)
    with torch.no_grad():
        encoding.alpha.copy_(torch.tensor(ALPHA[: len(encoding.alpha)]))
    return encoding


def at(*rows):
    return Positions.at(torch.tensor(rows))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("side", ["query", "key"])
def test_lerope_turns_by_the_frequency_times_e_to_the_alpha(side, layout, reverse):
    x, rows = draw(1, 2, 3, 4, 8), [[0, 5, 900, 2], [7, 7, 1, 131071]]
    alpha = np.array(ALPHA, dtype=np.float32).astype(np.float64)
    expected = np.empty_like(x)
    for b, h, t in each(2, 3, 4):
        sign = -1 if reverse else 1
        angles = [sign * rows[b][t] * 100 ** (-2 * i / 8) * math.exp(alpha[i]) for i in range(4)]
        expected[b, h, t] = turned(x[b, h, t], angles, layout)
    encoding = with_alpha(base=100.0, layout=layout, reverse=reverse)
    close(encoding.rotate(torch.from_numpy(x), at(*rows), side), expected, atol=1e-9)
    prepared = encoding.prepare(at(*rows), torch.float64)
    close(encoding.rotate(torch.from_numpy(x), prepared, side), expected, atol=1e-9)


def test_a_fresh_lerope_is_rope():
    x = torch.from_numpy(draw(2, 1, 2, 5, 8))
    here = Positions.arange(1, 5, 1000)
    for options in ({}, {"layout": "half", "rotary_dim": 4}, {"axes": 1, "base": 5e5, "trailing": True, "rotary_dim": 6}):
        close(LeRoPE(8, **options).rotate(x, here, "query"), RoPE(8, **options).rotate(x, here, "query"))


def test_lerope_of_scaled_frequencies_keeps_their_magnitudes_and_axes():
    f = replace(frequencies.sections(rotary(8), [1, 1, 2]), cos_sin_scale=1.5, softmax_scale=2.0)
    encoding, fixed = (
        with_alpha(frequencies=f),
        RoPE(
            8, frequencies=frequencies.multiplied(f, np.exp(np.array(ALPHA, dtype=np.float32).astype(np.float64)).tolist())
        ),
    )
    x, here = torch.from_numpy(draw(3, 1, 2, 2, 8)), Positions.at(torch.tensor([[[3, 4, 5], [100, 2, 77]]]))
    close(encoding.rotate(x, here, "key"), fixed.rotate(x, here, "key"))
    assert encoding.softmax_scale(8) == fixed.softmax_scale(8) == 2 / math.sqrt(8)
    assert "norm_preserving" not in encoding.traits


def test_lerope_is_mistral_large_4s():
    parameters = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0, "original_max_position_embeddings": 4096}
    module = MistralLarge4TextRotaryEmbedding(
        LlamaConfig(hidden_size=8, num_attention_heads=1, head_dim=8, rope_parameters=parameters)
    )
    module.alpha.copy_(torch.tensor(ALPHA))
    q, k, ids = (
        torch.from_numpy(draw(4, 1, 2, 4, 8)).float(),
        torch.from_numpy(draw(5, 1, 1, 4, 8)).float(),
        [0, 3, 90, 700],
    )
    theirs = apply_rotary_pos_emb_interleave(q, k, *module(q, torch.tensor([ids])))
    encoding = with_alpha(frequencies=frequencies.yarn(rotary(8), 8.0, 4096), returns="half")
    for x, expected, side in zip((q, k), theirs, ("query", "key"), strict=True):
        torch.testing.assert_close(encoding.rotate(x, at(ids), side), expected, atol=2e-3, rtol=0)  # their fp32 angles
    exact = RoPE(8, returns="half", frequencies=float32.exponentiated(float32.yarn(8, 1e4, 8.0, 4096), module.alpha))
    assert torch.equal(exact.rotate(q, at(ids), "query"), theirs[0])


def test_alpha_learns():
    """The gradient of cos(p·ω·e^α) is -sin(p·ω·e^α)·p·ω·e^α, also through prepared positions."""
    encoding = with_alpha(base=100.0)
    x = torch.zeros(1, 1, 1, 8)
    x[..., ::2] = 1
    prepared = encoding.prepare(at([3]))
    encoding.rotate(x, prepared, "query")[..., ::2].sum().backward()
    for i, alpha in enumerate(ALPHA):
        angle = 3 * 100 ** (-2 * i / 8) * math.exp(alpha)
        assert encoding.alpha.grad[i].item() == pytest.approx(-math.sin(angle) * angle, rel=1e-5)


def test_lerope_refuses_families_by_length():
    with pytest.raises(ValueError, match="family by length"):
        LeRoPE(8, frequencies=frequencies.dynamic(rotary(8), 2.0, 64))


def test_lerope_on_parity_frequencies_has_their_fp32_angles():
    encoding = LeRoPE(8, frequencies=float32.default(8, 1e4))
    with torch.no_grad():
        encoding.alpha.copy_(torch.tensor([0.3, -0.2, 0.1, 0.7]))
    omega = 1.0 / 10000.0 ** (torch.arange(0, 8, 2).float() / 8) * torch.tensor([0.3, -0.2, 0.1, 0.7]).exp()
    cos, sin = encoding.tables(at([131071]), torch.float32)
    assert torch.equal(cos[0, 0], (131071.0 * omega).cos())
    assert torch.equal(sin[0, 0], (131071.0 * omega).sin())


# RoPE-Mixed -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_mixed_pairs_read_all_axes_by_head(axes, layout):
    encoding = laws.draw_parameters(MixedRoPE(8, 3, axes=axes, layout=layout), seed=1)
    omega = encoding.frequencies.detach().double().numpy()
    x, coords = draw(6, 2, 3, 4, 8), np.random.default_rng(7).integers(0, 50, (2, 4, axes))
    expected = np.empty_like(x)
    for b, h, t in each(2, 3, 4):
        angles = [sum(coords[b, t, a] * omega[a, h, n] for a in range(axes)) for n in range(4)]
        expected[b, h, t] = turned(x[b, h, t], angles, layout)
    here = Positions.at(torch.from_numpy(coords[..., 0] if axes == 1 else coords))
    for side in ("query", "key"):
        close(encoding.rotate(torch.from_numpy(x), here, side), expected)
        close(encoding.rotate(torch.from_numpy(x), encoding.prepare(here, torch.float64), side), expected)
    for side in ("value", "output"):
        assert torch.equal(encoding.rotate(torch.from_numpy(x), here, side), torch.from_numpy(x))


def test_fresh_mixed_frequencies_are_a_slanted_cross():
    """Pair j of either half has magnitude base^(-4j/d); the halves are at right angles; every head at its own slant."""
    torch.manual_seed(0)
    for base in (10.0, 100.0):
        omega = MixedRoPE(16, 5, base=base, axes=3).frequencies.detach().double()
        assert omega[2].abs().max() == 0
        for h in range(5):
            for j in range(4):
                first, second = (complex(omega[0, h, n], omega[1, h, n]) for n in (j, j + 4))
                assert abs(first) == pytest.approx(base ** (-4 * j / 16), rel=1e-6)
                assert second / first == pytest.approx(1j, abs=1e-6)
                slant = complex(omega[0, h, 0], omega[1, h, 0])
                assert first / abs(first) == pytest.approx(slant / abs(slant), abs=1e-6)
        assert len({round(math.atan2(omega[1, h, 0], omega[0, h, 0]), 4) for h in range(5)}) == 5
    assert MixedRoPE(8, 1).configuration["base"] == 10.0


def test_mixed_is_the_authors_complex_product():
    """Neighbours as complex numbers times e^(i(x·ω_x + y·ω_y)); the shape of their parameters is ours."""
    encoding = MixedRoPE(8, 2)
    grid = Positions.grid(3, 4)
    y, x = grid.coords[0].double().T
    q = torch.from_numpy(draw(8, 1, 2, 12, 8))
    xy = Positions.at(torch.stack([x, y], dim=-1)[None])
    omega = encoding.frequencies.detach().double()
    angle = x[None, :, None] * omega[0][:, None] + y[None, :, None] * omega[1][:, None]
    expected = torch.view_as_real(
        torch.view_as_complex(q.unflatten(-1, (-1, 2))) * torch.polar(torch.ones_like(angle), angle)
    )
    close(encoding.rotate(q, xy, "query"), expected.flatten(-2))


def test_slices_of_heads_and_what_does_not_fit():
    encoding = laws.draw_parameters(MixedRoPE(8, 4), seed=2)
    q, here = torch.from_numpy(draw(9, 1, 4, 6, 8)), Positions.grid(2, 3)
    close(encoding.heads(1, 3).rotate(q[:, 1:3], here, "query"), encoding.rotate(q, here, "query")[:, 1:3])
    with pytest.raises(ValueError, match="built for n_heads=4, got a tensor with 2"):
        encoding.rotate(q[:, :2], here, "key")
    with pytest.raises(ValueError, match="built for d_head=8, got a tensor with 4"):
        encoding.rotate(q[..., :4], here, "key")
    with pytest.raises(ValueError, match="d_head: expected a multiple of 4, got 6"):
        MixedRoPE(6, 2)
    with pytest.raises(ValueError, match="side: expected one of"):
        encoding.rotate(q, here, "keys")
    with pytest.raises(ValueError, match=r"positions \[1, 2\] for tokens"):
        encoding.rotate(q, Positions.grid(1, 2), "key")
    with pytest.raises(ValueError, match="reads 2 coordinate"):
        encoding.rotate(q, Positions.arange(1, 6), "key")


# Both -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: with_alpha(), lambda: MixedRoPE(8, 2, axes=1)])
def test_tables_belong_to_their_parameters(make):
    encoding, x = make(), torch.from_numpy(draw(1, 1, 2, 3, 8)).float()
    prepared = encoding.prepare(Positions.arange(1, 3))
    encoding.rotate(x, prepared, "query")
    for other in (make(), copy.deepcopy(encoding)):
        assert other.identity != encoding.identity
        with pytest.raises(ValueError, match="prepared by"):
            other.rotate(x, prepared, "query")


@pytest.mark.acceptance
@pytest.mark.parametrize("make", one_in(2, [lambda: LeRoPE(8), lambda: MixedRoPE(8, 4, axes=1)]))
def test_the_laws(make):
    encoding = laws.draw_parameters(make(), seed=1)
    for dtype in (torch.float64, torch.bfloat16):
        laws.check(encoding, laws.Setting(dtype=dtype, n_kv_heads=4))


def test_pairs_stand_where_the_layout_says():
    """One channel alone spreads into its partner only."""
    for layout in LAYOUTS:
        for pair in range(4):
            first, second = channels(pair, 8, layout)
            x = torch.zeros(1, 1, 1, 8, dtype=torch.float64)
            x[..., first] = 1
            for encoding in (
                with_alpha(layout=layout),
                laws.draw_parameters(MixedRoPE(8, 1, axes=1, layout=layout), seed=4),
            ):
                got = encoding.rotate(x, at([5]), "query")[0, 0, 0]
                assert set(got.nonzero().flatten().tolist()) == {first, second}
