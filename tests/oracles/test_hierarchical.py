"""The hierarchical table by loops. Su 2020, kexue.fm 7947."""

import numpy as np
import pytest
import torch

from posenc import Positions
from posenc.encodings.hierarchical import Hierarchical
from posenc.encodings.learned import Learned

from .by_hand import close, draw, each

D, N = 5, 4


def filled(alpha=0.4) -> Hierarchical:
    encoding = Hierarchical(D, rows=N, alpha=alpha).double()
    with torch.no_grad():
        encoding.table.copy_(torch.from_numpy(draw(7, N, D)))
    return encoding


def papers(x, table, rows, alpha=0.4, swap=False, plain=False) -> np.ndarray:
    out = x.copy()
    for b, t, c in each(*x.shape):
        digits = divmod(rows[b][t], N)
        coarse, fine = digits[::-1] if swap else digits
        u = [table[i, c] if plain else (table[i, c] - alpha * table[0, c]) / (1 - alpha) for i in range(N)]
        out[b, t, c] += alpha * u[coarse] + (1 - alpha) * u[fine]
    return out


@pytest.mark.parametrize("alpha", [0.4, 0.1, 0.9])
def test_by_loops_over_all_positions(alpha):
    x, rows = draw(1, 1, N * N, D), [list(range(N * N))[::-1]]
    encoding = filled(alpha)
    got = encoding.embed(torch.from_numpy(x), Positions.at(torch.tensor(rows)))
    close(got, papers(x, encoding.table.detach().numpy(), rows, alpha))


@pytest.mark.parametrize("mistake", [{"alpha": 0.6}, {"swap": True}, {"plain": True}], ids=str)
def test_the_oracle_sees_a_broken_formula(mistake):
    x, rows, encoding = draw(1, 1, N * N, D), [range(N * N)], filled()
    got = encoding.embed(torch.from_numpy(x), Positions.arange(1, N * N))
    expected = papers(x, encoding.table.detach().numpy(), rows, **mistake)
    with pytest.raises(AssertionError):
        close(got, expected, atol=1e-4)


def test_the_first_positions_are_those_of_the_table():
    encoding, table = filled(), Learned(D, N).double()
    with torch.no_grad():
        table.table.copy_(encoding.table)
    x, at = torch.from_numpy(draw(1, 2, N, D)), Positions.arange(2, N)
    close(encoding.embed(x, at), table.embed(x, at).detach())


def test_wrong_arguments():
    assert Hierarchical(D, rows=N).largest_position() == N * N - 1
    with pytest.raises(ValueError, match="Hierarchical: position 16 is outside 0 … 15: the table reaches no further"):
        Hierarchical(D, rows=N).embed(torch.zeros(1, 2, D), Positions.arange(1, 2, 15))
    for alpha in (0.5, 1.0):
        with pytest.raises(ValueError, match=r"alpha: expected a number above 0 and below 1, but not 0\.5"):
            Hierarchical(D, alpha=alpha)
    with pytest.raises(TypeError, match="Hierarchical: needs integer positions"):
        Hierarchical(D).embed(torch.zeros(1, 2, D), Positions.at(torch.rand(1, 2)))
