"""TO-RoPE by hand, token by token: which pair of which head reads the index, and which the time. Wei et al. 2025."""

import numpy as np
import pytest
import torch

import posenc
from posenc import Positions

from .by_hand import attention, close, draw, products, sees, turned

D, H = 8, 4
EVENTS = [(0, 0.0), (1, 0.5), (2, 30.25), (3, 31.0), (4, 400.0)]


def gate(split, share, h, n):
    """λ of pair n of head h."""
    if split == "none":
        return share
    of, among = (n, D // 2) if split == "pairs" else (h, H)
    return 1.0 if of >= among - round(among * share) else 0.0


def rotated(x, split, share, time_base=10000.0, swapped=False):
    out = x.copy()
    for h, t in np.ndindex(x.shape[1], x.shape[2]):
        index, time = EVENTS[t] if not swapped else EVENTS[t][::-1]
        angles = []
        for n in range(D // 2):
            by_time = gate(split, share, h, n)
            angles.append((1 - by_time) * index * 10000 ** (-2 * n / D) + by_time * time * time_base ** (-2 * n / D))
        out[0, h, t] = turned(x[0, h, t], angles, "interleaved")
    return out


def made(split, share, **options):
    return posenc.create("to_rope", d_head=D, n_heads=H, split=split, time_share=share, **options)


AT = Positions.at(torch.tensor([EVENTS], dtype=torch.float64))


@pytest.mark.parametrize(("split", "share"), [("pairs", 0.5), ("pairs", 0.25), ("heads", 0.5), ("none", 0.3)])
def test_attention_by_hand(split, share):
    q, k, v = (draw(seed, 1, H, 5, D) for seed in (1, 2, 3))
    encoding = made(split, share, time_base=700.0)
    got = posenc.attend(*map(torch.from_numpy, (q, k, v)), encoding, AT)
    turn = [rotated(x, split, share, time_base=700.0) for x in (q, k)]
    order = [range(5)]
    close(got, attention(products(*turn), v, sees(order, order)))
    part = posenc.attend(*(torch.from_numpy(x[:, 1:3]) for x in (q, k, v)), encoding.heads(1, 3), AT)
    close(part, got[:, 1:3].detach())


@pytest.mark.parametrize(
    "mistake", [{"swapped": True}, {"share": 0.75}, {"time_base": 9000.0}, {"split": "heads"}], ids=str
)
def test_a_wrong_formula_is_noticed(mistake):
    q = draw(1, 1, H, 5, D)
    got = made("pairs", 0.5).rotate(torch.from_numpy(q), AT, "query")
    with pytest.raises(AssertionError):
        close(got, rotated(q, **{"split": "pairs", "share": 0.5} | mistake), atol=1e-3)


def test_grouped_keys_turn_as_their_queries_do():
    encoding = made("heads", 0.5, n_kv_heads=2)
    q, k, v = draw(1, 1, H, 5, D), draw(2, 1, 2, 5, D), draw(3, 1, 2, 5, D)
    got = posenc.attend(*map(torch.from_numpy, (q, k, v)), encoding, AT)
    wide = [torch.from_numpy(x.repeat(2, axis=1)) for x in (k, v)]
    close(got, posenc.attend(torch.from_numpy(q), *wide, made("heads", 0.5), AT))


def test_without_time_it_is_rope_and_by_the_index_as_time_too():
    x = torch.from_numpy(draw(4, 1, H, 6, D))
    index = Positions.arange(1, 6)
    both = Positions.at(torch.stack([index.coords, index.coords], dim=-1))
    rope = posenc.create("rope", d_head=D).rotate(x, index, "query")
    close(made("none", 0.0).rotate(x, both, "query"), rope)
    for split in ("pairs", "heads", "none"):
        close(made(split, 0.5).rotate(x, both, "query"), rope)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"time_share": 1.5}, "time_share: expected a number from 0 to 1, got 1.5"),
        ({"n_kv_heads": 3}, "n_kv_heads: expected a number that divides n_heads=4, got 3"),
        ({"split": "dim"}, "split: expected"),
    ],
)
def test_bad_options_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        posenc.create("to_rope", d_head=D, n_heads=H, **options)
