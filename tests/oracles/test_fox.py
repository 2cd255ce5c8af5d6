"""FoX and CABLE by loops over gates. Lin et al. 2025, section 3; Veisi et al. 2025, section 3."""

import itertools
import math

import numpy as np
import pytest
import torch

from posenc import Attention, Positions, attend
from posenc.checking import laws
from posenc.encodings.alibi import ALiBi
from posenc.encodings.bidirectional_fox import BidirectionalFoX
from posenc.encodings.cable import CABLE
from posenc.encodings.fox import FoX

from .by_hand import close, draw

M, H, D = 7, 4, 5


def filled(kind=FoX, **options):
    encoding = kind(M, H, **options).double()
    with torch.no_grad():
        encoding.weight.copy_(torch.from_numpy(draw(60, H, M)))
        encoding.offset.copy_(torch.from_numpy(draw(61, H)))
    return encoding


def sums(encoding, at):
    return at.states[encoding.identity][0]


def gate(encoding, x, h: int) -> float:
    """FoX's σ(w·x + b); CABLE's exp(-softplus(w·x + b))."""
    number = sum(encoding.weight[h, c].item() * x[c] for c in range(M)) + encoding.offset[h].item()
    return 1 / (1 + math.exp(-number)) if type(encoding) is FoX else 1 / (1 + math.exp(number))


def papers(encoding, x, order, documents, b: int, h: int, i: int, j: int, first=1) -> float:
    """Σ ln f over the tokens of the document after the key, up to the query."""
    between = [
        t
        for t in range(x.shape[1])
        if documents[b][t] == documents[b][j] and order[b][j] + first <= order[b][t] <= order[b][i] + first - 1
    ]
    return sum(math.log(gate(encoding, x[b, t], h)) for t in between)


def test_decoding_after_right_padding_forgets_no_more():
    """The prompt's padding stands between the cache and the new token, and adds nothing."""
    layer = Attention(M * 4, H, FoX(M * 4, H), n_kv_heads=2).double()
    torch.nn.init.normal_(layer.encoding.weight)
    x = torch.from_numpy(draw(7, 1, 6, M * 4))
    expected = layer(x[:, [0, 1, 2, 5]], Positions.arange(1, 4))
    _, cache = layer.decode(x[:, :5], Positions.from_mask(torch.tensor([[1, 1, 1, 0, 0]])))
    last, _ = layer.decode(x[:, 5:], Positions.decode([3]), cache)
    close(last, expected[:, 3:].detach())


@pytest.mark.parametrize("kind", [FoX, CABLE])
def test_each_document_goes_on_after_its_own_last_token_by_loops(kind):
    """Seven tokens are read and some rejected, then two more of one or two documents. Gates of others do not count."""
    x, encoding = draw(8, 3, 9, M), filled(kind)
    order = [[*range(9)]] * 3
    documents = [[0, 1, 0, 1, 0, -1, 0, 1, 1], [1, 1, 0, 0, 0, -1, -1, 1, 0], [0, 0, 0, 0, 0, 0, -1, 0, 0]]
    before = [[0, 1, 0, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0], [0] * 7]  # when no draft was rejected
    coords, numbers, now = torch.tensor(order), torch.tensor(before), torch.tensor(documents)
    read = encoding.read_hidden(torch.from_numpy(x[:, :7]), Positions(coords[:, :7], coords[:, :7], numbers))
    held = Positions(coords[:, :7], coords[:, :7], now[:, :7], states=read.states)
    new = Positions(coords[:, 7:], coords[:, 7:], now[:, 7:])
    total = sums(encoding, Positions.cat([held, encoding.read_hidden(torch.from_numpy(x[:, 7:]), new, held)]))
    for b, h, i, j in itertools.product(range(3), range(H), (7, 8), range(7)):
        if documents[b][i] == documents[b][j]:
            close(total[b, i, h] - total[b, j, h], papers(encoding, x, order, documents, b, h, i, j))


def test_a_constant_gate_is_alibi():
    encoding = FoX(M, 2).double()
    with torch.no_grad():
        encoding.weight.zero_()
        for head, slope in enumerate((0.5, 0.25)):  # σ(b) = e^-m
            encoding.offset[head] = -math.log(math.exp(slope) - 1)
    q, k, v = (torch.from_numpy(draw(seed, 1, 2, 9, D)) for seed in (1, 2, 3))
    at = Positions.arange(1, 9)
    got = attend(q, k, v, encoding, encoding.read_hidden(torch.zeros(1, 9, M, dtype=torch.float64), at))
    close(got, attend(q, k, v, ALiBi(2, slopes=(0.5, 0.25)), at))


