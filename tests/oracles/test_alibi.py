"""ALiBi's slopes against the paper's construction, and its bias by loops. Press et al. 2021, section 3."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions, alibi_slopes, attend
from posenc.encodings.alibi import ALiBi

from .by_hand import add, attention, close, draw, products, sees


def geometric(n: int) -> list[float]:
    """For n = 2^k the paper starts at 2^(-8/n) and uses the same ratio."""
    ratio = 2.0 ** (-(2.0 ** (3 - math.log2(n))))
    slopes = [ratio]
    while len(slopes) < n:
        slopes.append(slopes[-1] * ratio)
    return slopes


def papers(n: int) -> list[float]:
    """Otherwise all of the power below, then the first, third, fifth … of twice that."""
    below = 1
    while 2 * below <= n:
        below *= 2
    return geometric(below) + geometric(2 * below)[0 : 2 * (n - below) : 2]


@pytest.mark.parametrize("n", range(1, 129))
def test_slopes_of_the_paper_H1(n):
    assert alibi_slopes(n) == pytest.approx(papers(n), rel=1e-12)
    assert len(alibi_slopes(n)) == n


@pytest.mark.parametrize("n", range(1, 129))
def test_slopes_from_the_power_above_H1(n):
    """MPT takes the power above, every second slope first and the ones between after: the same for a maximum of 8."""
    above = 1
    while above < n:
        above *= 2
    all_of_them = [2.0 ** (-8.0 * h / above) for h in range(1, above + 1)]
    mpt = all_of_them if above == n else (all_of_them[1::2] + all_of_them[0::2])[:n]
    assert alibi_slopes(n) == pytest.approx(mpt, rel=1e-12)


def test_published_slopes_H1():
    assert alibi_slopes(1) == (2.0**-8,)
    assert alibi_slopes(2) == (2.0**-4, 2.0**-8)
    assert alibi_slopes(6) == (0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125)  # not sorted, and right so
    assert alibi_slopes(8) == tuple(2.0**-h for h in range(1, 9))
    assert alibi_slopes(16)[:3] == pytest.approx((2**-0.5, 2**-1, 2**-1.5), rel=1e-15)
    assert alibi_slopes(12)[8:] == pytest.approx((2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5), rel=1e-15)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "8", None])
def test_a_number_of_heads_that_is_no_count_is_refused(n):
    with pytest.raises(ValueError, match="n_heads: expected a whole number from 1"):
        alibi_slopes(n)
    with pytest.raises(ValueError, match="n_heads: expected a whole number from 1"):
        ALiBi(n)


def biased(q, k, at_q, at_k, slopes) -> np.ndarray:
    return add(products(q, k), lambda b, h, i, j: -slopes[h] * abs(at_q[b][i] - at_k[b][j]))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("impl", ["reference", "sdpa"])
@pytest.mark.parametrize("heads", [4, 6])
def test_bias_by_loops(heads, impl, causal):
    """After the scale 1/√d (H6), with the query heads' slopes where key heads are shared."""
    q, k, v = draw(1, 2, heads, 6, 5), draw(2, 2, 2, 6, 5), draw(3, 2, 2, 6, 5)
    rows, order = [range(40, 46), range(6)], [range(6)] * 2
    at = Positions.arange(2, 6, torch.tensor([40, 0]))
    got = attend(*map(torch.from_numpy, (q, k, v)), ALiBi(heads), at, causal=causal, impl=impl)
    close(got, attention(biased(q, k, rows, rows, papers(heads)), v, sees(order, order, causal=causal)))


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
@pytest.mark.parametrize(
    ("at_q", "at_k"),
    [
        ([[4, 0, 30], [2, 2, 7]], [[3, 18, 5, 0, 4], [1, 6, 2, 3, 100]]),
        ([[0.5, -2.25, 9.0], [1.0, 0.0, 3.5]], [[0.0, 7.75, 1.5, 2.0, 3.0], [0.25, 0.5, 1.0, 2.0, 8.0]]),
    ],
    ids=["integers", "reals"],
)
def test_queries_and_keys_elsewhere_H8(at_q, at_k, impl):
    q, k, v = draw(1, 2, 6, 3, 5), draw(2, 2, 6, 5, 5), draw(3, 2, 6, 5, 5)
    got = attend(
        *map(torch.from_numpy, (q, k, v)),
        ALiBi(6),
        Positions.at(torch.tensor(at_q)),
        Positions.at(torch.tensor(at_k)),
        causal=False,
        impl=impl,
    )
    close(got, attention(biased(q, k, at_q, at_k, papers(6)), v, lambda b, i, j: True))


