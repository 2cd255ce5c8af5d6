"""Rotations and temperatures that have a name but no class: their angles and magnitudes from the papers' formulas, in fp64.

Each is compared with the formula, and with the formula broken on purpose, which must be noticed.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

import posenc
from oracles.by_hand import close, draw, turned
from posenc import Positions

D, HEADS = 32, 2
PAIRS = D // 2


@dataclass
class Turn:
    """What the paper says of one head: the angle of every pair at coordinates, and what cos, sin and q·k are times.

    `by_head` says that the angles depend on the head, `first` is the first channel that turns.
    """

    angles: Callable[..., list[float]]
    layout: str = "interleaved"
    magnitude: float = 1.0
    softmax: float = 1.0
    first: int = 0
    sides: tuple[str, ...] = ("query", "key")
    options: dict = field(default_factory=dict)


def omega(i: int, d: int = D, base: float = 10000.0) -> float:
    return base ** (-2 * i / d)


def plain(base: float = 10000.0, d: int = D) -> Callable[..., list[float]]:
    return lambda p: [p * omega(i, d, base) for i in range(d // 2)]


def ramp(i: int, length: int, base: float, fast: float = 32.0, slow: float = 1.0) -> float:
    """YaRN's γ of pair i: 0 for fast pairs, 1 for slow ones."""
    low, high = (D * math.log(length / (2 * math.pi * beta)) / (2 * math.log(base)) for beta in (fast, slow))
    low, high = max(math.floor(low), 0), min(math.ceil(high), D - 1)
    return min(max((i - low) / (high - low), 0.0), 1.0)


def yarn(s: float, length: int = 4096, fast: float = 32.0) -> Callable[..., list[float]]:
    def angles(p):
        gamma = [ramp(i, length, 10000.0, fast) for i in range(PAIRS)]
        return [p * omega(i) * (1 - g + g / s) for i, g in enumerate(gamma)]

    return angles


def ntk(s: float, power: float) -> Callable[..., list[float]]:
    return plain(10000.0 * s**power)


def llama3(low: float = 1.0, high: float = 4.0) -> Callable[..., list[float]]:
    def one(i):
        w = omega(i, base=500000.0)
        wavelength = 2 * math.pi / w
        if wavelength > 8192 / low:
            return w / 8
        if wavelength < 8192 / high:
            return w
        smooth = (8192 / wavelength - low) / (high - low)
        return (1 - smooth) * w / 8 + smooth * w

    return lambda p: [p * one(i) for i in range(PAIRS)]


def clipped(n: int) -> Callable[..., list[float]]:
    fade = [1.0] * (PAIRS - n) + [(1 + math.cos(x)) / 2 for x in np.linspace(0, math.pi, n)]
    return lambda p: [p * omega(i) * fade[i] for i in range(PAIRS)]


