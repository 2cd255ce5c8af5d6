"""Ms-PoE by loops over heads and pairs. Zhang et al. 2024, arXiv 2403.04797, and the authors' code."""

import math

import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.ms_poe import MsPoE, measured_ratios

from .by_hand import attention, close, draw, products, sees, turned

H, G, D = 4, 2, 8


def angles(position, ratio, power=1, base=10000.0):
    return [position / ratio**power * base ** (-2 * n / D) for n in range(D // 2)]


def expected(q, k, v, at, ratios, layout="half", **wrong):
    """ratios: of every query head; a key turns by that of the query that reads it."""
    share = q.shape[1] // k.shape[1]
    logits = products(q, k) * 0
    for b, h, i, j in (tuple(one) for one in torch.ones(logits.shape).nonzero().tolist()):
        query = turned(q[b, h, i], angles(at[b][i], ratios[h], **wrong), layout)
        key = turned(k[b, h // share, j], angles(at[b][j], ratios[h], **wrong), layout)
        logits[b, h, i, j] = sum(query * key) / math.sqrt(D)
    return attention(logits, v, sees(at, at))


def tensors(groups=H, length=7):
    return tuple(draw(seed, 2, heads, length, D) for seed, heads in ((1, H), (2, groups), (3, groups)))


AT = [list(range(300, 307)), list(range(7))]


def found(q, k, v, **options):
    at = Positions.arange(2, 7, torch.tensor([300, 0]))
    return attend(*map(torch.from_numpy, (q, k, v)), MsPoE(D, H, **options), at)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_heads_with_ratios_from_1_2_on(layout):
    q, k, v = tensors()
    close(found(q, k, v, layout=layout), expected(q, k, v, AT, [1.2, 1.35, 1.5, 1.65], layout))


def test_a_group_has_one_ratio():
    q, k, v = tensors(G)
    close(found(q, k, v, n_kv_heads=G, ratios=(1.7, 1.3)), expected(q, k, v, AT, [1.7, 1.7, 1.3, 1.3]))


@pytest.mark.parametrize(
    ("ratios", "wrong"), [([1.35, 1.2, 1.5, 1.65], {}), ([1.2, 1.4, 1.6, 1.8], {}), ([1.2, 1.35, 1.5, 1.65], {"power": -1})]
)
def test_the_oracle_sees_a_broken_formula(ratios, wrong):
    q, k, v = tensors()
    with pytest.raises(AssertionError):
        close(found(q, k, v), expected(q, k, v, AT, ratios, **wrong), atol=1e-3)


def shares(q, k, threshold=3.0):
    """For each query head: how many keys have more than three times the mean weight of the last query; as a share."""
    made = []
    for h in range(q.shape[1]):
        key = k[0, h // (q.shape[1] // k.shape[1])]
        terms = [math.exp(sum(q[0, h, -1] * row) / math.sqrt(q.shape[3])) for row in key]
        made.append(sum(term / sum(terms) > threshold / len(terms) for term in terms) / len(terms))
    return made


def test_ratios_by_how_many_keys_a_head_looks_at():
    q, k = draw(1, 1, H, 5, D), draw(2, 1, H, 40, D)
    for h, factor in enumerate([3.0, 0.4, 1.5, 0.8]):
        q[0, h] *= factor
    share = shares(q, k)
    assert len(set(share)) == H
    ranks = [sum(other > mine for other in share) for mine in share]
    order = sorted(range(H), key=lambda h: ranks[h])
    assert ranks != order  # the authors' code takes `order` for `ranks`: these heads tell the two apart
    got = measured_ratios(*map(torch.from_numpy, (q, k)))
    assert got == pytest.approx([1.2 + 0.6 * rank / H for rank in ranks])
    assert got != pytest.approx([1.2 + 0.6 * head / H for head in order])
    assert measured_ratios(*map(torch.from_numpy, (q, k)), least=1.0, largest=3.0) == pytest.approx(
        [1 + 2 * rank / H for rank in ranks]
    )


def test_groups_are_measured_by_the_mean_of_their_heads():
    q, k = draw(1, 1, H, 5, D), draw(2, 1, G, 40, D)
    q[0, :2] *= 3.0
    share = shares(q, k)
    first = sum(share[:2]) > sum(share[2:])
    assert measured_ratios(*map(torch.from_numpy, (q, k))) == pytest.approx((1.2, 1.5) if first else (1.5, 1.2))


def test_slices_keep_the_ratios_of_their_heads():
    whole = MsPoE(D, H, n_kv_heads=G, ratios=(1.7, 1.3))
    assert whole.heads(2, 4).ratios == (1.3,)
    assert whole.heads(1, 3).ratios == (1.7, 1.3)
    assert whole.heads(1, 4).ratios == (1.7, 1.3, 1.3)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="ratios: expected one for each of 2 key heads, got 3"):
        MsPoE(D, H, n_kv_heads=G, ratios=(1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="n_kv_heads: expected a number that divides n_heads=4, got 3"):
        MsPoE(D, H, n_kv_heads=3)
    with pytest.raises(ValueError, match="ratios"):
        MsPoE(D, 2, ratios=(1.0, 0.0))
    with pytest.raises(ValueError, match="least: expected a number up to largest"):
        measured_ratios(torch.zeros(1, 2, 3, D), torch.zeros(1, 2, 3, D), least=2.0)
    with pytest.raises(ValueError, match="g dividing h"):
        measured_ratios(torch.zeros(1, 4, 3, D), torch.zeros(1, 3, 3, D))
