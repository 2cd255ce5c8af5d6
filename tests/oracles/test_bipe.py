"""BiPE by loops over tokens and pairs: counts of segments, rows of a table, and RoPE by hand. He et al. 2024."""

import numpy as np
import pytest
import torch

import posenc

from .by_hand import attention, close, draw, products, sees, turned

M, H, D = 8, 2, 4
ENDS = [[0, 1, 0, 0, 1, 1, 0], [1, 0, 0, 0, 0, 0, 1]]


def counted(ends):
    """(index, segment) of every token; the token that ends a segment belongs to it."""
    found, index, segment = [], 0, 0
    for end in ends:
        found.append([index, segment])
        index, segment = (0, segment + 1) if end else (index + 1, segment)
    return found


def positions():
    return posenc.positions_by("bipe_ids", ends=torch.tensor(ENDS).bool())


def encoding():
    made = posenc.create("bipe", d_model=M, d_head=D, max_positions=8).double()
    (table,) = made.parameters()
    with torch.no_grad():
        table.copy_(torch.from_numpy(draw(7, 8, M)))
    return made, table.detach().numpy()


def test_positions_are_counted_by_segments():
    assert positions().coords.tolist() == [counted(row) for row in ENDS]
    assert counted(ENDS[0]) == [[0, 0], [1, 0], [0, 1], [1, 1], [2, 1], [0, 2], [0, 3]]


def test_the_table_reads_the_index():
    made, table = encoding()
    x = draw(1, 2, 7, M)
    got = made.embed(torch.from_numpy(x), positions())
    close(got, x + np.array([[table[index] for index, _ in counted(row)] for row in ENDS]))


def scores(q, k, axis):
    """RoPE over coordinate `axis`, halves paired."""
    q, k = q.copy(), k.copy()
    for x in (q, k):
        for b in range(2):
            for h in range(x.shape[1]):
                for t, at in enumerate(counted(ENDS[b])):
                    x[b, h, t] = turned(x[b, h, t], [at[axis] * 10000 ** (-2 * n / D) for n in range(D // 2)], "half")
    return products(q, k)


def test_the_rotation_reads_the_segment():
    q, k, v = (draw(seed, 2, H, 7, D) for seed in (2, 3, 4))
    got = posenc.attend(*map(torch.from_numpy, (q, k, v)), encoding()[0], positions())
    order = [range(7)] * 2
    close(got, attention(scores(q, k, axis=1), v, sees(order, order)))
    with pytest.raises(AssertionError):
        close(got, attention(scores(q, k, axis=0), v, sees(order, order)))


def test_deeper_layers_only_turn():
    made, _ = encoding()
    x = torch.from_numpy(draw(5, 2, 7, M))
    assert torch.equal(made.at_layer(1).embed(x, positions()), x)


def test_a_segment_longer_than_the_table_is_refused():
    at = posenc.positions_by("bipe_ids", ends=torch.zeros(1, 9).bool())
    with pytest.raises(ValueError, match="coordinate 0: position 8 is outside 0 … 7: the table ends there"):
        encoding()[0].embed(torch.randn(1, 9, M).double(), at)
