"""Encodings that read hidden states, by loops over tokens and pairs, in every situation in which attention reads one.

A row of FORMULAS is an encoding with its parameters drawn, the paper's logits, and mistakes that must be seen. The formula
is in the encoding's own file, with what else is particular to it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch

from posenc import PositionalEncoding, Positions, attend
from posenc.encodings.cable import CABLE
from posenc.encodings.grape_ap import GrapeAP

from . import test_carope, test_fox, test_grape, test_path, test_per_row_fox, test_selective_rope, test_wall
from .by_hand import add, attention, close, draw, products, sees

H, G = 4, 2


class Formula(NamedTuple):
    """logits: of (q, k, x, encoding, coordinates, order, documents). Its module says the sizes M and D."""

    encoding: PositionalEncoding
    logits: Callable[..., np.ndarray]
    mistakes: tuple[dict[str, object], ...]
    sizes: tuple[int, int]
    causal: bool = True


def by_order(module, *mistakes) -> Formula:
    def logits(q, k, x, encoding, coords, order, documents, **mistake):
        return module.papers(q, k, x, encoding, order, documents, **mistake)

    return Formula(module.filled(), logits, mistakes, (module.M, module.D))


def by_gates(encoding, term, *mistakes, causal=True) -> Formula:
    def logits(q, k, x, encoding, coords, order, documents, sign=1.0, **mistake):
        return add(products(q, k), lambda *pair: sign * term(encoding, x, order, documents, *pair, **mistake))

    return Formula(encoding, logits, mistakes, (test_fox.M, test_fox.D), causal)


def grape(form: str) -> Formula:
    encoding = test_grape.drawn(GrapeAP(test_grape.M, H, width=test_grape.W, form=form))
    mistakes = {"own": False}, {"turn": -1}, {"both": form == "code"}
    return Formula(encoding, test_grape.integrals, mistakes, (test_grape.M, test_grape.D))


FORMULAS = {
    "bidirectional_fox": by_gates(test_fox.filled_both_ways(), test_fox.two_sided, {"own": False}, causal=False),
    "bidirectional_fox causal": by_gates(test_fox.filled_both_ways(), test_fox.two_sided, {"sign": -1.0}),
    "cable": by_gates(test_fox.filled(CABLE), test_fox.papers, {"first": 0}, {"sign": -1.0}),
    "carope": by_order(test_carope, {"plus": 2.0}, {"first": 1}, {"own": 1}),
    "fox": by_gates(test_fox.filled(), test_fox.papers, {"first": 0}, {"sign": -1.0}),
    "grape_ap": grape("paper"),
    "grape_ap code": grape("code"),
    "path": by_order(test_path, {"reverse": True}, {"symmetric": False}),
    "per_row_fox": by_gates(
        test_per_row_fox.filled(), test_per_row_fox.papers, {"first": 1}, {"sign": -1.0}, {"divided": False}
    ),
    "selective_rope": by_order(test_selective_rope, {"base": 1e4}, {"first": 1}),
    "wall": by_order(test_wall, {"first": 0}, {"sign": -1}),
}
every = pytest.mark.parametrize("name", FORMULAS)


def both(name, at, *, impl="auto", **mistake):
    """What attend says of drawn queries, keys, values and hidden states at these positions, and what loops say."""
    encoding, logits, _, (d_model, d_head), causal = FORMULAS[name]
    rows, length = at.coords.shape
    q, k, v = (draw(seed, rows, heads, length, d_head) for seed, heads in ((1, H), (2, G), (3, G)))
    x = draw(4, rows, length, d_model)
    coords, order, documents = (one.tolist() for one in (at.coords, at.order, at.document))
    at = encoding.read_hidden(torch.from_numpy(x), at)
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=causal, impl=impl)
    expected = logits(q, k, x, encoding, coords, order, documents, **mistake)
    return got, attention(expected, v, sees(order, order, documents, documents, causal=causal))


@every
@pytest.mark.parametrize("impl", ["reference", "sdpa", "auto"])
def test_rows_that_begin_elsewhere(name, impl):
    close(*both(name, Positions.arange(2, 8, torch.tensor([40, 0])), impl=impl), atol=1e-11)


@every
def test_interleaved_documents_with_padding_in_a_mixed_order(name):
    order = torch.tensor([[3, 0, 5, 1, 7, 2, 6, 4]])
    close(*both(name, Positions(order, order, torch.tensor([[0, 1, 0, 0, -1, 1, 0, 1]]))), atol=1e-11)


@every
def test_a_mistake_is_seen(name):
    assert FORMULAS[name].mistakes
    for mistake in FORMULAS[name].mistakes:
        got, expected = both(name, Positions.arange(2, 8, 40), **mistake)
        with pytest.raises(AssertionError):
            close(got, expected, atol=1e-3)
