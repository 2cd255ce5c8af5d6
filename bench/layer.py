"""Attention layers with their projections and one encoding each: one token after others, a prompt, a training step.

    floor   the same layers without an encoding (NoPE)

Every layer gets the same input, so that an error does not grow from layer to layer. Positions and tables are made within
every call, once for all layers. An absolute encoding is added in the first layer only, FLOATER in all of them.

Exact results are those of the reference backend in fp64, with the projections written out here. That is code of posenc; the
benchmark `bias` and the tests hold it against the formulas of the papers.

Legend: b batch, t new tokens, s cached tokens, h query heads, g key heads, d channels of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from bench.contest import Contender, Contest, Entry
from bench.gate import limits
from bench.plan import Case

ENCODINGS = ("rope", "sinusoidal", "xpos", "shaw", "transformer_xl", "cope", "floater")
CHECKED = 8  # new tokens whose output is compared with the exact one, the last ones
WIDE = 2048  # d_model from which on FLOATER's path is short, because solving one takes seconds for a few hundred steps
SHORT = 0.64  # the time in which such a path reaches the last token; 64 positions of the usual step


def build(case: Case, device: str = "cpu") -> Contest:
    training = case.name.startswith("training")
    names = [name for name in ENCODINGS if name not in left_out(case)]

    def layers(name: str, dtype: torch.dtype = torch.float32) -> Layers:
        return Layers(name, case, dtype, device)

    def make(name: str) -> Contender:
        model = layers(name)
        return Contender(model.train, model.trained) if training else Contender(model.read, model.last)

    def exact(name: str, dtype: torch.dtype = torch.float64) -> list[Tensor]:
        model = layers(name, dtype)
        return model.trained("reference") if training else model.written_out()

    def allowed(name: str, exactly: Sequence[Tensor]) -> list[float]:
        """Twice the error of the reference backend in float32, and a few roundings for the order of sums."""
        return limits(exact(name, torch.float32), exactly, times=2, roundings=8)

    return Contest(
        Entry("nope", "torch", lambda: make("nope")),
        [Entry(name, "posenc", lambda name=name: make(name), truth=name) for name in names],  # type: ignore[misc]
        {name: lambda name=name: exact(name) for name in names},  # type: ignore[misc]
        allowed,
        ("out", "dx") if training else ("out",),
        repeat=4 if case.length == 1 and _width(case) < WIDE else 1,
    )


def left_out(case: Case) -> set[str]:
    """What would take tens of seconds a call, by estimate: a wide adjoint, and W_R times 33k sinusoids."""
    if _width(case) < WIDE:
        return set()
    if case.name.startswith("training"):
        return {"floater"}
    return {"transformer_xl"} if case.length > 1 and case.cached > 2**14 else set()


def _width(case: Case) -> int:
    return case.heads * case.width


def drawn_cache(encoding: Any, case: Case, x: Tensor) -> Any:
    """Drawn keys, rotated as the encoding does, and drawn values, where `x` is and of its dtype."""
    from posenc.attention.module import AFTER_ROTATION, KeyValueCache
    from posenc.positions import Positions

    source, shape = torch.Generator().manual_seed(2), (case.batch, case.kv_heads, case.cached, case.width)
    k, v = (torch.randn(shape, generator=source).to(x) for _ in "kv")
    at = Positions.arange(case.batch, case.cached, device=x.device)
    if x.dtype == torch.float32 and encoding.seams & AFTER_ROTATION:  # as decoded tokens leave them
        at = encoding.prepare(at)
    with torch.no_grad():
        return KeyValueCache(encoding.rotate(k, at, "key"), v, at)


class Layers:
    """Layers with random weights, input and cached keys: the same for every encoding, and in every dtype."""

    def __init__(self, name: str, case: Case, dtype: torch.dtype, device: str) -> None:
        from posenc.attention.module import Attention
        from posenc.catalogue import lookup

        self.case, self.dtype, self.device = case, dtype, device
        tokens, d_model = case.cached + case.length, _width(case)
        options: dict[str, Any] = {"step": SHORT / tokens} if name == "floater" and d_model >= WIDE else {}
        torch.manual_seed(1)
        self.encoding = lookup.create(
            name, d_model=d_model, n_heads=case.heads, n_kv_heads=case.kv_heads, n_layers=case.layers, **options
        )
        for parameter in self.encoding.parameters():
            if not parameter.any():  # CoPE's vectors begin at zero, where an error would not show
                torch.nn.init.normal_(parameter, std=0.02)
        torch.manual_seed(0)
        self.x = torch.randn(case.batch, case.length, d_model).to(device, dtype)
        self.encoding.to(device, dtype)
        self.layers = [
            Attention(d_model, case.heads, self.encoding.at_layer(number), n_kv_heads=case.kv_heads).to(device, dtype)
            for number in range(case.layers)
        ]

    @cached_property
    def caches(self) -> list[Any]:
        """Random keys and values for every layer; None where nothing is cached."""
        return [drawn_cache(self.encoding, self.case, self.x) if self.case.cached else None] * self.case.layers

    def at(self) -> Any:
        """Positions of the new tokens."""
        from posenc.positions import Positions

        case = self.case
        if case.length == 1:
            return Positions.decode([case.cached] * case.batch, device=self.device)
        positions = Positions.arange(case.batch, case.cached + case.length, device=self.device)
        return positions.narrow(case.cached, positions.length) if case.cached else positions

    @torch.no_grad()
    def read(self) -> list[Tensor]:
        """The output of every layer for the new tokens."""
        at, x = self.encoding.prepare(self.at(), self.dtype), self.x
        if not self.case.cached:
            return [layer(x, at) for layer in self.layers]
        return [layer.decode(x, at, cache)[0] for layer, cache in zip(self.layers, self.caches, strict=True)]

    def last(self) -> list[Tensor]:
        return [torch.stack(self.read())[:, :, -CHECKED:]]

    def train(self) -> list[Tensor]:
        """Forward and backward of every layer, down to the input."""
        return self._trained("auto")

    def trained(self, impl: str = "auto") -> list[Tensor]:
        outs = self._trained(impl)
        assert self.x.grad is not None
        return [torch.stack(outs).detach(), self.x.grad.clone()]

    def _trained(self, impl: str) -> list[Tensor]:
        self.x.requires_grad_().grad = None
        for layer in self.layers:
            layer.zero_grad()
        at = self.encoding.prepare(self.at(), self.dtype)
        outs = [layer(self.x, at, impl=impl) for layer in self.layers]
        sum((out.square().mean() for out in outs), self.x.new_zeros(())).backward()
        return outs

    @torch.no_grad()
    def written_out(self) -> list[Tensor]:
        """The exact result of `last`."""
        return [
            torch.stack([self._written_out(layer, cache) for layer, cache in zip(self.layers, self.caches, strict=True)])
        ]

    def _written_out(self, layer: Any, cache: Any) -> Tensor:
        from posenc.attention import attend_rotated
        from posenc.positions import Positions

        encoding, at, width = layer.encoding, self.at(), self.case.width
        x, seen = encoding.embed(self.x, at), max(0, at.length - CHECKED)
        q, k, v = (
            (x @ to.weight.T).unflatten(-1, (-1, width)).transpose(1, 2) for to in (layer.query, layer.key, layer.value)
        )
        k, held = encoding.rotate(k, at, "key"), at
        if cache is not None:
            k, v = torch.cat([cache.k, k], dim=2), torch.cat([cache.v, v], dim=2)
            held = Positions.cat([cache.at, at])
        here = at.narrow(seen, at.length)
        out = attend_rotated(encoding.rotate(q[:, :, seen:], here, "query"), k, v, encoding, here, held, impl="reference")
        merged: Tensor = out.transpose(1, 2).flatten(-2) @ layer.out.weight.T
        return merged
