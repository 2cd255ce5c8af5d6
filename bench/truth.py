"""The exact results: the formulas in fp64, written here without code of posenc.

Legend: b batch, h heads, i query, j key, t tokens, d channels, n pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Term = Callable[[Tensor, Tensor], Tensor]
"""(scaled logits [b, i, j], rows i) -> logits with what the encoding adds."""


def angles(positions: Tensor, width: int, base: float = 10000.0) -> Tensor:
    """p · base^(-2i/d), [*positions, n]."""
    powers = torch.tensor(
        [base ** (-2 * i / width) for i in range(width // 2)], dtype=torch.float64, device=positions.device
    )
    return positions.double()[..., None] * powers


def rotated(x: Tensor, positions: Tensor, layout: str, sign: int = 1) -> Tensor:
    """(x cos - y sin, y cos + x sin) of x [b, h, t, d] at positions [b or 1, t]; pairs (i, i + d/2) or (2i, 2i + 1)."""
    angle = angles(positions, x.shape[-1])[:, None]
    cos, sin = angle.cos(), angle.sin() * sign
    x = x.detach().double()
    first, second = (
        (x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]) if layout == "half" else (x[..., 0::2], x[..., 1::2])
    )
    turned = first * cos - second * sin, second * cos + first * sin
    return torch.cat(turned, dim=-1) if layout == "half" else torch.stack(turned, dim=-1).flatten(-2)


def sinusoids(start: int, length: int, width: int) -> Tensor:
    """sin and cos of position times frequency in turn, [t, d]."""
    angle = angles(torch.arange(start, start + length), width)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)


def slopes(heads: int) -> list[float]:
    """ALiBi's, for a power of two: 2^(-8h/n)."""
    return [2.0 ** (-8 * h / heads) for h in range(1, heads + 1)]


def bucket(distance: Tensor, buckets: int = 32, furthest: int = 128) -> Tensor:
    """T5's bucket of i - j >= 0, one way: n below 16, then 16 + ⌊16 · ln(n/16) / ln(128/16)⌋, 31 at most."""
    exact = buckets // 2
    near = distance.clamp(min=0)
    grown = (near.clamp(min=1).double() / exact).log() / math.log(furthest / exact) * (buckets - exact)
    return torch.where(near < exact, near, (exact + (grown + 1e-9).floor().long()).clamp(max=buckets - 1))


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    term: Term,
    may: Tensor,
    rows: Tensor,
    scale: float,
    after: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Tensor:
    """softmax(term(q·k·scale))·v of the queries `rows` of one head, q, k, v [b, t, d], in their dtype; may [b or 1, i, j].

    `after(probs, rows)` is added to the output. A query that may see no key gets zeros.
    """
    may = may[:, rows]
    logits = term(q[:, rows] @ k.mT * scale, rows)
    probs = logits.masked_fill(~may, float("-inf")).softmax(dim=-1).masked_fill(~may, 0.0)
    out = probs @ v
    return out if after is None else out + after(probs, rows)
