"""DAPE by loops over pairs, heads and hidden units. Zheng et al. 2024, section 3 of both papers."""

import math

import numpy as np
import pytest
import torch

import posenc
from posenc import Positions, Scores, attend
from posenc.encodings.dape import DAPE

from .by_hand import attention, close, draw, each, products, sees

D, H, W = 5, 4, 3


def filled(over="kerple", kernel=1) -> DAPE:
    encoding = DAPE(H, over=over, width=W, kernel=kernel).double()
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(70 + seed, *parameter.shape)))
    return encoding


def bias(encoding, over, h, i, j) -> float:
    """Of the distance: KERPLE's logarithm, ALiBi, FIRE."""
    distance = abs(i - j)
    if over == "alibi":
        return -(2.0 ** (-8 * (h + 1) / H)) * distance
    inner = encoding.over
    if over == "kerple":
        r1, r2 = (math.log1p(math.exp(one[h].item())) for one in (inner.scale, inner.shape))
        return -r1 * math.log1p(r2 * distance)
    c, length = abs(inner.c.item()), abs(inner.multiplier.item() * 512)
    ratio = math.log1p(c * distance) / (math.log1p(c * max(i, length)) + 1e-6)
    units = range(inner.inner.shape[1])
    hidden = [max(0.0, ratio * inner.inner[0, u].item() + inner.inner[1, u].item()) for u in units]
    return sum(inner.outer[h, u].item() * hidden[u] for u in units) + inner.offset[h].item()


def papers(q, k, encoding, places, may, over="kerple", slope=0.01, residual=True, back=1) -> np.ndarray:
    """Keys of the batch's rows are in causal order; `places` are their positions."""
    plain, (inner, outer) = products(q, k), (one.detach().numpy() for one in (encoding.inner, encoding.outer))
    c1, c2 = (one.detach().numpy() for one in (encoding.inner_offset, encoding.outer_offset))
    keys, reach, total = k.shape[2], inner.shape[2] // 2, np.zeros_like(plain)
    for b, i in each(q.shape[0], q.shape[2]):
        b_of = [[bias(encoding, over, h, places[b][i], places[b][j]) for j in range(keys)] for h in range(H)]
        rows = [list(plain[b, h, i]) for h in range(H)] + b_of

        def seen(j, b=b, i=i):
            return 0 <= j < keys and (not reach or may(b, i, j))

        def hidden(u, j, rows=rows, seen=seen):
            found = c1[u]
            for channel, row in enumerate(rows):
                for s in range(inner.shape[2]):
                    if seen(at := j + back * (s - reach)):
                        found += inner[u, channel, s] * row[at]
            return found if found > 0 else slope * found

        for h, j in each(H, keys):
            added = c2[h]
            for u in range(W):
                for s in range(outer.shape[2]):
                    if seen(at := j + back * (s - reach)):
                        added += outer[h, u, s] * hidden(u, at)
            total[b, h, i, j] = (plain[b, h, i, j] + b_of[h][j] if residual else 0.0) + added
    return total


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("over", ["kerple", "alibi", "fire"])
@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_scores_by_loops(over, causal, kernel):
    q, k, v = draw(1, 2, H, 6, D), draw(2, 2, 2, 6, D), draw(3, 2, 2, 6, D)
    places, order = [range(40, 46), range(6)], [range(6)] * 2
    at, encoding, may = (
        Positions.arange(2, 6, torch.tensor([40, 0])),
        filled(over, kernel),
        sees(order, order, causal=causal),
    )
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=causal)
    close(got, attention(papers(q, k, encoding, places, may, over), v, may))


@pytest.mark.parametrize("kernel", [1, 3])
def test_keys_in_any_order_and_two_documents(kernel):
    """Neighbours are those in causal order in the same document, wherever they are stored."""
    document, order = [0, 1, 0, 1, 0, 0, 1], [2, 0, 0, 1, 1, 3, 2]
    q, k, v = (draw(seed, 1, H, 7, D) for seed in (1, 2, 3))
    at = Positions(torch.tensor([order]), torch.tensor([order]), torch.tensor([document]))
    encoding = filled(kernel=kernel)
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at)
    for one in (0, 1):
        mine = sorted((t for t in range(7) if document[t] == one), key=lambda t: order[t])
        own_q, own_k, own_v = (x[:, :, mine] for x in (q, k, v))
        rows = [range(len(mine))]
        may = sees(rows, rows)
        close(got[:, :, mine], attention(papers(own_q, own_k, encoding, rows, may), own_v, may))


