"""Wall attention by loops over channels and gates; its formula as flash-linear-attention's reference computes it."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.fox import FoX
from posenc.encodings.wall import BLOCK, Wall, by_blocks, one_by_one, square

from .by_hand import attention, close, draw, each, products, sees

M, H, G, D = 7, 4, 2, 3


def filled() -> Wall:
    encoding = Wall(M, H, D).double()
    with torch.no_grad():
        encoding.weight.copy_(torch.from_numpy(draw(90, H * D, M)))
        encoding.offset.copy_(torch.from_numpy(draw(91, H * D)))
    return encoding


def papers(q, k, x, encoding, order, documents, first=1, sign=1) -> np.ndarray:
    logits, may = np.zeros((*q.shape[:3], k.shape[2])), sees(order, order, documents, documents)
    weight, offset = encoding.weight.detach().numpy(), encoding.offset.detach().numpy()
    for b, h, i, j in each(*logits.shape):
        if not may(b, i, j):
            continue
        for c in range(D):
            decay = 1.0
            for t in range(x.shape[1]):
                if documents[b][t] == documents[b][j] and order[b][j] + first <= order[b][t] < order[b][i] + first:
                    decay *= 1 / (1 + math.exp(-sign * (weight[h * D + c] @ x[b, t] + offset[h * D + c])))
            logits[b, h, i, j] += q[b, h, i, c] * k[b, h // (H // G), j, c] * decay
    return logits / math.sqrt(D)


def tensors(batch=2, length=8):
    """q, k, v and the hidden states."""
    return *(draw(seed, batch, heads, length, D) for seed, heads in ((1, H), (2, G), (3, G))), draw(4, batch, length, M)


def test_blocks_give_what_single_queries_give_without_overflow():
    """Gates down to e^-40 each: the sums fall by thousands within a block."""
    n = 2 * BLOCK + 7
    q, k = (torch.from_numpy(draw(seed, 1, 2, n, D)) for seed in (1, 2))
    sums = -torch.from_numpy(np.abs(draw(3, 1, 2, n, D)) ** 6).clamp(max=40).cumsum(dim=2)
    assert sums.min() < -600
    seen = torch.ones(n, n).tril().bool()
    mine, single = square(by_blocks(q, k, sums), n), one_by_one(q, k, sums, sums)
    close(mine.masked_fill(~seen, 0), single.masked_fill(~seen, 0))
    for i, j in ((0, 0), (5, 3), (63, 0), (64, 63), (128, 127), (200, 17), (262, 258)):
        exact = sum(q[0, 1, i, c] * k[0, 1, j, c] * math.exp(sums[0, 1, i, c] - sums[0, 1, j, c]) for c in range(D))
        close(mine[0, 1, i, j], np.float64(exact))


def test_gates_of_one_keep_the_product():
    encoding = Wall(M, H, D, first_bias=800.0).double()
    q, k, v, x = tensors()
    got = attend(
        *map(torch.from_numpy, (q, k, v)), encoding, encoding.read_hidden(torch.from_numpy(0 * x), Positions.arange(2, 8))
    )
    close(got, attention(products(q, k), v, sees([range(8)] * 2, [range(8)] * 2)))


def test_equal_gates_in_all_channels_multiply_by_the_decay_of_fox():
    wall, fox = filled(), FoX(M, H).double()
    with torch.no_grad():
        fox.weight.copy_(torch.from_numpy(draw(92, H, M)))
        wall.weight.copy_(fox.weight.repeat_interleave(D, dim=0))
        wall.offset.copy_(fox.offset.repeat_interleave(D))
    q, k, v, x = tensors()
    at = Positions.arange(2, 8)
    sums = fox.read_hidden(torch.from_numpy(x), at).states[fox.identity][0].detach().numpy()  # [b, t, h]
    decay = np.exp(sums.transpose(0, 2, 1)[..., None] - sums.transpose(0, 2, 1)[:, :, None])
    got = attend(*map(torch.from_numpy, (q, k, v)), wall, wall.read_hidden(torch.from_numpy(x), at))
    close(got, attention(products(q, k) * np.minimum(decay, 1), v, sees([range(8)] * 2, [range(8)] * 2)))


def test_wrong_arguments():
    q, at = torch.zeros(1, H, 4, D), Positions.arange(1, 4)
    with pytest.raises(ValueError, match=r"at: carries nothing read by Wall.*call read_hidden\(x, at\)"):
        attend(q, q, q, Wall(M, H, D), at)
    with pytest.raises(ValueError, match="Wall: built for d_head=3, got a tensor with 2 as q"):
        attend(*[torch.zeros(1, H, 4, 2)] * 3, encoding := Wall(M, H, D), encoding.read_hidden(torch.zeros(1, 4, M), at))
