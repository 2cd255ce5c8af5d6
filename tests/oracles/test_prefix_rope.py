"""Learned angles before a grid of patches that turn by position, written out pair by pair."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
import torch

from posenc.attention.rotated_keys import rerotate, rescale_keys
from posenc.encodings.of_families.prefix_rope import PrefixRoPE
from posenc.encodings.rope import RoPE
from posenc.positions import Positions


@pytest.mark.parametrize(("reverse", "scale"), [(False, 1.0), (True, 1.0), (False, 1.25)])
def test_prefix_tokens_turn_by_their_angles_and_patches_by_row_and_column(reverse, scale):
    frequencies = replace(PrefixRoPE(8, axes=2, base=100.0).frequencies, cos_sin_scale=scale)
    encoding = PrefixRoPE(8, 2, frequencies=frequencies, layout="half", reverse=reverse)
    at = Positions.grid(2, 3, prefix=2)
    x = torch.randn(1, 1, 8, 8, dtype=torch.float64)
    got = encoding.rotate(x, at, "query")[0, 0]
    for token, (y, column) in enumerate(at.coords[0].tolist()):
        for pair in range(4):
            frequency = 100.0 ** (-2 * (pair % 2) / 4)
            learned = encoding.angles[column, pair].item() if y < 0 else None
            angle = learned if learned is not None else (y if pair < 2 else column) * frequency
            cos, sin = scale * math.cos(angle), scale * math.sin(-angle if reverse else angle)
            a, b = x[0, 0, token, pair].item(), x[0, 0, token, pair + 4].item()
            assert got[token, pair].item() == pytest.approx(a * cos - b * sin, abs=1e-12)
            assert got[token, pair + 4].item() == pytest.approx(b * cos + a * sin, abs=1e-12)


def test_angles_are_trained():
    encoding = PrefixRoPE(8, axes=2)
    encoding.rotate(torch.randn(1, 1, 5, 8), Positions.grid(2, 2, prefix=1), "key").sum().backward()
    assert encoding.angles.grad is not None
    assert bool(encoding.angles.grad.abs().sum() > 0)


def test_tables_belong_to_their_angles():
    encoding, x = PrefixRoPE(8, axes=2), torch.randn(1, 1, 5, 8)
    prepared = encoding.prepare(Positions.grid(2, 2, prefix=1))
    encoding.rotate(x, prepared, "query")
    for other in (PrefixRoPE(8, axes=2), copy.deepcopy(encoding)):
        with pytest.raises(ValueError, match="prepared by"):
            other.rotate(x, prepared, "query")


def test_a_prefix_token_does_not_move_with_the_grid():
    """Not a function of differences: a token at (-1, 0) moved by a row becomes a patch."""
    encoding = PrefixRoPE(8, axes=2)
    assert "shift_invariant" not in encoding.traits
    q, k = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64)
    logits = []
    for moved in (0, 1):
        query, key = (Positions.at(torch.tensor([[[row + moved, 0]]])) for row in (-1, 1))
        logits.append((encoding.rotate(q, query, "query") * encoding.rotate(k, key, "key")).sum().item())
    assert abs(logits[0] - logits[1]) > 1e-6


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="axes: expected at least 2"):
        PrefixRoPE(8)
    with pytest.raises(ValueError, match="prefix: expected a whole number from 1"):
        PrefixRoPE(8, 0, axes=2)
    with pytest.raises(ValueError, match="none of 1 prefix tokens"):
        PrefixRoPE(8, axes=2).rotate(torch.randn(1, 1, 6, 8), Positions.grid(2, 2, prefix=2), "query")


def test_keys_are_moved_as_patches_by_a_rope_of_its_frequencies_and_not_by_itself():
    """A move by (-1, 0) has the coordinates of a prefix token, whose learned angle is no move; keys would be off by 3."""
    encoding, x = PrefixRoPE(8, axes=2), torch.randn(1, 1, 3, 8)
    at = torch.tensor([[[2, 1], [3, 0], [1, 5]]])
    by = torch.tensor([-1, 0]).expand(1, 3, 2)
    keys = encoding.rotate(x, Positions.at(at), "key")
    plain = RoPE(8, frequencies=encoding.frequencies, layout=encoding.layout)
    torch.testing.assert_close(rerotate(keys, by=by, encoding=plain), encoding.rotate(x, Positions.at(at + by), "key"))
    with pytest.raises(TypeError, match=r"^encoding: PrefixRoPE\(.* turns prefix tokens by learned angles"):
        rerotate(keys, by=by, encoding=encoding)
    with pytest.raises(TypeError, match=r"^new: PrefixRoPE\(.* turns prefix tokens by learned angles"):
        rescale_keys(keys, Positions.at(at), plain, encoding)
