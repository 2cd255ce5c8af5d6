"""A whole decoder of eight layers: one token after cached ones, positions prepared once for all layers; a training step.

    floor   the same model without an encoding (NoPE)

Exact results are those of the reference backend in fp64.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.contest import Contender, Contest, Entry
from bench.gate import limits
from bench.layer import drawn_cache
from bench.plan import Case

ENCODINGS = ("rope", "alibi", "t5", "sinusoidal", "xpos", "shaw", "transformer_xl", "cope")


def build(case: Case, device: str = "cpu") -> Contest:
    training = case.name.startswith("training")

    def results(name: str, dtype: torch.dtype, impl: str) -> list[Tensor]:
        model = Decoder(name, case, dtype, device)
        return model.step(impl) if training else [model.token(impl)]

    def make(name: str) -> Contender:
        model = Decoder(name, case, torch.float32, device)
        call = model.step if training else model.token
        return Contender(call, lambda: results(name, torch.float32, "auto"))

    def allowed(name: str, exact: Sequence[Tensor]) -> list[float]:
        """Four times the error of the reference backend in float32, and a few roundings for the order of sums."""
        return limits(results(name, torch.float32, "reference"), exact, times=4, roundings=16)

    return Contest(
        Entry("nope", "torch", lambda: make("nope")),
        [Entry(name, "posenc", lambda name=name: make(name), truth=name) for name in ENCODINGS],  # type: ignore[misc]
        {name: lambda name=name: results(name, torch.float64, "reference") for name in ENCODINGS},  # type: ignore[misc]
        allowed,
        ("out", "dx") if training else ("out",),
    )


class Decoder(nn.Module):
    """x = x + attention(norm(x)), x = x + mlp(norm(x)) in each layer; what is added to embeddings is added to x once."""

    def __init__(self, name: str, case: Case, dtype: torch.dtype, device: str) -> None:
        from posenc.attention.module import Attention
        from posenc.catalogue import lookup

        super().__init__()
        self.case, d_model = case, case.heads * case.width
        torch.manual_seed(0)
        shared = lookup.create("nope")
        self.blocks = nn.ModuleList(Attention(d_model, case.heads, shared) for _ in range(case.layers))
        self.mlps = nn.ModuleList(
            nn.Sequential(
                nn.Linear(d_model, 4 * d_model, bias=False), nn.GELU(), nn.Linear(4 * d_model, d_model, bias=False)
            )
            for _ in range(case.layers)
        )
        self.x = torch.randn(case.batch, case.length, d_model).to(device, dtype)
        torch.manual_seed(1)
        self.encoding = lookup.create(name, d_model=d_model, n_heads=case.heads, n_layers=case.layers)
        for parameter in self.encoding.parameters():
            if not parameter.any():  # CoPE's vectors begin at zero, where an error would not show
                nn.init.normal_(parameter, std=0.02)
        self.to(device, dtype)
        for number, block in enumerate(self.blocks):
            block.encoding = self.encoding.at_layer(number)

    @cached_property
    def caches(self) -> list[object]:
        """Drawn keys and values, as decoded tokens leave them."""
        return [drawn_cache(self.encoding, self.case, self.x)] * self.case.layers

    @torch.no_grad()
    def token(self, impl: str = "auto") -> Tensor:
        """The output for one more token of each row, prepared once for all layers."""
        from posenc.positions import Positions

        at = Positions.decode([self.case.cached] * self.case.batch, device=self.x.device)
        at, x = self.encoding.prepare(at, self.x.dtype), self.x
        for block, mlp, cache in zip(self.blocks, self.mlps, self.caches, strict=True):
            x = x + block.decode(_normed(x), at, cache, impl=impl)[0]  # type: ignore[operator]
            x = x + mlp(_normed(x))
        return x

    def step(self, impl: str = "auto") -> list[Tensor]:
        """Forward and backward; the output, and the gradient of the input."""
        from posenc.positions import Positions

        self.zero_grad()
        self.x.requires_grad_().grad = None
        at = self.encoding.prepare(Positions.arange(self.case.batch, self.case.length, device=self.x.device), self.x.dtype)
        x = self.x
        for block, mlp in zip(self.blocks, self.mlps, strict=True):
            x = x + block(_normed(x), at, impl=impl)
            x = x + mlp(_normed(x))
        x.square().mean().backward()
        assert self.x.grad is not None
        return [x.detach(), self.x.grad.clone()]


def _normed(x: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[-1:])
