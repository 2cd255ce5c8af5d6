"""Channel layouts against index arithmetic: half pairs i with i + d/2, interleaved 2i with 2i + 1."""

import itertools
import math

import pytest
import torch

from posenc.frequencies import layouts

from .by_hand import channels, close, draw, turned

LAYOUTS = ["half", "interleaved"]


@pytest.mark.parametrize("d", [2, 4, 6, 10])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_split_and_join(layout, d):
    x = torch.from_numpy(draw(1, 2, 3, d))
    first, second = layouts.split(x, layout)
    for pair in range(d // 2):
        one, other = channels(pair, d, layout)
        assert torch.equal(first[..., pair], x[..., one])
        assert torch.equal(second[..., pair], x[..., other])
    assert torch.equal(layouts.join(first, second, layout), x)


def test_drawn_in_the_head_of_the_file():
    x = torch.tensor([10, 11, 12, 20, 21, 22])  # x0 x1 x2 | y0 y1 y2
    assert x[layouts.permutation(6, "half", "interleaved")].tolist() == [10, 20, 11, 21, 12, 22]
    y = torch.tensor([10, 20, 11, 21, 12, 22])
    assert y[layouts.permutation(6, "interleaved", "half")].tolist() == [10, 11, 12, 20, 21, 22]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_turn_is_counter_clockwise_on_the_first_channels(layout):
    x, angles = draw(5, 1, 1, 1, 8), [0.3, -1.2, 2.0]
    cos, sin = (torch.tensor([f(a) for a in angles], dtype=torch.float64).view(1, 1, 1, 3) for f in (math.cos, math.sin))
    close(layouts.turn(torch.from_numpy(x), cos, sin, layout)[0, 0, 0], turned(x[0, 0, 0], angles, layout))


def test_unknown_layout():
    assert layouts.check("half") == "half"
    assert layouts.check("interleaved") == "interleaved"
    with pytest.raises(ValueError, match="layout: expected one of 'half', 'interleaved', got 'sin_cos'"):
        layouts.check("sin_cos")


def pairs_of(planes):
    """The channels of each pair, as sets."""
    d = planes.stop - planes.start
    return {frozenset(planes.start + c for c in channels(pair, d, planes.layout)) for pair in range(d // 2)}


def test_rotations_commute_where_no_pair_is_cut_in_two():
    every = [layouts.Planes(name, first, first + d) for name in LAYOUTS for first in range(5) for d in (2, 4, 6)]
    for one, other in itertools.product(every, every):
        cut = any(a & b and a != b for a in pairs_of(one) for b in pairs_of(other))
        assert not (one.commute(other) and cut)
        assert one.commute(other) or cut or one.layout == "half" or other.layout == "half"
