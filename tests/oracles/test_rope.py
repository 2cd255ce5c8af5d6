"""Rotary positions by loops over pairs, and what follows from turning. Su et al. 2021, section 3.2."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions, attend, rotate, rotation_matrix
from posenc.encodings.rope import RoPE

from .by_hand import attention, channels, close, draw, each, exact_angle, products, sees, turned

LAYOUTS = ["interleaved", "half"]


def rotated(x, positions, layout="interleaved", base=10000.0, rotary_dim=None, sign=1) -> np.ndarray:
    """[b, h, t, d] with the first rotary_dim channels of token t turned by sign·position·base^(-2i/rotary_dim)."""
    rotary_dim = x.shape[-1] if rotary_dim is None else rotary_dim
    out = np.empty_like(x)
    for b, h, t in each(*x.shape[:3]):
        angles = [sign * positions[b][t] * base ** (-2 * i / rotary_dim) for i in range(rotary_dim // 2)]
        out[b, h, t] = turned(x[b, h, t], angles, layout)
    return out


def at(*rows) -> Positions:
    return Positions.at(torch.tensor(rows))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("rotary_dim", [None, 4, 2])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("side", ["query", "key"])
def test_every_pair_turns_by_its_angle_S3(side, layout, rotary_dim, reverse):
    x, base = draw(1, 2, 3, 4, 8), 500.0
    encoding = RoPE(8, base=base, layout=layout, rotary_dim=rotary_dim, reverse=reverse)
    options = {"layout": layout, "base": base, "rotary_dim": rotary_dim, "sign": -1 if reverse else 1}
    together = encoding.rotate(torch.from_numpy(x), Positions.arange(2, 4, torch.tensor([700, 3])), side)
    close(together, rotated(x, [range(700, 704), range(3, 7)], **options))
    scattered = [[7, 2, 2, 900], [-4, 0, 1, 5000]]
    close(encoding.rotate(torch.from_numpy(x), at(*scattered), side), rotated(x, scattered, **options))
    real = [[0.25, -1.5, 3.75, 99.125]] * 2
    got = encoding.rotate(torch.from_numpy(x), at(*real), side)
    close(got, rotated(x, real, **options))


@pytest.mark.parametrize("tokens", [1, 3, 100])
def test_queries_and_keys_in_one_call(tokens):
    q, k, encoding = draw(2, 2, 4, tokens, 8), draw(3, 2, 2, tokens, 8), RoPE(8, layout="half")
    after, before = torch.tensor([700, 3]), torch.tensor([640, 0])
    of_q, of_k = ([range(n, n + tokens) for n in starts.tolist()] for starts in (after, before))
    at_q, at_k = (Positions.arange(2, tokens, starts) for starts in (after, before))
    at_q = Positions.decode(after) if tokens == 1 else at_q
    for (turned_q, turned_k), rows in (
        (rotate(torch.from_numpy(q), torch.from_numpy(k), encoding, at_q), of_q),
        (rotate(torch.from_numpy(q), torch.from_numpy(k), encoding, at_q, at_k), of_k),
    ):
        close(turned_q, rotated(q, of_q, "half"))
        close(turned_k, rotated(k, rows, "half"))


def test_hand_computed_rotation():
    """d=4, base 100, position 2: pair 0 turns by 2, pair 1 by 0.2."""
    x = torch.tensor([1.0, 0.0, 0.0, 1.0], dtype=torch.float64).view(1, 1, 1, 4)
    inter = RoPE(4, base=100.0).rotate(x, at([2]), "query")[0, 0, 0]
    assert inter.tolist() == pytest.approx([math.cos(2), math.sin(2), -math.sin(0.2), math.cos(0.2)], abs=1e-15)
    half = RoPE(4, base=100.0, layout="half").rotate(x, at([2]), "query")[0, 0, 0]
    assert half.tolist() == pytest.approx([math.cos(2), -math.sin(0.2), math.sin(2), math.cos(0.2)], abs=1e-15)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("moved", [0, 0.5])
def test_two_axes_first_axis_first(layout, moved):
    """The first half of the pairs turns with y, the second with x, each with the frequencies of rotary_dim/2 channels."""
    y, x = [3 + moved, 0 + moved, 11 + moved], [5 - moved, 8 - moved, 2 - moved]
    vectors = draw(2, 1, 2, 3, 12)
    expected = np.empty_like(vectors)
    for _, h, t in each(1, 2, 3):
        angles = [coordinate[t] * 100.0 ** (-2 * i / 4) for coordinate in (y, x) for i in range(2)]
        expected[0, h, t] = turned(vectors[0, h, t], angles, layout)
    encoding = RoPE(12, base=100.0, layout=layout, rotary_dim=8, axes=2)
    got = encoding.rotate(torch.from_numpy(vectors), at(list(zip(y, x, strict=True))), "key")
    close(got, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_both_notations_of_the_notes_S3(layout):
    """q̂_i·k̂_j = q^T R(j-i) k for columns = q R(i-j) k^T for rows, whose R is the transpose."""
    q, k, i, j = draw(3, 6), draw(4, 6), 11, 4
    queries, keys = torch.from_numpy(q).view(1, 1, 1, 6), torch.from_numpy(k).view(1, 1, 1, 6)
    encoding = RoPE(6, layout=layout)
    score = (encoding.rotate(queries, at([i]), "query") * encoding.rotate(keys, at([j]), "key")).sum().item()

    def matrix(position):
        """Columns: R(p) q."""
        out = np.zeros((6, 6))
        for n in range(3):
            first, second = channels(n, 6, layout)
            angle = position * 10000.0 ** (-2 * n / 6)
            out[first, first], out[first, second] = math.cos(angle), -math.sin(angle)
            out[second, first], out[second, second] = math.sin(angle), math.cos(angle)
        return out

    assert score == pytest.approx(q @ matrix(j - i) @ k, abs=1e-13)
    for_rows = matrix(i - j).T  # a row times this is the column turned by i - j
    assert score == pytest.approx(q @ for_rows @ k, abs=1e-13)
    assert abs(score - q @ matrix(i - j) @ k) > 0.01
    close(rotation_matrix(j - i, 6, layout=layout), matrix(j - i))
    close(rotation_matrix(2.5, 6, layout=layout), matrix(2.5))
    columns = rotated(np.eye(6)[None, None], [[3] * 6], layout, base=50.0)[0, 0]
    close(rotation_matrix(3, 6, base=50.0, layout=layout), columns.T)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("reverse", [False, True])
def test_score_sees_the_difference_only_S3(layout, reverse):
    q, k = (torch.from_numpy(draw(seed, 1, 1, 1, 8)) for seed in (5, 6))
    encoding = RoPE(8, layout=layout, reverse=reverse)

    def score(i, j):
        return (encoding.rotate(q, at([i]), "query") * encoding.rotate(k, at([j]), "key")).sum().item()

    for i, j in ((0, 0), (5, 2), (2, 5), (40, 7)):
        for moved in (1, 1000, 131_071, -3):
            assert score(i + moved, j + moved) == pytest.approx(score(i, j), abs=1e-10)
    assert abs(score(5, 2) - score(2, 5)) > 1e-3  # before and after are told apart
    assert abs(score(5, 2) - score(5, 3)) > 1e-3
    assert score(9, 9) == pytest.approx((q * k).sum().item(), abs=1e-14)  # with itself: q·k
    other = RoPE(8, layout=layout, reverse=not reverse)
    mirrored = (other.rotate(q, at([5]), "query") * other.rotate(k, at([2]), "key")).sum().item()
    assert mirrored == pytest.approx(score(2, 5), abs=1e-13)


@pytest.mark.parametrize("position", [40, 2000, 16_000, 131_071, 1_000_000])
@pytest.mark.parametrize("base", [10_000, 500_000])
def test_tables_are_exact_to_a_million_A8(position, base):
    """cos and sin in fp32 within 3.1e-8 of angles reduced in 40 decimals, consecutive and one by one."""
    d = 32
    angles = [exact_angle(position, base, 2 * i, d) for i in range(d // 2)]
    encoding = RoPE(d, base=float(base))
    for positions, place in ((Positions.arange(1, 100, position - 99), 99), (at([position]), 0)):
        cos, sin = encoding.tables(positions, torch.float32)
        assert cos.dtype == sin.dtype == torch.float32
        assert np.abs(cos[0, place].double().numpy() - np.cos(angles)).max() <= 3.1e-8
        assert np.abs(sin[0, place].double().numpy() - np.sin(angles)).max() <= 3.1e-8


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
@pytest.mark.parametrize("causal", [True, False])
def test_attention_by_loops(causal, impl):
    q, k, v = draw(1, 2, 4, 5, 8), draw(2, 2, 2, 5, 8), draw(3, 2, 2, 5, 8)
    rows, order = [range(30, 35), range(5)], [range(5)] * 2
    at_both = Positions.arange(2, 5, torch.tensor([30, 0]))
    logits = products(rotated(q, rows, "half"), rotated(k, rows, "half"))
    got = attend(*map(torch.from_numpy, (q, k, v)), RoPE(8, layout="half"), at_both, causal=causal, impl=impl)
    close(got, attention(logits, v, sees(order, order, causal=causal)))


def test_queries_and_keys_elsewhere():
    q, k, v = draw(1, 1, 2, 3, 6), draw(2, 1, 2, 4, 6), draw(3, 1, 2, 4, 6)
    at_q, at_k = [[8, 3, 90]], [[0, 12, 5, 4]]
    got = attend(*map(torch.from_numpy, (q, k, v)), RoPE(6), at(*at_q), at(*at_k), causal=False)
    close(got, attention(products(rotated(q, at_q), rotated(k, at_k)), v, lambda b, i, j: True))


def test_values_and_outputs_pass():
    x = torch.from_numpy(draw(11, 1, 2, 3, 8))
    for side in ("value", "output"):
        assert RoPE(8).rotate(x, Positions.arange(1, 3, 5), side) is x


def test_defaults_are_those_of_the_paper():
    x = draw(16, 1, 1, 3, 6)
    close(RoPE(6).rotate(torch.from_numpy(x), at([4, 5, 60]), "query"), rotated(x, [[4, 5, 60]], "interleaved", 10000.0))


def test_wrong_arguments():
    for wrong in (3, 10):
        with pytest.raises(ValueError, match="rotary_dim: expected an even number up to d_head=8"):
            RoPE(8, rotary_dim=wrong)
    with pytest.raises(ValueError, match="d_head: expected an even number from 2, got 7"):
        RoPE(7)
    with pytest.raises(ValueError, match=r"'half', 'interleaved', got 'neox'; half is that of rotate_half .*GPT-NeoX"):
        RoPE(8, layout="neox")
    with pytest.raises(ValueError, match="axes: 4 pairs cannot be shared evenly by 3 axes"):
        RoPE(8, axes=3)
    with pytest.raises(ValueError, match="axes: 3 pairs cannot be shared evenly by 2 axes"):
        RoPE(8, rotary_dim=6, axes=2)
    with pytest.raises(ValueError, match="base: expected a positive number"):
        RoPE(8, base=0)
    x = torch.zeros(1, 1, 4, 8)
    with pytest.raises(ValueError, match=r"reads 1 coordinate\(s\) per token"):
        RoPE(8).rotate(x, Positions.grid(2, 2), "query")
    with pytest.raises(ValueError, match=r"reads 2 coordinate\(s\) per token"):
        RoPE(8, axes=2).rotate(x, Positions.arange(1, 4), "query")
    with pytest.raises(ValueError, match="built for d_head=6, got a tensor with 8"):
        RoPE(6).rotate(x, Positions.arange(1, 4), "query")
