"""Causal windows: the same numbers as under a mask, whatever is left over at the ends."""

from __future__ import annotations

import pytest
import torch

from posenc import Positions, attend, create
from posenc.attention import plan


def inputs(batch, key_heads, length, dtype=torch.float64):
    source = torch.Generator().manual_seed(0)
    return [torch.randn(batch, heads, length, 8, generator=source, dtype=dtype) for heads in (4, key_heads, key_heads)]


@pytest.mark.parametrize(
    ("name", "batch", "key_heads", "length", "left"),
    [
        ("rope", 1, 4, 160, 0),
        ("rope", 2, 2, 201, 33),
        ("alibi", 2, 2, 131, 1),
        ("t5", 1, 4, 128 + 31, 31),
        ("nope", 1, 1, 700, 300),
    ],
)
@torch.no_grad()
def test_blocks_give_what_a_mask_gives(name, batch, key_heads, length, left):
    encoding = create(name, d_model=32, n_heads=4, d_head=8).double()
    at, given = Positions.arange(batch, length, start=3), inputs(batch, key_heads, length)
    found = attend(*given, encoding, at, window=(left, 0))
    whole = attend(*given, encoding, at, window=(left, None), impl="reference")
    torch.testing.assert_close(found, whole, rtol=1e-9, atol=1e-9)


@torch.no_grad()
def test_half_precision_has_the_error_of_the_mask():
    encoding, at = create("alibi", n_heads=4), Positions.arange(1, 400)
    given = inputs(1, 2, 400, torch.bfloat16)
    true = attend(*(x.double() for x in given), encoding, at, window=(90, 0), impl="reference")
    errors = [
        (attend(*given, encoding, at, window=(90, 0), impl=impl).double() - true).abs().max() for impl in ("auto", "sdpa")
    ]
    assert errors[0] <= 2 * errors[1]


def test_a_window_longer_than_the_row_is_no_window(monkeypatch):
    asked, backend_of = [], plan.backend_of

    def recorded(call, impl="auto"):
        asked.append(call.options.used())
        return backend_of(call, impl)

    monkeypatch.setattr(plan, "backend_of", recorded)
    encoding, given = create("rope", d_head=8), inputs(1, 4, 30)
    at = Positions.arange(1, 30)
    out = attend(*given, encoding, at, window=(29, 0))
    torch.testing.assert_close(out, attend(*given, encoding, at), rtol=0, atol=0)
    attend(*given, encoding, at, window=(28, 0), scale=0.5)
    assert asked[0] == []
    assert asked[-1] == ["scale", "window"]
