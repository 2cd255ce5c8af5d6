"""Causal attention whose queries see some of the keys only: windows, packed documents, both under a soft cap.

    floor   attention to all keys before the query, without a bias: torch's fused kernel, or ours where torch has none (a
            soft cap). ALiBi over a whole row is no floor: it leaves keys out itself

What a pattern costs should follow the share of pairs that may attend (`plan.PATTERNS`), which stands beside the ratio.
Rotations and biases are part of every call, ours and the floor's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bench import truth
from bench.contest import Contender, Contest, Entry, from_call
from bench.gate import rounding
from bench.plan import PATTERNS, Case, Pattern

SOFT_CAP = 5.0  # small, so that it shows
CHECKED = 64  # queries that are compared with the exact result


def build(case: Case, device: str = "cpu") -> Contest:
    from posenc.structure import rotated

    inputs = Inputs(case, device)

    def floor() -> Contender:
        q, k, v = inputs.qkv
        if inputs.method == "soft cap":
            return inputs.ours(Pattern())
        encoding, at = inputs.encoding, inputs.positions(Pattern())

        def call() -> list[Tensor]:
            turned_q, turned_k = rotated(encoding, q, k, at, at)
            return [F.scaled_dot_product_attention(turned_q, turned_k, v, is_causal=True)]

        return from_call(torch.no_grad()(call))

    def mask() -> Contender:
        """The window as tutorials write it: a matrix for torch's fused kernel."""
        q, k, v = inputs.qkv
        encoding, at = inputs.encoding, inputs.positions(Pattern())
        may = inputs.may(PATTERNS["window of 256"], torch.arange(case.length, device=device))

        def call() -> list[Tensor]:
            turned_q, turned_k = rotated(encoding, q, k, at, at)
            return [F.scaled_dot_product_attention(turned_q, turned_k, v, attn_mask=may)]

        return Contender(torch.no_grad()(call), lambda: [call()[0][:, :, inputs.rows]])

    def allowed(name: str, exact: Sequence[Tensor]) -> list[float]:
        """Roundings of logits up to the largest, and of a sum of weights times values."""
        return [64 * rounding(torch.float32) * max(x.abs().max().item() for x in exact)]

    shares = {name: pattern.share(case.length) for name, pattern in PATTERNS.items()}
    entries = [
        Entry(name, "posenc", functools.partial(inputs.ours, pattern), truth=name, share=shares[name])
        for name, pattern in PATTERNS.items()
    ]
    if case.name == "RoPE":
        window = "window of 256"
        entries.append(Entry(f"{window}, as a mask", "torch", mask, truth=window, share=shares[window]))
    return Contest(
        Entry("all keys", "posenc" if inputs.method == "soft cap" else "torch", floor),
        entries,
        {name: functools.partial(inputs.exact, pattern) for name, pattern in PATTERNS.items()},
        allowed,
    )


class Inputs:
    """q, k, v and what a pattern means for them."""

    def __init__(self, case: Case, device: str) -> None:
        self.case, self.device = case, device
        self.method = case.name.partition(",")[0]

    @functools.cached_property
    def qkv(self) -> tuple[Tensor, Tensor, Tensor]:
        case, source = self.case, torch.Generator().manual_seed(0)
        shape = (case.batch, case.heads, case.length, case.width)
        q, k, v = (torch.randn(shape, generator=source).to(self.device) for _ in "qkv")
        return q, k, v

    @functools.cached_property
    def encoding(self) -> Any:
        from posenc.encodings.alibi import ALiBi
        from posenc.encodings.rope import RoPE

        return ALiBi(self.case.heads) if self.method == "ALiBi" else RoPE(self.case.width, layout="half")

    def positions(self, pattern: Pattern) -> Any:
        """Positions with this encoding's tables."""
        from posenc.positions import Positions

        length, size = self.case.length, self.case.length // pattern.documents
        if pattern.documents == 1:
            at = Positions.arange(1, length, device=self.device)
        else:
            at = Positions.packed(list(range(0, length + 1, size)), device=self.device)
        return self.encoding.prepare(at)

    def ours(self, pattern: Pattern) -> Contender:
        from posenc.attention import attend

        (q, k, v), at = self.qkv, self.positions(pattern)
        options: dict[str, Any] = {} if pattern.left is None else {"window": (pattern.left, 0)}
        if self.method == "soft cap":
            options["softcap"] = SOFT_CAP

        @torch.no_grad()
        def call() -> list[Tensor]:
            return [attend(q, k, v, self.encoding, at, **options)]

        return Contender(call, lambda: [call()[0][:, :, self.rows]])

    # The exact result. ----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def rows(self) -> Tensor:
        """The queries that are compared: the first, the last, and others."""
        length = self.case.length
        if length <= CHECKED:
            return torch.arange(length, device=self.device)
        drawn = torch.randperm(length, generator=torch.Generator().manual_seed(0))[: CHECKED - 2]
        ends = torch.tensor([0, length - 1])
        return torch.cat([ends, drawn]).sort().values.to(self.device)

    def may(self, pattern: Pattern, rows: Tensor) -> Tensor:
        """[1, i, j] of these queries."""
        place, size = torch.arange(self.case.length, device=self.device), self.case.length // pattern.documents
        back = rows[:, None] - place
        near = torch.ones_like(back, dtype=torch.bool) if pattern.left is None else back <= pattern.left
        seen: Tensor = (back >= 0) & near & (rows[:, None] // size == place // size)
        return seen[None]

    def exact(self, pattern: Pattern) -> list[Tensor]:
        """The formula in fp64, a head at a time."""
        q, k, v = (x.double() for x in self.qkv)
        place = torch.arange(self.case.length, device=self.device)
        if self.method != "ALiBi":  # distances are the same in a document that begins anywhere
            q, k = (truth.rotated(x, place[None], "half") for x in (q, k))
        q, may, every = q[:, :, self.rows], self.may(pattern, self.rows), torch.arange(len(self.rows), device=self.device)
        slopes, scale, outs = truth.slopes(self.case.heads), 1 / math.sqrt(self.case.width), []
        for head in range(self.case.heads):

            def term(logits: Tensor, _: Tensor, head: int = head) -> Tensor:
                if self.method == "ALiBi":
                    return logits - slopes[head] * (self.rows[:, None] - place).abs()
                return SOFT_CAP * (logits / SOFT_CAP).tanh() if self.method == "soft cap" else logits

            outs.append(truth.attention(q[:, head], k[:, head], v[:, head], term, may, every, scale))
        return [torch.stack(outs, dim=1)]
