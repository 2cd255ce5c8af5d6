"""A decoded token: shared key heads are read once, vectors of the distance are clipped, hidden keys stay hidden."""

from __future__ import annotations

import pytest
import torch

from posenc import Positions, attend_rotated, create
from posenc.attention.backends import sdpa
from posenc.attention.backends.relative.attention import relative_attention
from posenc.attention.backends.relative.plain import in_torch
from posenc.attention.options import allowed
from posenc.encodings import transformer_xl

B, H, J, D = 2, 4, 11, 6


@pytest.mark.parametrize("key_heads", [4, 2, 1])
@pytest.mark.parametrize(("tables", "rows"), [((1, 1), 5), ((1, H), 5), ((B, 1), 40), ((B, H), 5)])
@pytest.mark.parametrize("with_values", [False, True])
def test_one_query_is_the_formula(key_heads, tables, rows, with_values):
    source = torch.Generator().manual_seed(0)

    def drawn(*shape):
        return torch.randn(shape, generator=source, dtype=torch.float64)

    q, p, k, v = drawn(B, H, 1, D), drawn(B, H, 1, 3), drawn(B, key_heads, J, D), drawn(B, key_heads, J, D)
    keys, values = drawn(*tables, rows, 3), drawn(*tables, rows, D) if with_values else None
    for first, seen in ((-3, 10), (-12, 7), (2, None), (9, 4), (-J, None)):
        row, last = torch.tensor([first]), None if seen is None else torch.tensor([seen])
        given = q, k, v, p, keys, values, row, last, 0.4
        torch.testing.assert_close(relative_attention(*given), in_torch(*given), rtol=1e-10, atol=1e-12)
    blind = relative_attention(q, k, v, p, keys, values, torch.tensor([0]), torch.tensor([-1]), 0.4)
    assert blind.shape == (B, H, 1, D)
    assert not blind.any()


@pytest.mark.parametrize("key_heads", [4, 2, 1])
def test_a_token_after_all_keys_needs_no_mask(key_heads, monkeypatch):
    source = torch.Generator().manual_seed(0)
    q = torch.randn(B, H, 1, D, generator=source, dtype=torch.float64)
    k, v = (torch.randn(B, key_heads, J, D, generator=source, dtype=torch.float64) for _ in "kv")
    rope, at_k = create("rope", d_head=D), Positions.arange(B, J, start=4)
    masked = []
    monkeypatch.setattr(sdpa, "allowed", lambda *given: masked.append(given) or allowed(*given))
    for after, whole in (([J + 3] * B, True), ([J + 9, J + 3], True), ([J + 3, J + 2], False), ([5] * B, False)):
        at_q, before = Positions.decode(after), len(masked)
        out = attend_rotated(q, k, v, rope, at_q, at_k)
        assert (len(masked) == before) is whole
        truth = attend_rotated(q, k, v, rope, at_q, at_k, impl="reference")
        torch.testing.assert_close(out, truth, rtol=1e-10, atol=1e-12)
    other = Positions(at_q.coords + 99, at_q.order + 99, at_q.document + 1, consecutive_in="row")
    assert not attend_rotated(q, k, v, rope, other, at_k).any()  # of another document


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@torch.no_grad()
def test_runs_of_distances_give_what_all_sinusoids_give(layout, monkeypatch):
    """Transformer-XL turns the query from run to run of distances where there are many."""
    torch.manual_seed(0)
    keys, encoding = 3 * transformer_xl.RUN + 5, create("transformer_xl", d_model=H * D, n_heads=H, layout=layout).double()
    for parameter in encoding.parameters():
        torch.nn.init.normal_(parameter)
    q = torch.randn(B, H, 1, D, dtype=torch.float64)
    k, v = (torch.randn(B, 2, keys, D, dtype=torch.float64) for _ in "kv")
    lengths, runs = [], transformer_xl.sin_cos_of_runs
    monkeypatch.setattr(transformer_xl, "sin_cos_of_runs", lambda *given: lengths.append(given[1]) or runs(*given))
    for start, after in ((7, [keys + 7] * B), (torch.tensor([3, 9]), [keys + 3, keys + 90]), (0, [150, 150])):
        at_q, at_k = Positions.decode(after), Positions.arange(B, keys, start=start)
        out = attend_rotated(q, k, v, encoding, at_q, at_k)
        truth = attend_rotated(q, k, v, encoding, at_q, at_k, impl="reference")
        torch.testing.assert_close(out, truth, rtol=1e-9, atol=1e-10)
    assert max(lengths) == transformer_xl.RUN