def test_cable_is_fox_with_the_sign_turned():
    cable, fox = filled(CABLE), filled()
    with torch.no_grad():
        fox.weight.neg_()
        fox.offset.neg_()
    x, at = torch.from_numpy(draw(5, 2, 6, M)), Positions.arange(2, 6)
    close(sums(cable, cable.read_hidden(x, at)), sums(fox, fox.read_hidden(x, at)).detach())
    assert CABLE(M, H).softmax_scale(16) == 0.25
    assert CABLE(M, H, scale=1.0).softmax_scale(16) == 1.0


def test_neighbours_are_told_apart_after_a_million_tokens():
    """In float32 a running sum of a million has steps of 1/16."""
    encoding = FoX(1, 1)
    with torch.no_grad():
        encoding.weight.fill_(1.0)
    x = torch.full((1, 2**20, 1), -1.0)
    total = sums(encoding, encoding.read_hidden(x, Positions.arange(1, 2**20)))
    step = np.log(1 / (1 + np.exp(1)))
    np.testing.assert_allclose((total[0, -1] - total[0, -2]).item(), step, rtol=1e-6)


def test_the_code_of_cable_obeys_the_laws():
    laws.check(laws.draw_parameters(CABLE(32, 4, scale=1.0), seed=1), laws=["decode_equals_prefill", "options_agree"])


def test_wrong_arguments():
    q, at = torch.zeros(1, H, 4, D), Positions.arange(1, 4)
    with pytest.raises(ValueError, match=r"at: carries nothing read by FoX.*call read_hidden\(x, at\)"):
        attend(q, q, q, FoX(M, H), at)
    with pytest.raises(ValueError, match=r"FoX.* is defined for causal attention only"):
        attend(q, q, q, FoX(M, H), at, causal=False)
    with pytest.raises(ValueError, match="FoX: built for d_model=7, got a tensor with 6 as x"):
        FoX(M, H).read_hidden(torch.zeros(1, 4, 6), at)
    with pytest.raises(ValueError, match="built for n_heads=2, got a tensor with 4 as q"):
        attend(q, q, q, encoding := FoX(M, 2), encoding.read_hidden(torch.zeros(1, 4, M), at))


# Both ways -----------------------------------------------------------------------------------------------------------


def two_sided(encoding, x, order, documents, b: int, h: int, i: int, j: int, own=True) -> float:
    """Σ ln f over the tokens after the key up to the query, or Σ ln g over those after the query up to the key."""
    behind = order[b][j] > order[b][i]
    first, last = sorted((order[b][i], order[b][j]))
    if not own and behind:  # the gates from the query to before the key
        first, last = first - 1, last - 1
    total = 0.0
    for t in range(x.shape[1]):
        if documents[b][t] == documents[b][j] and first < order[b][t] <= last:
            row = encoding.weight[2 * h + behind].detach().numpy()
            total -= math.log1p(math.exp(-(sum(row * x[b, t]) + encoding.offset[2 * h + behind].item())))
    return total


def filled_both_ways():
    encoding = BidirectionalFoX(M, H).double()
    with torch.no_grad():
        encoding.weight.copy_(torch.from_numpy(draw(60, 2 * H, M)))
        encoding.offset.copy_(torch.from_numpy(draw(61, 2 * H)))
    return encoding


def test_both_ways_causal_is_fox_and_heads_are_slices():
    encoding, fox = filled_both_ways(), FoX(M, H).double()
    with torch.no_grad():
        fox.weight.copy_(encoding.weight[::2])
        fox.offset.copy_(encoding.offset[::2])
    q, k, v = (torch.from_numpy(draw(seed, 2, heads, 8, D)) for seed, heads in ((1, H), (2, 2), (3, 2)))
    x = torch.from_numpy(draw(10, 2, 8, M))
    at, k, v = Positions.arange(2, 8), k.repeat_interleave(2, dim=1), v.repeat_interleave(2, dim=1)
    expected = attend(q, k, v, fox, fox.read_hidden(x, at)).detach()
    close(attend(q, k, v, encoding, encoding.read_hidden(x, at)), expected)
    part = encoding.heads(1, 3)
    whole = attend(q, k, v, encoding, encoding.read_hidden(x, at), causal=False)[:, 1:3].detach()
    close(attend(q[:, 1:3], k[:, 1:3], v[:, 1:3], part, part.read_hidden(x, at), causal=False), whole)


def test_both_ways_wrong_arguments():
    q, at = torch.zeros(1, H, 4, D), Positions.arange(1, 4)
    with pytest.raises(ValueError, match=r"at: carries nothing read by BidirectionalFoX"):
        attend(q, q, q, BidirectionalFoX(M, H), at, causal=False)
    with pytest.raises(ValueError, match="BidirectionalFoX: built for n_heads=2, got a tensor with 4 as q"):
        attend(q, q, q, encoding := BidirectionalFoX(M, 2), encoding.read_hidden(torch.zeros(1, 4, M), at))