@pytest.mark.parametrize(
    ("queries", "keys", "start_q", "start_k"), [(1, 9, 8, 0), (4, 4, 30, 12), (3, 9, 6, 0), (9, 3, 0, 5)]
)
def test_consecutive_positions_of_both_sides_C2(queries, keys, start_q, start_k):
    q, k, v = draw(1, 1, 4, queries, 5), draw(2, 1, 4, keys, 5), draw(3, 1, 4, keys, 5)
    got = attend(
        *map(torch.from_numpy, (q, k, v)),
        ALiBi(4),
        Positions.arange(1, queries, start_q),
        Positions.arange(1, keys, start_k),
        causal=False,
    )
    rows = [range(start_q, start_q + queries)], [range(start_k, start_k + keys)]
    close(got, attention(biased(q, k, *rows, papers(4)), v, lambda b, i, j: True))


def test_packed_documents_F3():
    q, k, v = (draw(seed, 1, 4, 7, 5) for seed in (1, 2, 3))
    positions, documents = [[0, 1, 2, 0, 1, 2, 3]], [[0, 0, 0, 1, 1, 1, 1]]
    got = attend(*map(torch.from_numpy, (q, k, v)), ALiBi(4), Positions.packed([0, 3, 7]))
    may = sees([range(7)], [range(7)], documents, documents)
    close(got, attention(biased(q, k, positions, positions, papers(4)), v, may))


def test_decode_row_is_the_last_row_H3():
    q, k, v = (torch.from_numpy(draw(seed, 1, 4, 9, 5)) for seed in (1, 2, 3))
    whole = attend(q, k, v, ALiBi(4), Positions.arange(1, 9))
    last = attend(q[:, :, 8:], k, v, ALiBi(4), Positions.decode([8]), Positions.arange(1, 9))
    close(last, whole[:, :, 8:])


def test_further_is_lower_on_both_sides_H4_H5():
    """Symmetric in the sign of the distance, so it serves bidirectional attention, where key·slope alone would not."""
    bias = ALiBi(6).at_distance(torch.arange(-40, 41))
    assert bias.shape == (6, 81)
    close(bias, bias.flip(1))
    assert (bias[:, 40:].diff(dim=1) < 0).all()
    assert (bias[:, 40] == 0).all()


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_distances_stay_distinct_whatever_the_input_dtype_H9(dtype, impl):
    """2048 distances, 2048 values: the bias is not computed in 16 bits."""
    q = torch.zeros(1, 2, 1, 4, dtype=dtype)
    k = torch.zeros(1, 2, 2048, 4, dtype=dtype)
    identity = torch.eye(2048)[None, None].expand(1, 2, -1, -1).to(dtype)
    of_pair = ALiBi(2).bias(q.float(), k.float(), Positions.arange(1, 1, 2047), Positions.arange(1, 2048))
    values = of_pair(torch.tensor(0), torch.tensor(0), torch.tensor(0), torch.arange(2048))
    assert len(values.unique()) == 2048
    out = attend(q, k, identity, ALiBi(2), Positions.arange(1, 1, 2047), Positions.arange(1, 2048), impl=impl)
    weights = out[0, 1, 0].double()
    exact = torch.softmax(-(2.0**-8) * torch.arange(2047, -1, -1).double(), 0)
    # One rounding to the output's dtype (the fused kernel may round its weights too), after fp32 exponentials up to e^8.
    roundings = 1 if impl == "reference" else 2
    allowed = (roundings * torch.finfo(dtype).eps / 2 + 1e-6) * exact + torch.finfo(dtype).smallest_normal
    assert ((weights - exact).abs() <= allowed).all()


def test_tensor_parallel_slice_H2():
    """A rank takes its part of the whole model's slopes; those of a smaller model are others."""
    part = ALiBi(40).heads(20, 40)
    assert part.slopes == alibi_slopes(40)[20:]
    assert part.slopes != alibi_slopes(20)
    assert alibi_slopes(40)[:20] != alibi_slopes(20)
    delta = torch.arange(-5, 6)
    assert torch.equal(part.at_distance(delta), ALiBi(40).at_distance(delta)[20:])
    assert part.heads(1, 3).slopes == alibi_slopes(40)[21:23]


def test_slopes_of_ones_own():
    q, k, v = (draw(seed, 1, 2, 4, 3) for seed in (1, 2, 3))
    rows = [range(4)]
    got = attend(*map(torch.from_numpy, (q, k, v)), ALiBi(2, slopes=(0.3, 0)), Positions.arange(1, 4))
    close(got, attention(biased(q, k, rows, rows, [0.3, 0.0]), v, sees(rows, rows)))
    with pytest.raises(ValueError, match="slopes: expected a finite number for each of 3 heads"):
        ALiBi(3, slopes=(0.3, 0.1))
    with pytest.raises(ValueError, match=r"reads 1 coordinate\(s\) per token"):
        attend(*[torch.zeros(1, 2, 4, 3)] * 3, ALiBi(2), Positions.grid(2, 2))
