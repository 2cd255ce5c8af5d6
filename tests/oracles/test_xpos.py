"""xPos by loops over pairs, its decay, and where it overflows. Sun et al. 2022, section 3.2; torchscale."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.xpos import XPos

from .by_hand import attention, close, draw, each, half_ulp, products, sees, turned

LAYOUTS = ["interleaved", "half"]


def zeta(i: int, d: int, gamma: float = 0.4) -> float:
    """(2i/d + γ)/(1 + γ)."""
    return (2 * i / d + gamma) / (1 + gamma)


def turned_and_scaled(x, positions, side, layout="interleaved", base=10000.0, scale_base=512.0, gamma=0.4) -> np.ndarray:
    """Queries carry ζ^(m/s), keys ζ^(-n/s), on both channels of a pair."""
    d, sign, out = x.shape[-1], 1 if side == "query" else -1, np.empty_like(x)
    for b, h, t in each(*x.shape[:3]):
        p = positions[b][t]
        angles = [p * base ** (-2 * i / d) for i in range(d // 2)]
        scales = [zeta(i, d, gamma) ** (sign * p / scale_base) for i in range(d // 2)]
        out[b, h, t] = turned(x[b, h, t], angles, layout, scales)
    return out


def at(*rows) -> Positions:
    return Positions.at(torch.tensor(rows))


@pytest.mark.parametrize("options", [{}, {"base": 300.0, "scale_base": 40.0, "gamma": 0.7}], ids=["paper", "other"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("side", ["query", "key"])
def test_every_pair_turns_and_fades(side, layout, options):
    x, encoding = draw(1, 2, 3, 4, 8), XPos(8, layout=layout, **options)
    together = encoding.rotate(torch.from_numpy(x), Positions.arange(2, 4, torch.tensor([700, 3])), side)
    expected = turned_and_scaled(x, [range(700, 704), range(3, 7)], side, layout, **options)
    close(together / np.abs(expected).max(), expected / np.abs(expected).max())
    for scattered in ([[7, 2, 2, 90], [-40, 0, 1, 50]], [[0.25, -1.5, 3.75, 99.125]] * 2):
        got = encoding.rotate(torch.from_numpy(x), at(*scattered), side)
        close(got, turned_and_scaled(x, scattered, side, layout, **options), atol=1e-11)


def test_published_exponents():
    """The scales of torchscale: (2i + 0.4d)/(1.4d), for d = 4: 1.6/5.6 and 3.6/5.6."""
    assert [math.exp(512 * rate) for rate in XPos(4).log_decay] == pytest.approx([2 / 7, 9 / 14], rel=1e-14)
    eight = [(2 * i + 0.4 * 8) / (1.4 * 8) for i in range(4)]
    assert [math.exp(512 * rate) for rate in XPos(8).log_decay] == pytest.approx(eight, rel=1e-14)


@pytest.mark.parametrize("pair", [0, 1, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_score_of_a_pair_fades_by_zeta_per_512_positions(pair, layout):
    """q̂·k̂ of one pair is cos((m-n)ω)·ζ^((m-n)/512): smaller the further back the key, and a function of m-n only."""
    x = torch.zeros(1, 1, 1, 8, dtype=torch.float64)
    x[..., 2 * pair if layout == "interleaved" else pair] = 1.0
    encoding = XPos(8, layout=layout)
    for m, n in ((512, 0), (700, 188), (40, 33), (5000, 4), (9, 9)):
        score = (encoding.rotate(x, at([m]), "query") * encoding.rotate(x, at([n]), "key")).sum().item()
        expected = math.cos((m - n) * 10000 ** (-2 * pair / 8)) * zeta(pair, 8) ** ((m - n) / 512)
        assert score == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_attention_by_loops(impl):
    q, k, v = draw(1, 2, 4, 5, 8), draw(2, 2, 2, 5, 8), draw(3, 2, 2, 5, 8)
    rows, order = [range(200, 205), range(5)], [range(5)] * 2
    logits = products(turned_and_scaled(q, rows, "query"), turned_and_scaled(k, rows, "key"))
    got = attend(*map(torch.from_numpy, (q, k, v)), XPos(8), Positions.arange(2, 5, torch.tensor([200, 0])), impl=impl)
    close(got, attention(logits, v, sees(order, order)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_largest_position_works_and_the_next_raises(dtype):
    """Entries up to 256 times ζ_0^(-p/512) stay finite up to it, on either side of 0."""
    encoding = XPos(8)
    limit = encoding.largest_position(dtype)
    room = math.log(torch.finfo(dtype).max / 256) / math.log(1.4 / 0.4) * 512
    assert limit == math.floor(room)
    x = torch.full((1, 1, 1, 8), 180.0, dtype=dtype)  # a pair of length 255
    for side, worst in (("key", limit), ("query", -limit)):
        at_limit = encoding.rotate(x, at([worst]), side)
        assert at_limit.isfinite().all()
        assert at_limit.abs().max().double() > torch.finfo(dtype).max / 256
        for beyond in (limit + 1, -limit - 1):
            with pytest.raises(ValueError, match=rf"position {beyond} is outside -{limit} … {limit}.*overflows {dtype}"):
                encoding.rotate(x, at([beyond]), side)


def test_limits_in_figures():
    """γ = 0.4, s = 512: 33 994 positions in fp32, 2 266 in fp16."""
    assert XPos(8).largest_position() == 33994
    assert XPos(8).largest_position(torch.float16) == 2266
    assert XPos(8, scale_base=1024.0).largest_position() == 67988


@pytest.mark.parametrize(("dtype", "bits"), [(torch.bfloat16, 8), (torch.float16, 11)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_16_bits_round_once_A6(layout, dtype, bits):
    x = torch.from_numpy(draw(10, 1, 2, 40, 16)).to(dtype)
    for side in ("query", "key"):
        got = XPos(16, layout=layout).rotate(x, Positions.arange(1, 40, 2000), side)
        assert got.dtype == dtype
        exact = turned_and_scaled(x.double().numpy(), [range(2000, 2040)], side, layout)
        slack = 2e-6 * np.abs(exact).max()  # fp32 product with an fp32 exponential, before the one rounding
        assert (np.abs(got.double().numpy() - exact) <= half_ulp(exact, bits) + slack).all()


def test_values_and_outputs_pass():
    x = torch.from_numpy(draw(11, 1, 2, 3, 8))
    for side in ("value", "output"):
        assert XPos(8).rotate(x, Positions.arange(1, 3, 5), side) is x


def test_wrong_arguments():
    x = torch.zeros(1, 1, 4, 8)
    with pytest.raises(ValueError, match=r"XPos.* is defined for causal attention only"):
        attend(x, x, x, XPos(8), Positions.arange(1, 4), causal=False)
    with pytest.raises(ValueError, match="d_head: expected an even number from 2, got 7"):
        XPos(7)
    with pytest.raises(ValueError, match="layout: expected one of"):
        XPos(8, layout="neox")
    with pytest.raises(ValueError, match=r"reads 1 coordinate\(s\) per token"):
        XPos(8).rotate(x, Positions.grid(2, 2), "query")
    with pytest.raises(ValueError, match="built for d_head=6, got a tensor with 8"):
        XPos(6).rotate(x, Positions.arange(1, 4), "query")
