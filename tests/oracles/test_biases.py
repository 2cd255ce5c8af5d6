"""Biases of a pair of positions by loops over pairs, in every situation in which attention reads one.

A row of FORMULAS is an encoding with its parameters drawn, the paper's formula of one pair, and mistakes that must be seen.
What else is particular to an encoding is in its own file.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch

from posenc import PositionalEncoding, Positions, attend
from posenc.encodings.alibi import ALiBi
from posenc.encodings.asymmetric_alibi import AsymmetricALiBi
from posenc.encodings.bam import BAM
from posenc.encodings.dynamic_position_bias import DynamicPositionBias
from posenc.encodings.fire import FIRE
from posenc.encodings.kerple import KERPLE
from posenc.encodings.sandwich import Sandwich
from posenc.encodings.t5 import T5

from . import papers
from .by_hand import add, attention, close, draw, products, sees

H = 4


class Formula(NamedTuple):
    """term, wrong: of (head, position of the query, of the key). integers: positions are; causal: it is defined so only."""

    encoding: PositionalEncoding
    term: Callable[[int, float, float], float]
    wrong: tuple[Callable[[int, float, float], float], ...]
    integers: bool = False
    causal: bool = False
    scale: float | None = None
    backends: tuple[str, ...] = ("reference", "sdpa", "toeplitz")


def filled(encoding: PositionalEncoding, **values: object) -> PositionalEncoding:
    """In float64, its parameters as given; those that are not, drawn."""
    encoding = encoding.double()
    with torch.no_grad():
        for seed, (name, parameter) in enumerate(encoding.named_parameters()):
            given = values.get(name, draw(30 + seed, *parameter.shape))
            parameter.copy_(torch.as_tensor(given, dtype=torch.float64))
    return encoding


def changed(term, **mistake):
    return lambda h, i, j: term(h, i, j, **mistake)


def kerple(kernel: str) -> Formula:
    r1, r2 = [0.3, 1.7, 0.02, 4.0], [0.9, 0.05, 1.99, 1.0]
    inverse = (lambda y: math.log(math.exp(y) - 1)) if kernel == "log" else (lambda y: math.log(y / (2 - y)))
    encoding = filled(
        KERPLE(H, kernel=kernel), scale=[math.log(math.exp(one) - 1) for one in r1], shape=[inverse(two) for two in r2]
    )
    term = lambda h, i, j, one=0, sign=1.0: sign * papers.kerple(kernel, (r1, r2)[one][h], (r2, r1)[one][h], i - j)  # noqa: E731
    return Formula(encoding, term, (changed(term, sign=-1.0), changed(term, one=1)))


def t5(bidirectional: bool, scale: float | None = None) -> Formula:
    encoding = filled(T5(H, n_buckets=8, max_distance=20, bidirectional=bidirectional, scale=scale))
    table = encoding.table.tolist()
    term = lambda h, i, j, moved=0: table[papers.t5_bucket(int(i - j) + moved, 8, 20, bidirectional)][h]  # noqa: E731
    return Formula(encoding, term, (changed(term, moved=1),), integers=True, causal=not bidirectional, scale=scale)


def fire() -> Formula:
    encoding = filled(FIRE(H, width=3, first_length=8), c=-0.7, multiplier=-0.5)
    term = lambda h, i, j, **mistake: papers.fire(encoding, h, i, j, **mistake)  # noqa: E731
    wrong = {"threshold": 5.0}, {"constant": 0.8}, {"normaliser": lambda i, j, least: max(j, least)}
    return Formula(encoding, term, tuple(changed(term, **mistake) for mistake in wrong), backends=("reference", "sdpa"))


def dynamic(logarithm: bool) -> Formula:
    encoding = filled(DynamicPositionBias(H, width=3, depth=3, log_distance=logarithm))
    term = lambda h, i, j, sign=1, logarithm=logarithm: papers.dynamic_position_bias(  # noqa: E731
        encoding, h, sign * (i - j), logarithm=logarithm
    )
    wrong = changed(term, sign=-1), changed(term, logarithm=not logarithm)
    return Formula(encoding, term, wrong, backends=("reference", "sdpa"))


def bam() -> Formula:
    a, s = [0.3, -1.2, 0.7, 0.0], [1.0, 0.35, -0.4, 2.1]
    term = lambda h, i, j, sign=1, least=1e-5: -sign * math.exp(a[h]) * (abs(i - j) + least) ** s[h]  # noqa: E731
    encoding = filled(BAM(H), log_scale=a, shape=s)
    return Formula(encoding, term, (changed(term, sign=-1), changed(term, least=1e-12)))


def asymmetric() -> Formula:
    before, after = [-0.5, 0.25, -1.5, -0.125], [-2.0, -0.75, 0.5, -0.0625]
    term = lambda h, i, j, one=before, two=after: one[h] * (i - j) if j < i else two[h] * (j - i)  # noqa: E731
    encoding = filled(AsymmetricALiBi(H), before=before, after=after)
    return Formula(encoding, term, (changed(term, one=after, two=before),))


def of_slopes(encoding: ALiBi, slopes: list[float]) -> Formula:
    return Formula(encoding, lambda h, i, j: -slopes[h] * abs(i - j), (lambda h, i, j: slopes[h] * abs(i - j),))


def sandwich() -> Formula:
    term = lambda h, i, j, **mistake: papers.sandwich(h, i, j, H, width=6, base=100.0, **mistake)  # noqa: E731
    wrong = changed(term, first=1), lambda h, i, j: -term(h, i, j)
    return Formula(Sandwich(H, width=6, base=100.0), term, wrong)


FORMULAS: dict[str, Formula] = {
    "alibi": of_slopes(ALiBi(4), papers.alibi(4)),
    "alibi 6": of_slopes(ALiBi(6), papers.alibi(6)),
    "alibi own slopes": of_slopes(ALiBi(4, slopes=(0.3, 0, 1, 2)), [0.3, 0.0, 1.0, 2.0]),
    "asymmetric_alibi": asymmetric(),
    "bam": bam(),
    "dynamic_position_bias": dynamic(False),
    "dynamic_position_bias log": dynamic(True),
    "fire": fire(),
    "kerple log": kerple("log"),
    "kerple power": kerple("power"),
    "sandwich": sandwich(),
    "t5": t5(False),
    "t5 both ways": t5(True),
    "t5 scale 1": t5(True, 1.0),
}
every = pytest.mark.parametrize("name", FORMULAS)


def both(name, at_q, at_k=None, *, causal=False, impl="auto", term=None, documents=None, shared=1, positions=None):
    """What attend says of drawn queries, keys and values at these positions, and what loops over pairs say."""
    formula, at_k = FORMULAS[name], at_q if at_k is None else at_k
    heads = formula.encoding.configuration["n_heads"]
    rows_q, rows_k = at_q.coords.tolist(), at_k.coords.tolist()
    q = draw(1, len(rows_q), heads, len(rows_q[0]), 5)
    k, v = (draw(seed, len(rows_k), heads // shared, len(rows_k[0]), 5) for seed in (2, 3))
    causal = causal or formula.causal
    with torch.set_grad_enabled(impl != "toeplitz"):
        got = attend(*map(torch.from_numpy, (q, k, v)), formula.encoding, at_q, at_k, causal=causal, impl=impl)
    logits = add(products(q, k, formula.scale), lambda b, h, i, j: (term or formula.term)(h, rows_q[b][i], rows_k[b][j]))
    may = sees(at_q.order.tolist(), at_k.order.tolist(), at_q.document.tolist(), at_k.document.tolist(), causal=causal)
    return got, attention(logits, v, may)


@every
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("impl", ["reference", "sdpa", "toeplitz"])
def test_rows_that_begin_elsewhere_and_shared_keys(name, impl, causal):
    if impl not in FORMULAS[name].backends:
        with pytest.raises(ValueError, match=f"impl='{impl}' cannot express"):
            both(name, Positions.arange(2, 6), impl=impl)
        return
    at = Positions.arange(2, 6, torch.tensor([40, 0]))
    close(*both(name, at, causal=causal, impl=impl, shared=2))


@every
@pytest.mark.parametrize("impl", ["reference", "sdpa"])
@pytest.mark.parametrize("real", [False, True], ids=["integers", "reals"])
def test_queries_and_keys_elsewhere(name, impl, real):
    if real and FORMULAS[name].integers:
        pytest.skip("it reads whole positions")
    at_q, at_k = [[4, 0, 30], [2, 2, 7]], [[3, 18, 5, 0, 4], [1, 6, 2, 3, 100]]
    by = 0.25 if real else 1
    close(*both(name, *(Positions.at(torch.tensor(rows) * by) for rows in (at_q, at_k)), impl=impl))


@every
@pytest.mark.parametrize("sizes", [(1, 9, 8, 0), (4, 4, 30, 12), (3, 9, 6, 0), (9, 3, 0, 5)], ids=str)
def test_consecutive_positions_of_both_sides(name, sizes):
    queries, keys, start_q, start_k = sizes
    close(*both(name, Positions.arange(1, queries, start_q), Positions.arange(1, keys, start_k)))


@every
def test_packed_documents(name):
    close(*both(name, Positions.packed([0, 3, 7]), causal=True))


@every
def test_a_mistake_is_seen(name):
    for mistake in FORMULAS[name].wrong:
        got, expected = both(name, Positions.arange(1, 9), causal=True, term=mistake)
        with pytest.raises(AssertionError):
            close(got, expected, atol=1e-3)
