"""RoPE with other frequencies, slices, sides, magnitudes and lengths: by loops over pairs."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from posenc import Positions, attend, create, frequencies
from posenc.catalogue.lookup import BY_NAME
from posenc.encodings.rope import RoPE
from posenc.frequencies import Frequencies

from .by_hand import attention, close, draw, each, products, sees, turned

GIVEN = (0.9, 0.31, 0.004)


def at(*rows, dtype=None) -> Positions:
    return Positions.at(torch.tensor(rows, dtype=dtype))


def turned_rows(x, positions, values, layout="interleaved", scale=1.0, sign=1) -> np.ndarray:
    out = np.array(x)
    for b, h, t in each(*x.shape[:3]):
        out[b, h, t] = scale * np.array(turned(x[b, h, t], [sign * positions[b][t] * w for w in values], layout))
    return out


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("trailing", [False, True])
def test_given_frequencies_turn_a_slice_at_either_end(layout, trailing):
    x, positions = draw(1, 2, 2, 3, 10), [[0, 5, -3], [7, 1, 2]]
    part = slice(4, 10) if trailing else slice(0, 6)
    expected = np.array(x)
    expected[..., part] = turned_rows(x[..., part], positions, GIVEN, layout)
    encoding = RoPE(10, frequencies=Frequencies(GIVEN), layout=layout, trailing=trailing)
    assert (encoding.rotary_dim, tuple(encoding.frequencies)) == (6, GIVEN)
    close(encoding.rotate(torch.from_numpy(x), at(*positions), "key"), expected)


def test_neighbours_pair_and_halves_are_returned():
    x, positions = draw(2, 1, 1, 2, 6), [[3, 11]]
    expected = turned_rows(x, positions, GIVEN)
    expected = np.concatenate([expected[..., 0::2], expected[..., 1::2]], axis=-1)
    encoding = RoPE(6, frequencies=Frequencies(GIVEN), layout="interleaved", returns="half")
    close(encoding.rotate(torch.from_numpy(x), at(*positions), "query"), expected)
    back = RoPE(6, frequencies=Frequencies(GIVEN), layout="half", returns="interleaved")
    expected = turned_rows(x, positions, GIVEN, "half")
    expected = np.stack([expected[..., :3], expected[..., 3:]], axis=-1).reshape(1, 1, 2, 6)
    close(back.rotate(torch.from_numpy(x), at(*positions), "query"), expected)


def test_the_magnitude_is_on_cos_and_sin_of_what_turns_and_not_on_the_rest():
    x, positions = draw(3, 1, 1, 2, 8), [[2, 9]]
    expected = np.array(x)
    expected[..., :6] = turned_rows(x[..., :6], positions, GIVEN, scale=1.25)
    encoding = RoPE(8, frequencies=Frequencies(GIVEN, cos_sin_scale=1.25))
    close(encoding.rotate(torch.from_numpy(x), at(*positions), "query"), expected)
    assert "norm_preserving" not in encoding.traits
    reversed_ = RoPE(8, frequencies=Frequencies(GIVEN, cos_sin_scale=1.25), reverse=True)
    expected[..., :6] = turned_rows(x[..., :6], positions, GIVEN, scale=1.25, sign=-1)
    close(reversed_.rotate(torch.from_numpy(x), at(*positions), "query"), expected)


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.25])
def test_magnitudes_below_and_above_one(scale):
    x, positions = draw(3, 1, 1, 2, 6), [[2, 9]]
    encoding = RoPE(6, frequencies=Frequencies(GIVEN, cos_sin_scale=scale))
    got = encoding.rotate(torch.from_numpy(x), at(*positions), "query")
    close(got, turned_rows(x, positions, GIVEN, scale=scale))


def test_the_softmax_scale_is_another_number():
    encoding = RoPE(16, frequencies=Frequencies(GIVEN, softmax_scale=1.5, cos_sin_scale=2.0))
    assert encoding.softmax_scale(16) == pytest.approx(1.5 / 4)
    assert RoPE(16).softmax_scale(16) == 1 / 4


def test_each_pair_reads_its_own_axis():
    x = draw(4, 1, 1, 2, 6)
    coords = np.array([[[1.5, -2.0], [3.0, 7.0]]])
    encoding = RoPE(6, frequencies=Frequencies(GIVEN, axes=(1, 0, 1)))
    expected = np.array(x)
    for t in range(2):
        angles = [coords[0, t, axis] * w for axis, w in zip((1, 0, 1), GIVEN, strict=True)]
        expected[0, 0, t] = turned(x[0, 0, t], angles, "interleaved")
    assert encoding.axes == 2
    close(encoding.rotate(torch.from_numpy(x), Positions.at(torch.from_numpy(coords)), "key"), expected)


def test_values_turn_and_outputs_turn_back():
    """o_i = R(-p_i) Σ_j a_ij R(p_j) v_j (VO-RoPE): against sums over keys."""
    q, k, v = (draw(seed, 1, 2, 4, 6) for seed in (5, 6, 7))
    positions = [[0, 2, 3, 9]]
    turn = lambda x, sign=1: turned_rows(x, positions, GIVEN, sign=sign)  # noqa: E731
    logits = products(turn(q), turn(k))
    mixed = attention(logits, turn(v), sees(positions, positions))
    expected = turn(mixed, sign=-1)
    encoding = RoPE(6, frequencies=Frequencies(GIVEN), sides=("query", "key", "value", "output"))
    got = attend(*(torch.from_numpy(x) for x in (q, k, v)), encoding, at(*positions))
    close(got, expected)
    assert "shift_invariant" in encoding.traits
    only_values = RoPE(6, frequencies=Frequencies(GIVEN), sides=("query", "key", "value"))
    close(attend(*(torch.from_numpy(x) for x in (q, k, v)), only_values, at(*positions)), mixed)
    assert "shift_invariant" not in only_values.traits  # RoFormer's rotary_value: the output holds where its tokens were
    queries = RoPE(6, frequencies=Frequencies(GIVEN), sides=("query",))
    close(queries.rotate(torch.from_numpy(k), at(*positions), "key"), k)
    close(queries.rotate(torch.from_numpy(q), at(*positions), "query"), turn(q))


def test_fp32_arithmetic_multiplies_in_fp32():
    values = tuple(float(np.float32(w)) for w in GIVEN)
    encoding = RoPE(6, frequencies=Frequencies(values, arithmetic="float32"))
    position = 131071
    cos, sin = encoding.tables(at([position]), torch.float32)
    for pair, w in enumerate(values):
        angle = float(np.float32(position) * np.float32(w))
        assert float(cos[0, 0, pair]) == pytest.approx(math.cos(angle), abs=1.2e-7)
        assert float(sin[0, 0, pair]) == pytest.approx(math.sin(angle), abs=1.2e-7)
    exact = RoPE(6, frequencies=Frequencies(values)).tables(at([position]), torch.float64)[0]
    close(exact[0, 0], [math.cos(math.fmod(position * w, 2 * math.pi)) for w in values], 1e-10)


def test_a_request_holds_the_frequencies_of_its_length():
    family = frequencies.longrope(frequencies.rotary(6, 100.0), (1.0, 1.0, 1.0), (2.0, 3.0, 4.0), 10, factor=4.0)
    encoding = RoPE(6, frequencies=family)
    x, positions = draw(8, 1, 1, 2, 6), [[1, 4]]
    plain = [100.0 ** (-2 * i / 6) for i in range(3)]
    scale = math.sqrt(1 + math.log(4) / math.log(10))
    close(encoding.rotate(torch.from_numpy(x), at(*positions), "key"), turned_rows(x, positions, plain, scale=scale))
    slow = [w / by for w, by in zip(plain, (2, 3, 4), strict=True)]
    longer = encoding.at_length(11)
    close(longer.rotate(torch.from_numpy(x), at(*positions), "key"), turned_rows(x, positions, slow, scale=scale))
    close(
        longer.at_length(10).rotate(torch.from_numpy(x), at(*positions), "key"),
        turned_rows(x, positions, plain, scale=scale),
    )
    assert RoPE(6).at_length(10**6) is not None
    assert tuple(RoPE(6).at_length(10**6).frequencies) == tuple(RoPE(6).frequencies)
    prepared = encoding.prepare(at(*positions))
    with pytest.raises(ValueError, match="prepared by RoPE"):
        longer.rotate(torch.from_numpy(x).float(), prepared, "key")


def test_sizes_given_twice_and_pairs_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="give either them or frequencies"):
        RoPE(8, base=100.0, frequencies=Frequencies(GIVEN))
    with pytest.raises(ValueError, match="give either them or frequencies"):
        RoPE(8, rotary_dim=6, frequencies=Frequencies(GIVEN))
    with pytest.raises(ValueError, match="3 pairs need 6 channels, d_head=4"):
        RoPE(4, frequencies=Frequencies(GIVEN))
    with pytest.raises(ValueError, match="sides: expected a sequence, each one of"):
        RoPE(6, sides=("queries",))
    with pytest.raises(ValueError, match="returns: expected one of"):
        RoPE(6, returns="halves")
    for wrong in (
        {"values": ()},
        {"values": (math.nan,)},
        {"values": (1.0,), "cos_sin_scale": 0.0},
        {"values": (1.0,), "softmax_scale": -1.0},
        {"values": (1.0,), "axes": (0, 1)},
        {"values": (1.0,), "arithmetic": "bfloat16"},
    ):
        with pytest.raises(ValueError, match="expected"):
            Frequencies(**wrong)


def test_frequencies_are_frozen_hashable_and_printable():
    one = Frequencies(GIVEN, cos_sin_scale=1.2, cos_sin_scale_from="yarn")
    assert hash(one) == hash(Frequencies(GIVEN, cos_sin_scale=1.2, cos_sin_scale_from="yarn"))
    with pytest.raises(AttributeError):
        one.values = (1.0,)
    assert "cos/sin scale  1.2: yarn" in str(one)
    assert repr(one) != repr(Frequencies((0.9, 0.31, 0.0041), cos_sin_scale=1.2, cos_sin_scale_from="yarn"))
    assert (len(one), one[1], list(one)) == (3, 0.31, list(GIVEN))


@pytest.mark.parametrize("file", ["docs/layouts.md", "docs/layouts.zh-CN.md"])
def test_the_page_of_layouts_says_how_nanochat_turns(file):
    """By -p: the product of nanochat's own half rotation, by hand, is that of the call which the page prints."""
    text = (Path(__file__).parents[2] / file).read_text(encoding="utf-8")
    (call,) = re.findall(r'`posenc\.create\("rope", (d_head=…, .*reverse=True)\)`', text)
    options = eval(f"dict({call.replace('…', '8')})")
    q, k = (torch.from_numpy(draw(seed, 1, 1, 6, 8)) for seed in (1, 2))
    angle = torch.arange(6)[:, None] * 10000.0 ** (-2 * torch.arange(4).double() / 8)
    theirs = []
    for x in (q, k):
        first, second = x.chunk(2, dim=-1)
        theirs.append(
            torch.cat([first * angle.cos() + second * angle.sin(), second * angle.cos() - first * angle.sin()], -1)
        )
    here = Positions.arange(1, 6)
    ours = [create("rope", **options).rotate(x, here, side) for x, side in ((q, "query"), (k, "key"))]
    close(ours[0] @ ours[1].mT, (theirs[0] @ theirs[1].mT).numpy(), 1e-13)
    plain = [create("rope", **options | {"reverse": False}).rotate(x, here, side) for x, side in ((q, "query"), (k, "key"))]
    assert (plain[0] @ plain[1].mT - theirs[0] @ theirs[1].mT).abs().max() > 0.1
    page = BY_NAME["rope"].page.differs
    assert all("nanochat" in words and "reverse=True" in words for words in (page.en, page.zh))
