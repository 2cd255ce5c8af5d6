"""Rotation of the first heads only, against RoPE head by head."""

from __future__ import annotations

import pytest
import torch

from posenc.encodings.nope import NoPE
from posenc.encodings.of_families.first_heads import FirstHeadsRoPE
from posenc.encodings.rope import RoPE
from posenc.positions import Positions


def test_the_first_heads_turn_and_the_others_do_not():
    encoding, rope = FirstHeadsRoPE(8, 2, layout="half"), RoPE(8, layout="half")
    x, at = torch.randn(2, 5, 3, 8), Positions.at(torch.tensor([[0, 3, 70000], [5, 1, 2]]))
    got = encoding.rotate(x, at, "query")
    for head in range(5):
        expected = rope.rotate(x[:, head : head + 1], at, "query") if head < 2 else x[:, head : head + 1]
        assert torch.equal(got[:, head : head + 1], expected), head


def test_a_part_of_the_heads_has_those_that_turn_in_it():
    encoding, x = FirstHeadsRoPE(8, 3), torch.randn(1, 6, 4, 8)
    at = Positions.arange(1, 4)
    whole = encoding.rotate(x, at, "key")
    for start, stop in ((0, 2), (2, 4), (1, 6)):
        assert torch.equal(encoding.heads(start, stop).rotate(x[:, start:stop], at, "key"), whole[:, start:stop])
    assert isinstance(encoding.heads(3, 6), NoPE)


@pytest.mark.parametrize("turning", [0, -1, 1.5, True])
def test_no_number_of_heads_is_refused(turning):
    with pytest.raises(ValueError, match="turning_heads: expected a whole number from 1"):
        FirstHeadsRoPE(8, turning)
