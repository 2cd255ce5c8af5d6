"""DyPE's frequencies from the paper's formulas and the authors' listing. Issachar et al. 2025, section 4."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import posenc
from posenc import frequencies
from posenc.encodings.rope import RoPE

from .by_hand import close

D, L, BASE = 56, 64, 10000.0  # an axis of FLUX


def correction(turns: float) -> float:
    return D * math.log(L / (turns * 2 * math.pi)) / (2 * math.log(BASE))


def ramp(fast: float, slow: float) -> np.ndarray:
    low, high = max(math.floor(correction(fast)), 0), min(min(math.ceil(correction(slow)), D - 1), D // 2)
    if low == high:
        high += 0.001
    return np.clip((np.arange(D // 2) - low) / (high - low), 0, 1)


def theirs(s: float, t: float, method: str, *, exponent=2.0, beta=(1.25, 0.75), gamma=(16, 2), swap=False) -> np.ndarray:
    """get_1d_rotary_pos_embed of the authors' code, and its base for "ntk"."""
    plain = BASE ** (-np.arange(0, D, 2) / D)
    kappa = t**exponent
    if method == "ntk":
        ntk_factor = max(1.0, (s ** (D / (D - 2))) ** (2.0 * kappa))
        return (BASE * ntk_factor) ** (-np.arange(0, D, 2) / D)
    linear, ntk = plain / s, (BASE * s ** (D / (D - 2))) ** (-np.arange(0, D, 2) / D)
    if swap:
        linear, ntk = ntk, linear
    mask = 1 - ramp(beta[0] * kappa, beta[1] * kappa)
    found = linear * (1 - mask) + ntk * mask
    mask = 1 - ramp(gamma[0] * kappa, gamma[1] * kappa)
    return found * (1 - mask) + plain * mask


@pytest.mark.parametrize("method", ["yarn", "ntk"])
@pytest.mark.parametrize("time", [1.0, 0.8, 0.5, 0.2, 0.05])
@pytest.mark.parametrize("factor", [1.5, 2.0, 4.0])
def test_frequencies_of_the_authors_code(factor, time, method):
    got = frequencies.dype(frequencies.rotary(D, BASE), factor, time, L, method=method)
    close(np.array(list(got)), theirs(factor, time, method))
    assert got.cos_sin_scale == (pytest.approx(0.1 * math.log(factor) + 1) if method == "yarn" else 1.0)


@pytest.mark.parametrize(
    ("method", "mistake"),
    [
        ("ntk", {"exponent": 1.0}),
        ("yarn", {"exponent": 1.0}),
        ("yarn", {"beta": (0.75, 0.25)}),
        ("yarn", {"gamma": (32, 1)}),
        ("yarn", {"swap": True}),
    ],
    ids=str,
)
def test_the_oracle_sees_a_broken_formula(method, mistake):
    got = np.array(list(frequencies.dype(frequencies.rotary(D, BASE), 4.0, 0.6, L, method=method)))
    expected = theirs(4.0, 0.6, method, **mistake)
    with pytest.raises(AssertionError):
        close(got, expected, atol=1e-6)


@pytest.mark.parametrize("method", ["yarn", "ntk"])
@pytest.mark.parametrize("time", [0.0, 1e-9])
def test_at_the_last_step_all_frequencies_are_those_of_training(method, time):
    """The authors' ramps turn round at such times: their high end is held at the last pair, their low end is not."""
    plain = frequencies.rotary(D, BASE)
    close(np.array(list(frequencies.dype(plain, 4.0, time, L, method=method))), np.array(list(plain)))


def test_no_scaling_is_rope():
    plain = frequencies.rotary(D, BASE)
    for method in ("yarn", "ntk"):
        assert tuple(frequencies.dype(plain, 1.0, 1.0, L, method=method)) == pytest.approx(tuple(plain), abs=1e-15)


@pytest.mark.parametrize("time", [1.0, 0.5])
def test_yarn_by_axis_with_the_magnitude_on_the_channels(time):
    """The authors' FluxPosEmbed: the first axis as trained, cos and sin of rows and columns times 1 + 0.1·ln s."""
    s, sizes = 2.0, (16, D, D)
    row = frequencies.dype(frequencies.rotary(D, BASE), s, time, L)
    magnitude = torch.ones(sum(sizes), dtype=torch.float64)
    magnitude[16:] = row.cos_sin_scale
    row = replace(row, cos_sin_scale=1.0)
    rope = RoPE(sum(sizes), frequencies=frequencies.of_axes(frequencies.rotary(16), row, row))
    at = posenc.positions_by("flux_ids", text=2, height=3, width=2, references=[(1, 2)])
    x = torch.randn(1, 1, at.length, sum(sizes), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    got = rope.rotate(x * magnitude, at, "query")[0, 0].numpy()
    scaled = theirs(s, time, "yarn")
    spectra = (BASE ** (-np.arange(0, 16, 2) / 16), scaled, scaled)
    angles = np.concatenate([at.coords[0, :, axis, None].numpy() * one for axis, one in enumerate(spectra)], axis=-1)
    scale = np.concatenate([np.ones(8), np.full(D, 0.1 * math.log(s) + 1)])
    turned = (x[0, 0, :, 0::2].numpy() + 1j * x[0, 0, :, 1::2].numpy()) * np.exp(1j * angles) * scale
    close(got[:, 0::2], turned.real)
    close(got[:, 1::2], turned.imag)
    with pytest.raises(ValueError, match="takes a magnitude away"):
        frequencies.of_axes(frequencies.rotary(16), frequencies.dype(frequencies.rotary(D, BASE), s, time, L))


def test_by_name_and_wrong_arguments():
    encoding = posenc.create("dype", d_head=D, factor=4.0, time=0.5)
    assert tuple(encoding.frequencies) == tuple(frequencies.dype(frequencies.rotary(D, BASE), 4.0, 0.5, L))
    with pytest.raises(ValueError, match=r"time: expected a number 0 … 1, got 1\.5"):
        posenc.create("dype", d_head=D, time=1.5)
    with pytest.raises(ValueError, match=r"factor: expected a number from 1, got 0\.5"):
        posenc.create("dype", d_head=D, factor=0.5)
    with pytest.raises(ValueError, match="method"):
        posenc.create("dype", d_head=D, method="pi")
