"""Per-row FoX by loops over tokens, channels and pairs: x-transformers' PerRowDataDependentAlibi."""

import math

import pytest
import torch

from posenc import Attention, Positions, attend
from posenc.encodings.per_row_fox import PerRowFoX

from .by_hand import close, draw

M, H, D, W = 7, 4, 5, 3


def filled() -> PerRowFoX:
    encoding = PerRowFoX(M, H, width=W).double()
    with torch.no_grad():
        encoding.weight.copy_(torch.from_numpy(draw(60, 2 * H * W, M)))
    return encoding


def papers(encoding, x, order, documents, b: int, h: int, i: int, j: int, first=0, divided=True) -> float:
    """Σ ln σ over the tokens of the document from the key on, before the query."""
    weight = encoding.weight.detach().numpy()
    total = 0.0
    for t in range(x.shape[1]):
        if documents[b][t] == documents[b][j] and order[b][j] + first <= order[b][t] < order[b][i] + first:
            u, v = (weight[(side * H + h) * W : (side * H + h + 1) * W] @ x[b, at] for side, at in ((0, i), (1, t)))
            product = sum(one * two for one, two in zip(u, v, strict=True)) / (math.sqrt(W) if divided else 1.0)
            total -= math.log1p(math.exp(-product))
    return total


def test_decoding_after_right_padding_forgets_no_more():
    """The prompt's padding stands between the cache and the new token, and adds nothing."""
    layer = Attention(M * 4, H, PerRowFoX(M * 4, H), n_kv_heads=2).double()
    x = torch.from_numpy(draw(7, 1, 6, M * 4))
    expected = layer(x[:, [0, 1, 2, 5]], Positions.arange(1, 4))
    _, cache = layer.decode(x[:, :5], Positions.from_mask(torch.tensor([[1, 1, 1, 0, 0]])))
    last, _ = layer.decode(x[:, 5:], Positions.decode([3]), cache)
    close(last, expected[:, 3:].detach())


def test_heads_are_slices():
    encoding, part = filled(), filled().heads(1, 3)
    q, k, v = (torch.from_numpy(draw(seed, 2, H, 8, D)) for seed in (1, 2, 3))
    x, at = torch.from_numpy(draw(4, 2, 8, M)), Positions.arange(2, 8)
    whole = attend(q, k, v, encoding, encoding.read_hidden(x, at))[:, 1:3].detach()
    close(attend(q[:, 1:3], k[:, 1:3], v[:, 1:3], part, part.read_hidden(x, at)), whole)


def test_wrong_arguments():
    q, at = torch.zeros(1, H, 4, D), Positions.arange(1, 4)
    with pytest.raises(ValueError, match=r"at: carries nothing read by PerRowFoX"):
        attend(q, q, q, PerRowFoX(M, H), at)
    with pytest.raises(ValueError, match="PerRowFoX: built for n_heads=2, got a tensor with 4 as q"):
        attend(q, q, q, encoding := PerRowFoX(M, 2), encoding.read_hidden(torch.zeros(1, 4, M), at))
