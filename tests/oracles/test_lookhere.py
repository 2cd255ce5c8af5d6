"""LookHere by loops over pairs of patches, its fields of view as angles. Fuller et al. 2024, section 3."""

import math

import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.lookhere import FIELDS, LookHere

from .by_hand import add, attention, close, draw, products

# Where a field begins and ends, in eighths of a turn from the right, counter-clockwise, as an image is seen.
EIGHTHS = {
    "all": (0, 8),
    "half_up": (0, 4),
    "half_down": (4, 8),
    "half_left": (2, 6),
    "half_right": (-2, 2),
    "corner_up_left": (2, 4),
    "corner_up_right": (0, 2),
    "corner_down_left": (4, 6),
    "corner_down_right": (6, 8),
    "triangle_up": (1, 3),
    "triangle_down": (5, 7),
    "triangle_left": (3, 5),
    "triangle_right": (-1, 1),
}
SIDE = 4


def looks(field, down, across):
    """Whether a patch at this offset lies in the field; its borders and the patch itself do."""
    if down == across == 0:
        return True
    angle = math.atan2(-down, across) / (math.pi / 4)
    begin, end = EIGHTHS[field]
    return any(begin - 1e-9 <= angle + turn <= end + 1e-9 for turn in (-8, 0, 8))


def both(encoding, fields, falls, impl="reference"):
    heads, cells = len(fields), [(y, x) for y in range(SIDE) for x in range(SIDE)]
    q, k, v = (draw(seed, 1, heads, len(cells) + 1, 5) for seed in (1, 2, 3))
    at = Positions.grid(SIDE, SIDE, prefix=1)
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=False, impl=impl)

    def bias(b, h, i, j):
        if i == 0 or j == 0:  # the class token
            return 0.0
        down, across = (cells[j - 1][n] - cells[i - 1][n] for n in (0, 1))
        return -falls[h] * math.hypot(down, across) if looks(fields[h], down, across) else -1e9

    return got, attention(add(products(q, k), bias), v, lambda b, i, j: True)


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_every_field_of_view(impl):
    assert set(EIGHTHS) == set(FIELDS)
    fields = tuple(FIELDS)
    slopes = tuple(0.125 * (n + 1) for n in range(len(fields)))
    encoding = LookHere(len(fields), fields=fields, slopes=slopes, n_layers=3, layer=1, strength=1.5)
    close(*both(encoding, fields, [1.5 * 1.0 * slope for slope in slopes], impl))


def test_the_oracle_sees_up_and_down_exchanged():
    with pytest.raises(AssertionError):
        close(*both(LookHere(1, fields=("half_up",), slopes=(1.0,)), ("half_down",), [3.0]))


def test_lh_90_of_12_and_16_heads():
    """The authors' "corners-triangles-none": head directions, slopes and layers."""
    corners = ("corner_up_left", "corner_up_right", "corner_down_left", "corner_down_right")
    triangles = ("triangle_up", "triangle_down", "triangle_left", "triangle_right")
    twelve, sixteen = LookHere(12), LookHere(16)
    assert twelve.fields == (*corners, *triangles, *["all"] * 4)
    assert twelve.configuration["slopes"] == (*[1 / 2] * 8, 1 / 4, 1 / 16, 1 / 64, 1 / 256)
    assert sixteen.fields == (*corners, *corners, *triangles, *["all"] * 4)
    assert sixteen.configuration["slopes"] == (*[1 / 2] * 4, *[1 / 4] * 4, *[1 / 2] * 4, 1 / 4, 1 / 16, 1 / 64, 1 / 256)
    factors = [twelve.at_layer(n).falls[0] / (2 * 0.5) for n in range(12)]
    close(factors, [1.5 - n / 11 for n in range(12)])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_mask_that_hides_a_whole_field_leaves_zeros(dtype):
    """Patches in the last row see their own row alone, and the mask hides it. More: test_no_visible_key.py."""
    q = torch.from_numpy(draw(6, 1, 1, 9, 5)).to(dtype)
    row = torch.arange(9) // 3
    mask = row[:, None] != row
    for impl in ("reference", "sdpa"):
        got = attend(
            q,
            q,
            q,
            LookHere(1, fields=("half_down",), slopes=(1.0,)),
            Positions.grid(3, 3),
            causal=False,
            mask=mask[None, None],
            impl=impl,
        )
        assert not got[:, :, 6:].any()
        assert got[:, :, :6].isfinite().all()
        assert got[:, :, :6].all()


def test_a_shift_counts_where_it_makes_a_patch_of_a_class_token():
    q, at, encoding = torch.from_numpy(draw(5, 1, 4, 10, 5)), Positions.grid(3, 3, prefix=1), LookHere(4)
    moved = Positions.at(at.coords + 1)
    results = [attend(q, q, q, encoding, where, causal=False) for where in (at, moved)]
    assert (results[0] - results[1]).abs().max() > 0.1
    patches = [
        attend(q[:, :, 1:], q[:, :, 1:], q[:, :, 1:], encoding, where.take(torch.arange(1, 10)), causal=False)
        for where in (at, moved)
    ]
    close(patches[0], patches[1])


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="layer: expected one of 0 … 11, got 12"):
        LookHere(4).at_layer(12)
    with pytest.raises(ValueError, match="fields"):
        LookHere(1, fields=("sideways",))
    with pytest.raises(ValueError, match="expected one of each for every one of 2 heads"):
        LookHere(2, fields=("all",))