@pytest.mark.parametrize("mistake", [{"slope": 0.2}, {"residual": False}, {"over": "alibi"}, {"back": -1}], ids=str)
def test_the_oracle_sees_a_broken_formula(mistake):
    q, k, v = (draw(seed, 1, H, 7, D) for seed in (1, 2, 3))
    rows = [range(7)]
    encoding, may = filled(kernel=3), sees(rows, rows)
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, Positions.arange(1, 7))
    with pytest.raises(AssertionError):
        close(got, attention(papers(q, k, encoding, rows, may, **mistake), v, may), atol=1e-4)


def test_as_the_authors_network():
    """torch's own layers with the same numbers, on scores and biases stacked as channels: version 1 of their code."""
    encoding = filled("alibi")
    network = torch.nn.Sequential(torch.nn.Linear(2 * H, W), torch.nn.LeakyReLU(), torch.nn.Linear(W, H)).double()
    with torch.no_grad():
        for layer, weight, offset in (
            (network[0], encoding.inner, encoding.inner_offset),
            (network[2], encoding.outer, encoding.outer_offset),
        ):
            layer.weight.copy_(weight[..., 0])
            layer.bias.copy_(offset)
    scores = torch.from_numpy(draw(5, 1, H, 6, 6))
    distance = -torch.arange(6.0).double()[:, None] + torch.arange(6.0).double()
    slopes = torch.tensor([2.0 ** (-8 * (h + 1) / H) for h in range(H)]).double()
    theirs_bias = distance.clamp(max=0) * slopes[:, None, None]
    read = torch.cat([scores, theirs_bias[None]], dim=1).permute(0, 2, 3, 1)
    theirs = scores + theirs_bias + network(read).permute(0, 3, 1, 2)
    at, q = Positions.arange(1, 6), torch.zeros(1, H, 6, D).double()
    may = torch.ones(6, 6).tril().bool()
    mine = encoding._adapted(Scores(scores, q, q, at, at, may[None, None]))
    close(mine.masked_fill(~may, 0), theirs.masked_fill(~may, 0).detach())


def test_without_its_network_it_is_its_bias():
    encoding = filled("alibi")
    with torch.no_grad():
        encoding.outer.zero_()
        encoding.outer_offset.zero_()
    q, k, v = (torch.from_numpy(draw(seed, 1, H, 6, D)) for seed in (1, 2, 3))
    at = Positions.arange(1, 6)
    close(attend(q, k, v, encoding, at), attend(q, k, v, encoding.over, at).detach())


def test_wrong_arguments():
    with pytest.raises(ValueError, match="DAPE: built for n_heads=4, got a tensor with 2 as q"):
        attend(*[torch.zeros(1, 2, 4, D)] * 3, DAPE(H), Positions.arange(1, 4))
    with pytest.raises(ValueError, match="kernel: expected an odd number from 1, got 2"):
        DAPE(H, kernel=2)
    with pytest.raises(ValueError, match="over"):
        DAPE(H, over="t5")
    with pytest.raises(NotImplementedError, match="DAPE: its network reads the scores of all heads"):
        DAPE(H).heads(0, 2)
    with pytest.raises(ValueError, match="impl='sdpa' cannot express DAPE"):
        attend(*[torch.zeros(1, H, 4, D)] * 3, DAPE(H), Positions.arange(1, 4), impl="sdpa")


def test_the_second_version_has_a_name():
    """dape_v2 is this class with a convolution over three keys, checked above with kernel=3."""
    assert posenc.create("dape_v2", n_heads=H, width=W).configuration == DAPE(H, width=W, kernel=3).configuration