def axial(base: float = 10000.0, order=(0, 1), turns: float = 1.0) -> Callable[..., list[float]]:
    return lambda *c: [c[axis] * turns * omega(i, D // 2, base) for axis in order for i in range(D // 4)]


def bands(sizes, base: float, axis_of) -> Callable[..., list[float]]:
    return lambda *c: [c[axis_of(i, sizes)] * omega(i, base=base) for i in range(PAIRS)]


def contiguous(i, sizes):
    return 0 if i < sizes[0] else 1 if i < sizes[0] + sizes[1] else 2


def alternating(i, sizes):
    return i % 3 if i % 3 and i < 3 * sizes[i % 3] else 0


def longrope(wrong: bool = False) -> Callable[..., list[float]]:
    """Beyond the trained length, with the factors of NTK: λ_i = 32^(i/(pairs-1))."""
    return lambda p: [p * omega(i) / 32 ** (i / (PAIRS if wrong else PAIRS - 1)) for i in range(PAIRS)]


def partial(fraction: float, exponent: int) -> Callable[..., list[float]]:
    turning = int(D * fraction)
    return lambda p: [p * omega(i, exponent) for i in range(turning // 2)]


def still_from(first: int) -> Callable[..., list[float]]:
    return lambda p: [p * omega(i) if i < first else 0.0 for i in range(PAIRS)]


MSCALE = 0.1 * math.log(16) + 1
LONG = math.sqrt(1 + math.log(32) / math.log(4096))
FINISHED = sum(2 * math.pi * 10000 ** (2 * i / D) <= 2048 for i in range(PAIRS))
AT_LENGTH = {"options": {"length": 8192}}

# name: what the paper says, and the same with one number or sign wrong
TURNS: dict[str, tuple[Turn, Turn]] = {
    "linear": (Turn(lambda p: plain()(p / 16), "half"), Turn(lambda p: plain()(p * 16), "half")),
    "ntk": (Turn(ntk(4, D / (D - 2)), "half"), Turn(ntk(4, (D - 2) / D), "half")),
    "ntk_by_parts": (Turn(yarn(16), "half"), Turn(yarn(16, fast=16.0), "half")),
    "yarn": (Turn(yarn(16), "half", MSCALE), Turn(yarn(16), "half", 1.0)),
    "deepseek_yarn": (
        Turn(yarn(40), softmax=(0.1 * math.log(40) + 1) ** 2),
        Turn(yarn(40), magnitude=0.1 * math.log(40) + 1),
    ),
    "dynamic": (
        Turn(ntk(2 * 8192 / 2048 - 1, D / (D - 2)), "half", **AT_LENGTH),
        Turn(ntk(2 * 8192 / 2048, D / (D - 2)), "half", **AT_LENGTH),
    ),
    "llama3": (Turn(llama3(), "half"), Turn(llama3(high=8.0), "half")),
    "longrope": (Turn(longrope(), "half", LONG, **AT_LENGTH), Turn(longrope(wrong=True), "half", LONG, **AT_LENGTH)),
    "adjusted_base": (Turn(plain(500000.0), "half"), Turn(plain(), "half")),
    "resonance": (
        Turn(lambda p: [p * 2 * math.pi / round(2 * math.pi / omega(i)) for i in range(PAIRS)], "half"),
        Turn(lambda p: [p * 2 * math.pi / math.ceil(2 * math.pi / omega(i)) for i in range(PAIRS)], "half"),
    ),
    "clipped": (Turn(clipped(16), "half"), Turn(clipped(15), "half")),
    "partial": (Turn(partial(0.25, D // 4), "half"), Turn(partial(0.25, D), "half")),
    "proportional": (Turn(still_from(12), "half"), Turn(still_from(11), "half")),
    "hope": (Turn(still_from(FINISHED)), Turn(still_from(FINISHED + 1))),
    "axial_rope": (Turn(axial()), Turn(axial(order=(1, 0)))),
    "pixtral_rope": (
        Turn(lambda y, x: [c * omega(i) for start, c in enumerate((y, x)) for i in range(start, PAIRS, 2)], "half"),
        Turn(lambda y, x: [c * omega(i) for start, c in enumerate((x, y)) for i in range(start, PAIRS, 2)], "half"),
    ),
    "dinov3_rope": (Turn(axial(100.0, turns=2 * math.pi), "half"), Turn(axial(100.0), "half")),
    "mrope": (Turn(bands((4, 6, 6), 1e6, contiguous), "half"), Turn(bands((6, 5, 5), 1e6, contiguous), "half")),
    "interleaved_mrope": (
        Turn(bands((6, 5, 5), 5e6, alternating), "half"),
        Turn(bands((6, 5, 5), 5e6, contiguous), "half"),
    ),
    "rove": (
        Turn(plain(), sides=("query", "key", "value", "output")),
        Turn(lambda p: [-a for a in plain()(p)], sides=("query", "key", "value", "output")),
    ),
    "decoupled_rope": (Turn(plain(d=10), first=D - 10), Turn(plain(d=10), first=0)),
}
COORDINATES = {1: [(0,), (37,), (4100,)], 2: [(0, 0), (5, 9), (3, 40)], 3: [(0, 0, 0), (5, 9, 2), (3, 40, 11)]}


def expected(turn: Turn, x: np.ndarray, at, back: bool = False) -> np.ndarray:
    """[h, t, d] turned token by token, by hand."""
    out = x.copy()
    for h, t in np.ndindex(*x.shape[:2]):
        angles = turn.angles(*at[t])
        stop = turn.first + 2 * len(angles)
        signed = [-angle for angle in angles] if back else angles
        magnitude = [turn.magnitude] * len(angles)
        out[h, t, turn.first : stop] = turned(x[h, t, turn.first : stop], signed, turn.layout, magnitude)
    return out


def agrees(name: str, turn: Turn) -> None:
    """Raises AssertionError where a side or the softmax scale is not the paper's."""
    axes = posenc.catalogue.BY_NAME[name].axes
    coords = COORDINATES[axes]
    encoding = posenc.create(name, d_head=D, n_heads=HEADS, **turn.options)
    at = Positions.at(torch.tensor([[c[0] if axes == 1 else c for c in coords]]))
    x = draw(1, HEADS, len(coords), D)
    for side in ("query", "key", "value", "output"):
        got = encoding.rotate(torch.from_numpy(x)[None], at, side)[0]
        close(got, expected(turn, x, coords, back=side == "output") if side in turn.sides else x, atol=1e-11)
    assert encoding.softmax_scale(D) == pytest.approx(turn.softmax / math.sqrt(D), rel=1e-14)


@pytest.mark.parametrize("name", TURNS)
def test_the_rotation_is_the_papers(name):
    agrees(name, TURNS[name][0])


@pytest.mark.parametrize("name", TURNS)
def test_a_wrong_formula_is_noticed(name):
    with pytest.raises(AssertionError):
        agrees(name, TURNS[name][1])


@pytest.mark.parametrize("name", ["yarn", "ntk_by_parts"])
def test_the_ramp_of_yarn_s_paper_is_the_one_that_the_page_names(name):
    """Equation 18 is linear in turns, the ramp of the authors' code in pairs."""
    s, length, base, d = 16.0, 64, 10.0, 16
    by_turns, by_pairs = [], []
    low, high = (d * math.log(length / (2 * math.pi * beta)) / (2 * math.log(base)) for beta in (32, 1))
    low, high = max(math.floor(low), 0), min(math.ceil(high), d - 1)
    for i in range(d // 2):
        w = omega(i, d, base)
        kept = min(max((length * w / (2 * math.pi) - 1) / 31, 0.0), 1.0)
        by_turns.append((1 - kept) * w / s + kept * w)
        slow = min(max((i - low) / (high - low), 0.0), 1.0)
        by_pairs.append((1 - slow) * w + slow * w / s)
    sizes = {"d_head": d, "factor": s, "trained_length": length, "base": base}
    close(np.array(posenc.create(name, **sizes).frequencies.values), np.array(by_pairs), atol=1e-15)
    for text in (page := posenc.catalogue.BY_NAME[name].page).differs.en, page.differs.zh:
        (python,) = re.findall(r"`(frequencies\.\w+\(.*\))`", text)
        named = eval(python, {"frequencies": posenc.frequencies, **sizes})
        close(np.array(named.values), np.array(by_turns), atol=1e-15)
    assert "gamma_i" in page.latex, "the formula says what the ramp runs over"
    sums = [sum(2 * math.cos(7 * w) for w in ramp) for ramp in (by_turns, by_pairs)]
    assert abs(sums[0] - sums[1]) > 1


def test_lengths_within_the_training_are_computed_as_trained():
    for name in ("dynamic", "longrope"):
        short = posenc.create(name, d_head=D, length=2048)
        close(np.array(short.frequencies.values), np.array([omega(i) for i in range(PAIRS)]), atol=1e-15)
        long = short.at_length(8192)
        assert long.frequencies == posenc.create(name, d_head=D, length=8192).frequencies
        assert short.at_length(2048).frequencies == short.frequencies


def test_the_factors_of_a_model_take_the_place_of_the_defaults():
    encoding = posenc.create("longrope", d_head=4, short_factor=[1.0, 2.0], long_factor=[3.0, 5.0], length=5000)
    close(np.array(encoding.frequencies.values), np.array([1 / 3, 0.01 / 5]), atol=1e-16)


# Learned frequencies: fresh, they are those of the paper's start; drawn, they are what the parameters say.


@pytest.mark.parametrize("sign", [1, -1])
def test_lerope_multiplies_frequencies_by_exponentials(sign):
    encoding = posenc.laws.draw_parameters(posenc.create("lerope", d_head=D), seed=3)
    alpha = encoding.alpha.detach().double().numpy()
    x = draw(2, 1, 1, D)
    got = encoding.rotate(torch.from_numpy(x)[None], Positions.at(torch.tensor([[37]])), "query")[0]
    by_hand = turned(x[0, 0], [37 * omega(i) * math.exp(sign * alpha[i]) for i in range(PAIRS)], "interleaved")
    if sign == 1:
        close(got[0, 0], by_hand, atol=1e-11)
    else:
        assert np.abs(got[0, 0].detach().numpy() - by_hand).max() > 0.1


def test_rope_mixed_turns_every_pair_by_a_mixture_of_the_coordinates():
    torch.manual_seed(0)
    encoding = posenc.create("rope_mixed", d_head=D, n_heads=HEADS)
    w = encoding.frequencies.detach().double().numpy()  # [axes, h, n]
    magnitude = np.hypot(w[0], w[1])
    close(magnitude, np.tile([10.0 ** (-4 * j / D) for j in range(D // 4)] * 2, (HEADS, 1)), atol=1e-6)
    assert np.abs(w[0, :, 0] * w[0, :, D // 4] + w[1, :, 0] * w[1, :, D // 4]).max() < 1e-6  # two groups at right angles
    x = draw(2, HEADS, 1, D)
    at = Positions.at(torch.tensor([[[5, 9]]]))
    got = encoding.rotate(torch.from_numpy(x)[None], at, "key")[0].detach().numpy()
    for h in range(HEADS):
        right = turned(x[h, 0], 5 * w[0, h] + 9 * w[1, h], "interleaved")
        wrong = turned(x[h, 0], 9 * w[0, h] + 5 * w[1, h], "interleaved")
        close(got[h, 0], right, atol=1e-11)
        assert np.abs(got[h, 0] - wrong).max() > 0.1


# Temperatures: the number by which a query is multiplied, at positions where formulas differ.

TEMPERATURES = {
    "log_n": (lambda i: max(1.0, math.log(i + 1) / math.log(2048)), lambda i: max(1.0, math.log(i) / math.log(2048))),
    "llama4_temperature": (
        lambda i: 1 + 0.1 * math.log(1 + math.floor((i + 1) / 8192)),
        lambda i: 1 + 0.1 * math.log(1 + math.floor(i / 8192)),
    ),
    "ministral_temperature": (
        lambda i: 1 + 0.1 * math.log(1 + math.floor(i / 16384)),
        lambda i: 1 + 0.1 * math.log(1 + math.floor((i + 1) / 16384)),
    ),
    "beam_temperature": (lambda i: (1 + (i + 1) / 2048) ** 0.1, lambda i: (1 + i / 2048) ** 0.1),
    "inkling_temperature": (
        lambda i: 1 + 0.1 * math.log(max((i + 1) / 8192, 1)),
        lambda i: 1 + 0.1 * math.log(max(i / 8192, 1)),
    ),
    "ssmax": (lambda i: math.log(i + 1), lambda i: math.log(i + 2)),
    "mistral_large4_temperature": (lambda i: 1.0, lambda i: math.log(i + 1)),
}


@pytest.mark.parametrize("name", TEMPERATURES)
def test_queries_are_multiplied_and_keys_are_not(name):
    right, wrong = TEMPERATURES[name]
    encoding = posenc.create(name, n_heads=HEADS)
    places = [1, 2047, 8191, 8192, 16383, 16384, 100000]
    at = Positions.at(torch.tensor([places]))
    x = draw(4, 1, HEADS, len(places), D)
    got = encoding.rotate(torch.from_numpy(x), at, "query").detach()
    close(got, x * np.array([right(i) for i in places])[:, None], atol=1e-11)
    assert np.abs(got.numpy() - x * np.array([wrong(i) for i in places])[:, None]).max() > 1e-6
    for side in ("key", "value", "output"):
        assert torch.equal(encoding.rotate(torch.from_numpy(x), at, side), torch.from_numpy(x))


def test_learned_temperatures_belong_to_their_heads():
    x, at = torch.ones(1, HEADS, 1, D, dtype=torch.float64), Positions.at(torch.tensor([[99]]))
    for name, constant in (("ssmax", False), ("mistral_large4_temperature", True)):
        encoding = posenc.laws.draw_parameters(posenc.create(name, n_heads=HEADS), seed=5)
        numbers = [p.detach().double().numpy() for p in encoding.parameters()]
        assert len(numbers) == 1 + constant
        for h in range(HEADS):
            expected = numbers[0][h] * math.log(100) + (numbers[1][h] if constant else 0.0)
            assert encoding.rotate(x, at, "query")[0, h, 0, 0].item() == pytest.approx(expected, rel=1e-12)


# Presets: which layer has what.

LAYERS = {
    "irope": (8, ["RoPE", "RoPE", "RoPE", "FloorLogTemperature"] * 2, {0: 500000.0, 4: 500000.0}),
    "rnope_swa": (8, ["RoPE", "RoPE", "RoPE", "NoPE"] * 2, {0: 10000.0, 6: 10000.0}),
    "gemma3": (12, ["RoPE"] * 12, {0: 10000.0, 4: 10000.0, 6: 10000.0}),
    "modernbert": (6, ["RoPE"] * 6, {0: 160000.0, 1: 10000.0, 2: 10000.0, 3: 160000.0}),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_presets(name):
    n_layers, kinds, bases = LAYERS[name]
    encoding = posenc.create(name, d_head=D, n_layers=n_layers)
    assert [type(encoding.at_layer(n)).__name__ for n in range(n_layers)] == kinds
    for n, base in bases.items():
        close(np.array(encoding.at_layer(n).frequencies.values), np.array([omega(i, base=base) for i in range(PAIRS)]))
    if name == "gemma3":
        for n in (5, 11):
            far = np.array([omega(i, base=1e6) / 8 for i in range(PAIRS)])
            close(np.array(encoding.at_layer(n).frequencies.values), far, atol=1e-15)
    if name == "irope":
        number = encoding.at_layer(3).rotate(torch.ones(1, 1, 1, D), Positions.at(torch.tensor([[8191]])), "query")
        assert number[0, 0, 0, 0].item() == pytest.approx(1 + 0.1 * math.log(2), rel=1e-6)


def test_drope_is_what_is_left_without_positions():
    q, k, v = (torch.from_numpy(draw(n, 1, HEADS, 5, D)) for n in range(3))
    at = Positions.arange(1, 5)
    dropped, trained = posenc.create("drope"), posenc.create("rope", d_head=D)
    assert torch.equal(posenc.attend(q, k, v, dropped, at), posenc.attend(q, k, v, posenc.create("nope"), at))
    assert not torch.equal(posenc.attend(q, k, v, dropped, at), posenc.attend(q, k, v, trained, at))
