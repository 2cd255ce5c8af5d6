"""Rotary positions by loops over pairs, and what follows from turning. Su et al. 2021, section 3.2."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions, attend, rotate, rotation_matrix
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import permutation

from .by_hand import attention, channels, close, draw, each, exact_angle, half_ulp, products, sees, turned

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


def test_values_of_the_positions_count_not_their_number_F6():
    """[5, 9, 2, 2] is what four calls with one token each give, and a permutation of both permutes the result."""
    x, positions, encoding = torch.from_numpy(draw(17, 1, 2, 4, 6)), [5, 9, 2, 2], RoPE(6)
    together = encoding.rotate(x, at(positions), "query")
    for place, position in enumerate(positions):
        close(encoding.rotate(x[:, :, [place]], at([position]), "query"), together[:, :, [place]])
    moved = [2, 0, 3, 1]
    close(encoding.rotate(x[:, :, moved], at([positions[m] for m in moved]), "query"), together[:, :, moved])


def test_one_row_of_positions_serves_a_batch_G6():
    for tokens in (1, 3):
        x = draw(1, 3, 2, tokens, 4)
        got = RoPE(4).rotate(torch.from_numpy(x), Positions.arange(1, tokens, 5), "query")
        close(got, rotated(x, [range(5, 5 + tokens)] * 3))
        starts = torch.tensor([9, 0, 4])
        got = RoPE(4).rotate(torch.from_numpy(x), Positions.arange(3, tokens, starts), "query")
        close(got, rotated(x, [range(start, start + tokens) for start in starts.tolist()]))


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


def test_length_is_kept_and_position_zero_is_the_identity_E3():
    x = torch.from_numpy(draw(7, 1, 2, 50, 8))
    for layout in LAYOUTS:
        turned_x = RoPE(8, layout=layout).rotate(x, Positions.arange(1, 50, 131_000), "query")
        close(turned_x.norm(dim=-1), x.norm(dim=-1))
        assert torch.equal(RoPE(8, layout=layout).rotate(x[:, :, :1], at([0]), "key"), x[:, :, :1])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_channels_beyond_rotary_dim_pass_bit_for_bit_D13(layout):
    """And the exponent's denominator is rotary_dim, not d_head: positions 700 … 2355."""
    x = torch.from_numpy(draw(8, 1, 2, 3, 10)).bfloat16()
    got = RoPE(10, rotary_dim=4, layout=layout).rotate(x, at([700, 1311, 2355]), "query")
    assert torch.equal(got[..., 4:], x[..., 4:])
    assert not torch.equal(got[..., :4], x[..., :4])
    exact = rotated(x.double().numpy(), [[700, 1311, 2355]], layout, rotary_dim=4)
    assert (np.abs(got.double().numpy() - exact) <= half_ulp(exact, 8) * (1 + 2**-10)).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_differ_by_a_permutation_E1(layout):
    """P·rot(x) = rot'(P·x): channels moved to the other layout turn as the other layout turns."""
    other = LAYOUTS[1 - LAYOUTS.index(layout)]
    x, positions = torch.from_numpy(draw(9, 1, 2, 4, 8)), at([3, 700, 2, 41])
    moved = permutation(8, layout, other)
    mine, theirs = RoPE(8, layout=layout), RoPE(8, layout=other)
    close(mine.rotate(x, positions, "query")[..., moved], theirs.rotate(x[..., moved], positions, "query"))
    assert not torch.allclose(mine.rotate(x, positions, "query"), theirs.rotate(x, positions, "query"))


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


@pytest.mark.parametrize(("dtype", "bits"), [(torch.bfloat16, 8), (torch.float16, 11)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_16_bits_round_once_A6(layout, dtype, bits):
    """Positions from 100 000, base 5e5: every element within half an ulp of the fp64 result."""
    x = torch.from_numpy(draw(10, 1, 2, 60, 32)).to(dtype)
    got = RoPE(32, base=5e5, layout=layout).rotate(x, Positions.arange(1, 60, 100_000), "query")
    assert got.dtype == dtype
    exact = rotated(x.double().numpy(), [range(100_000, 100_060)], layout, base=5e5)
    slack = 2e-7 * np.abs(x.double().numpy()).max()  # of the fp32 product before the one rounding
    assert (np.abs(got.double().numpy() - exact) <= half_ulp(exact, bits) + slack).all()


def test_autocast_changes_nothing_A5():
    x, positions = torch.ones(1, 1, 512, 64), Positions.arange(1, 512, 65536)
    encoding = RoPE(64)
    plain = encoding.rotate(x, positions, "query")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = encoding.rotate(x, positions, "query")
        prepared = encoding.rotate(x, encoding.prepare(positions), "query")
    assert torch.equal(plain, inside)
    assert torch.equal(plain, prepared)
    assert len(inside[0, 0].unique(dim=0)) == 512


def test_rows_are_distinct_A1():
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x = torch.ones(1, 1, 4096, 8, dtype=dtype)
        assert len(RoPE(8).rotate(x, Positions.arange(1, 4096), "query")[0, 0].unique(dim=0)) == 4096


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


@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides_do_not_matter_G3(layout):
    """Transposed, sliced and expanded views; the input stays as it was."""
    base = torch.from_numpy(draw(12, 1, 5, 3, 16))
    views = [base.transpose(1, 2)[..., :8], base.transpose(1, 2)[..., 1::2], base[:, :1, :1, :8].expand(1, 3, 5, 8)]
    positions, encoding = Positions.arange(1, 5, 9), RoPE(8, layout=layout)
    for view in views:
        before = view.clone()
        close(encoding.rotate(view, positions, "key"), encoding.rotate(view.contiguous(), positions, "key"))
        assert torch.equal(view, before)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradient_is_the_inverse_rotation_E4_G5(layout):
    x, upstream = draw(13, 1, 2, 4, 8), draw(14, 1, 2, 4, 8)
    tensor, positions = torch.from_numpy(x).requires_grad_(), [[3, 70, 0, 9]]
    encoding = RoPE(8, layout=layout, rotary_dim=6)
    encoding.rotate(tensor, at(*positions), "query").backward(torch.from_numpy(upstream))
    close(tensor.grad, rotated(upstream, positions, layout, rotary_dim=6, sign=-1))
    assert torch.autograd.gradcheck(lambda x: encoding.rotate(x, at(*positions), "query"), (tensor,))
    assert torch.autograd.gradgradcheck(lambda x: encoding.rotate(x, at(*positions), "query").sin(), (tensor,))


@pytest.mark.parametrize("d", [2, 6, 48, 72, 80, 96, 112, 160])
def test_widths_that_are_no_power_of_two_G4(d):
    x = draw(15, 1, 1, 2, d)
    for layout in LAYOUTS:
        close(RoPE(d, layout=layout).rotate(torch.from_numpy(x), at([700, 31]), "query"), rotated(x, [[700, 31]], layout))


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
