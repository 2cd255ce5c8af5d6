"""T5 buckets against whole-number arithmetic and published boundaries. Raffel et al. 2020, section 2.1."""

from decimal import Decimal, getcontext

import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.t5 import T5

from .by_hand import add, attention, draw, near_once_rounded, products, sees
from .papers import t5_bucket as bucket

# The distance at which each bucket after the exact ones begins.
PUBLISHED = {
    (16, 128): [8, 12, 16, 23, 32, 46, 64, 91],  # T5's encoder: one side of 32; 16, 32, 64 are exact powers
    (32, 128): [16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113],  # T5's decoder
}


@pytest.mark.parametrize(("side", "furthest"), PUBLISHED)
def test_buckets_begin_where_published_I3(side, furthest):
    bidirectional = side == 16
    encoding = T5(1, n_buckets=32, max_distance=furthest, bidirectional=bidirectional)
    buckets = encoding.bucket(torch.arange(1000)).tolist()
    starts = [buckets.index(number) for number in range(side // 2, side)]
    assert starts == PUBLISHED[side, furthest]
    assert buckets[: side // 2] == list(range(side // 2))


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(
    ("buckets", "furthest"), [(32, 128), (320, 800), (8, 9), (2, 5), (6, 4), (7, 100), (32, 64)], ids=str
)
def test_every_distance_to_100000_both_ways_I3(buckets, furthest, bidirectional):
    if bidirectional and buckets == 2:
        buckets = 4  # one bucket a side has no exact one
    encoding = T5(1, n_buckets=buckets, max_distance=furthest, bidirectional=bidirectional)
    near = range(-furthest - 5, furthest + 6)
    assert encoding.bucket(torch.tensor(list(near))).tolist() == [
        bucket(delta, buckets, furthest, bidirectional) for delta in near
    ]
    far = torch.arange(furthest, 100_001)
    side = buckets // 2 if bidirectional else buckets
    assert encoding.bucket(far).eq(side - 1).all()
    assert encoding.bucket(-far).eq(2 * side - 1 if bidirectional else 0).all()


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16])
def test_buckets_of_every_integer_dtype(dtype):
    encoding = T5(1, bidirectional=True)
    delta = torch.arange(-300, 301)
    assert encoding.bucket(delta.to(dtype)).tolist() == encoding.bucket(delta).tolist()


def test_wavlm_buckets_have_no_gap_and_end_at_800():
    """(320, 800), by logarithms in 60 decimals instead of powers."""
    getcontext().prec = 60
    got = T5(1, n_buckets=320, max_distance=800, bidirectional=True).bucket(torch.arange(801)).tolist()
    for n in range(80, 801):
        share = (Decimal(n) / 80).ln() / (Decimal(800) / 80).ln() * 80
        assert got[n] == min(159, 80 + int(share + Decimal(10) ** -50)), n


def filled(**options) -> T5:
    encoding = T5(4, n_buckets=8, max_distance=20, **options).double()
    with torch.no_grad():
        encoding.table.copy_(torch.from_numpy(draw(30, 8, 4)))
    return encoding


@pytest.mark.parametrize(("dtype", "bits"), [(torch.float32, 24), (torch.bfloat16, 8), (torch.float16, 11)])
def test_a_model_in_16_bits_rounds_once_A6(dtype, bits):
    q, k, v = (torch.from_numpy(draw(seed, 1, 4, 9, 5)).to(dtype) for seed in (1, 2, 3))
    encoding, rows = filled().to(dtype), [range(9)]
    arrays = [x.double().numpy() for x in (q, k, v)]
    got = attend(q, k, v, encoding, Positions.arange(1, 9), impl="reference")
    assert got.dtype == dtype
    table = encoding.table.detach().double().numpy()
    logits = add(products(*arrays[:2]), lambda b, h, i, j: table[bucket(i - j, 8, 20, False), h])
    exact = attention(logits, arrays[2], sees(rows, rows))
    near_once_rounded(got.detach().double().numpy(), exact, bits, 4.0)


def test_defaults():
    encoding = T5(256)
    assert encoding.table.shape == (32, 256)
    assert 0.018 < encoding.table.std().item() < 0.022
    assert encoding.bucket(torch.tensor([127, 128, 112, 113])).tolist() == [31, 31, 30, 31]
    assert encoding.softmax_scale(64) == 1 / 8
    assert "causal_only" in encoding.traits
    assert "causal_only" not in T5(2, bidirectional=True).traits
    assert T5(2, scale=0.5).softmax_scale(64) == 0.5


def test_wrong_arguments():
    q = torch.zeros(1, 4, 4, 5, dtype=torch.float64)
    real = Positions.at(torch.arange(4.0)[None])
    with pytest.raises(TypeError, match=r"T5: needs integer positions, got torch\.float64"):
        attend(q, q, q, filled(), real)
    with pytest.raises(ValueError, match=r"reads 1 coordinate\(s\) per token"):
        attend(q, q, q, filled(), Positions.grid(2, 2))
    with pytest.raises(ValueError, match="is defined for causal attention only"):
        attend(q, q, q, filled(), Positions.arange(1, 4), causal=False)
    for wrong in ({"n_buckets": 1}, {"max_distance": 16}, {"n_buckets": 2, "bidirectional": True}, {"max_distance": 3}):
        with pytest.raises(ValueError, match="n_buckets, max_distance"):
            T5(2, **wrong)
    assert T5(2, max_distance=17).thresholds[-1] == 17
