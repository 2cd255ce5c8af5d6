"""iRPE by loops over pairs of patches. Wu et al. 2021, section 3, equations 13 to 19, and the authors' code."""

import itertools
import math

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.irpe import IRPE

from .by_hand import attention, close, draw, each, products, sees

D, H = 5, 2


def filled(**options) -> IRPE:
    encoding = IRPE(D, H, **options).double()
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(90 + seed, *parameter.shape)))
    return encoding


def piecewise(x: float, ratio: float) -> int:
    """Equation 18, as the authors' code rounds: to the nearest, then down from β."""
    alpha, beta, gamma = ratio, 2 * ratio, 8 * ratio
    if abs(x) <= alpha:
        return round(x)
    index = round(alpha + math.log(abs(x) / alpha) / math.log(gamma / alpha) * (beta - alpha))
    return int(math.copysign(int(min(index, beta)), x))


def rows_of(here, there, method, ratio, flip=False) -> list[int]:
    """The rows of a table as IRPE holds it; the class token's is the last."""
    side = int(2 * ratio)
    buckets = {"product": (2 * side + 1) ** 2, "cross": 2 * (2 * side + 1)}.get(method, side + 1)
    if min(*here, *there) < 0:
        return [buckets]
    down, across = here[0] - there[0], here[1] - there[1]
    if flip:
        down, across = -down, -across
    if method == "product":
        return [(piecewise(down, ratio) + side) * (2 * side + 1) + piecewise(across, ratio) + side]
    if method == "cross":
        return [piecewise(down, ratio) + side, 2 * side + 1 + piecewise(across, ratio) + side]
    distance = down * down + across * across
    return [piecewise(float(round(math.sqrt(distance))) if method == "euclidean" else distance, ratio)]


def vector(encoding, name, h, here, there, method, ratio, **wrong) -> np.ndarray:
    table = getattr(encoding, f"of_{name}").detach().numpy()
    return sum(table[h if len(table) > 1 else 0, row] for row in rows_of(here, there, method, ratio, **wrong))


def papers(q, k, v, encoding, places, may, *, method="product", ratio=1.9, mode="contextual", on=("key",), **wrong):
    logits = products(q, k)
    for b, h, i, j in each(*logits.shape):
        here, there = places[b][i], places[b][j]
        for name, content, pair in (("key", q[b, h, i], (here, there)), ("query", k[b, h, j], (there, here))):
            if name in on:
                found = vector(encoding, name, h, *pair, method, ratio, **wrong)
                logits[b, h, i, j] += found if mode == "bias" else content @ found / math.sqrt(D)
    addend = None
    if "value" in on:

        def addend(b, h, i, j):
            return vector(encoding, "value", h, places[b][i], places[b][j], method, ratio, **wrong)

    return attention(logits, v, may, addend)


PLACES = [[(-1, -1), *itertools.product((0, 1, 5), (0, 2, 3, 17))]]  # a class token and twelve patches
VARIANTS = [
    {},
    {"method": "cross"},
    {"method": "euclidean"},
    {"method": "quantization"},
    {"ratio": 3.0},
    {"mode": "bias"},
    {"mode": "bias", "on": ("key", "query"), "method": "cross"},
    {"on": ("query",)},
    {"on": ("key", "query", "value")},
    {"on": ("value",), "method": "cross"},
]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_scores_by_loops(variant, shared):
    q, k, v = (draw(seed, 1, H, 13, D) for seed in (1, 2, 3))
    encoding, at, order = filled(shared=shared, **variant), Positions.at(torch.tensor(PLACES)), [range(13)]
    may = sees(order, order, causal=False)
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=False)
    close(got, papers(q, k, v, encoding, PLACES, may, **variant))


@pytest.mark.parametrize("mistake", [{"flip": True}, {"ratio": 1.5}, {"on": ("query",)}], ids=str)
def test_the_oracle_sees_a_broken_formula(mistake):
    q, k, v = (draw(seed, 1, H, 13, D) for seed in (1, 2, 3))
    encoding = filled(on=("key", "query"))
    at, may = Positions.at(torch.tensor(PLACES)), sees([range(13)], [range(13)], causal=False)
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=False)
    with pytest.raises(AssertionError):
        close(got, papers(q, k, v, encoding, PLACES, may, **{"on": ("key", "query")} | mistake), atol=1e-3)


@pytest.mark.parametrize("ratio", [1.0, 1.9, 2.5, 3.0, 7.3, 20.0])
@pytest.mark.parametrize("method", ["product", "cross", "euclidean", "quantization"])
def test_buckets_by_whole_numbers_are_those_of_the_logarithm(method, ratio):
    encoding = IRPE(D, H, method=method, ratio=ratio)
    places = torch.tensor([(y, x) for y in (0, 1, 5, 40) for x in range(0, 200, 3)])
    got = torch.stack(encoding.bucket(places[:, None], places[None]), dim=-1)
    for i, j in itertools.product(range(0, len(places), 7), range(len(places))):
        assert got[i, j].tolist() == rows_of(places[i].tolist(), places[j].tolist(), method, ratio)


def test_sizes_of_the_authors_models():
    """Ratio 1.9: 49 buckets and the class token, as their table of 50 for each head."""
    assert IRPE(64, 12).of_key.shape == (1, 50, 64)
    assert IRPE(64, 12, shared=False, mode="bias").of_key.shape == (12, 50)
    assert IRPE(64, 12).of_query is None


def test_wrong_arguments():
    with pytest.raises(ValueError, match="on: values have vectors only"):
        IRPE(D, H, on=("value",), mode="bias")
    with pytest.raises(ValueError, match="on: expected 'key', 'query', 'value' or several of them"):
        IRPE(D, H, on=())
    with pytest.raises(ValueError, match=r"ratio: expected a number 1 … 64, got 0\.5"):
        IRPE(D, H, ratio=0.5)
    with pytest.raises(ValueError, match="IRPE: reads 2 coordinate"):
        attend(*[torch.zeros(1, H, 4, D)] * 3, IRPE(D, H), Positions.arange(1, 4))
    with pytest.raises(TypeError, match="IRPE: needs integer positions"):
        attend(*[torch.zeros(1, H, 4, D)] * 3, IRPE(D, H), Positions.at(torch.rand(1, 4, 2)))
    with pytest.raises(ValueError, match="IRPE: built for n_heads=2, got a tensor with 3 as q"):
        attend(*[torch.zeros(1, 3, 4, D)] * 3, IRPE(D, H), Positions.grid(2, 2))
