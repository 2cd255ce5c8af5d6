"""NEZHA by loops over pairs and channels. Wei et al. 2019, section 2.2, equations 6 and 7; the authors' clipped table."""

import math

import pytest
import torch

import posenc
from posenc import Positions, attend
from posenc.encodings.nezha import NEZHA

from .by_hand import add, attention, close, draw, products, sees

D, K = 6, 3


def vector(distance, form, shift=0):
    """Equations 6 and 7 of a clipped distance; the code numbers its rows from 0."""
    c = max(-K, min(K, distance)) + (K if form == "code" else 0) + shift
    angles = [c / 10000 ** (2 * n / D) for n in range(D // 2)]
    return [wave(angle) for angle in angles for wave in (math.sin, math.cos)]


def both(impl, form, **wrong):
    q, k, v = draw(1, 2, 4, 9, D), draw(2, 2, 2, 9, D), draw(3, 2, 2, 9, D)
    rows, order = [range(5, 14), range(9)], [range(9)] * 2

    def of_pair(b, i, j):
        return vector(rows[b][j] - rows[b][i], form, **wrong)

    logits = add(
        products(q, k), lambda b, h, i, j: sum(q[b, h, i, c] * of_pair(b, i, j)[c] for c in range(D)) / math.sqrt(D)
    )
    at = Positions.arange(2, 9, torch.tensor([5, 0]))
    got = attend(*map(torch.from_numpy, (q, k, v)), NEZHA(D, max_distance=K, form=form), at, causal=False, impl=impl)
    return got, attention(logits, v, sees(order, order, causal=False), lambda b, h, i, j: of_pair(b, i, j))


@pytest.mark.parametrize("impl", ["reference", "relative"])
@pytest.mark.parametrize("form", ["paper", "code"])
def test_keys_and_values_by_loops(form, impl):
    close(*both(impl, form))


def test_the_oracle_sees_a_table_that_begins_one_row_later():
    with pytest.raises(AssertionError):
        close(*both("reference", "paper", shift=1))


def test_defaults_are_those_of_the_authors_models():
    encoding = NEZHA(64)
    assert (encoding.max_distance, encoding.form, encoding.configuration["base"]) == (64, "code", 10000.0)
    assert not list(encoding.parameters())


def test_what_is_made_by_name_is_the_authors_table():
    """modeling.py of NEZHA-TensorFlow: row c + 64 of 129 rows, sin(pos / 10000^(2i/depth)) at even channels."""
    distances = (-200, -64, -3, 0, 1, 63, 64, 300)
    q, k = torch.zeros(1, 1, 1, D).double(), torch.zeros(1, 1, len(distances), D).double()
    k_at, q_at = Positions.at(torch.tensor([distances]) + 1000), Positions.at(torch.tensor([[1000]]))
    got = attend(q, k, torch.zeros_like(k), posenc.create("nezha", d_head=D), q_at, k_at, causal=False)
    rows = [max(-64, min(64, distance)) + 64 for distance in distances]
    table = [[f(row / 10000 ** (2 * n / D)) for n in range(D // 2) for f in (math.sin, math.cos)] for row in rows]
    assert got[0, 0, 0].tolist() == pytest.approx(
        [sum(column) / len(rows) for column in zip(*table, strict=True)], abs=1e-12
    )


def test_the_papers_form_does_not_clip_unasked():
    with pytest.raises(ValueError, match="max_distance: left out; the paper does not clip"):
        NEZHA(64, form="paper")
