"""FIRE by loops over pairs, hidden units and heads. Li et al. 2024, and the listing of its appendix."""

import math

import pytest
import torch

from posenc import Positions, Stack, attend
from posenc.encodings.fire import FIRE, PAIRS
from posenc.encodings.rope import RoPE

from .by_hand import add, attention, close, draw, products, sees
from .papers import fire as papers
from .test_biases import filled

H = 4


def made(multiplier: float = -0.5) -> FIRE:
    return filled(FIRE(H, width=3, first_length=8), c=-0.7, multiplier=multiplier)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_without_gradients_hidden_units_are_computed_a_few_rows_at_a_time(dtype, monkeypatch):
    """The numbers are those of one pass over all pairs, which gradients need."""
    encoding, at = FIRE(H, first_length=64), Positions.arange(2, 120, start=torch.tensor([0, 7]))
    q, sizes, of = torch.zeros(2, H, 120, 5, dtype=dtype), [], FIRE._of
    monkeypatch.setattr(FIRE, "_of", lambda self, x, *rest: sizes.append(x.numel()) or of(self, x, *rest))
    tokens = torch.arange(120)
    grid = torch.arange(2)[:, None, None, None], torch.arange(H)[:, None, None], tokens[:, None], tokens
    at_once = encoding.bias(q, q, at, at)(*grid)
    with torch.no_grad():
        assert torch.equal(encoding.bias(q, q, at, at)(*grid), at_once)
    assert sizes[0] == 2 * 120**2
    assert sum(sizes[1:]) == 2 * 120**2
    assert max(sizes[1:]) <= PAIRS


def test_within_the_threshold_it_is_a_bias_of_the_distance():
    """L = 40: a request of 41 tokens lies within it and takes the Toeplitz path, one of 42 does not."""
    encoding = made(5.0)
    short = encoding.at_length(41)
    assert encoding.at_length(42) is encoding
    q, k, v = (torch.from_numpy(draw(seed, 2, H, 41, 5)) for seed in (1, 2, 3))
    at = Positions.arange(2, 41)
    expected = attend(q, k, v, encoding, at, impl="reference")
    close(attend(q, k, v, short, at, impl="toeplitz"), expected.detach())
    close(attend(q[:, 1:3], k[:, 1:3], v[:, 1:3], short.heads(1, 3), at), expected[:, 1:3].detach())
    assert [one.data_ptr() for one in short.parameters()] == [one.data_ptr() for one in encoding.parameters()]


def test_beyond_the_threshold_a_distance_has_no_single_bias():
    encoding = made()
    far, near = papers(encoding, 0, 30, 28), papers(encoding, 0, 10, 8)
    assert abs(far - near) > 1e-3
    bias = encoding.bias(
        *[torch.zeros(1, H, 1, 5, dtype=torch.float64)] * 2, *(Positions.at(torch.tensor([[p]])) for p in (30, 28))
    )
    zero = torch.zeros(1, dtype=torch.long)
    assert math.isclose(bias(zero, zero, zero, zero).item(), far, rel_tol=1e-12)


def test_the_network_starts_as_two_linear_layers():
    torch.manual_seed(0)
    encoding = FIRE(64, width=32)
    assert (encoding.c.item(), encoding.multiplier.item(), encoding.first_length) == (pytest.approx(0.1), 1.0, 512)
    for parameter, bound in ((encoding.inner, 1.0), (encoding.outer, 32**-0.5)):
        assert 0.9 * bound < parameter.abs().max() <= bound


def test_in_a_stack_with_rope():
    q, k, v = (torch.from_numpy(draw(seed, 1, H, 6, 4)) for seed in (1, 2, 3))
    encoding, rope, at = made(), RoPE(4), Positions.arange(1, 6)
    turned = rope.rotate(q, at, "query").numpy(), rope.rotate(k, at, "key").numpy()
    expected = add(products(*turned), lambda b, h, i, j: papers(encoding, h, i, j))
    rows = [range(6)]
    close(attend(q, k, v, Stack(rope, encoding), at), attention(expected, v.numpy(), sees(rows, rows)))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="first_length: expected a whole number from 1, got 0"):
        FIRE(4, first_length=0)
    with pytest.raises(ValueError, match="built for n_heads=4, got a tensor with 2 as q"):
        attend(*[torch.zeros(1, 2, 4, 4)] * 3, FIRE(4), Positions.arange(1, 4))
