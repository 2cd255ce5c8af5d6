"""A different encoding for each layer: sliding layers at one base, full ones at another, every fourth with none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import nn

from posenc.checked import explained
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions


class PerLayer(PositionalEncoding):
    """The encodings of a model's layers, first layer first; a layer takes its own with `at_layer(n)`.

        encoding = PerLayer([local, local, local, NoPE()] * 8)
        at = encoding.prepare(positions)                    # every layer's tables, each computed once
        out = attend(q, k, v, encoding.at_layer(3), at)

    It acts at no seam itself, and attention refuses it. The same encoding may stand for several layers.
    Raises TypeError for what is no encoding, ValueError for no layers and for a layer that there is not.
    """

    of_one_layer = False

    @explained
    def __init__(self, layers: Iterable[PositionalEncoding]) -> None:
        layers = list(layers)
        if not layers:
            raise ValueError("layers: expected the encoding of at least one layer, got none")
        for layer in layers:
            if not isinstance(layer, PositionalEncoding):
                raise TypeError(f"layers: expected encodings such as posenc.create('rope', …), got {type(layer).__name__}")
        super().__init__()
        self.layers = nn.ModuleList(layers)

    @property
    def owner(self) -> str:
        return f"PerLayer({len(self)} layers: {', '.join(dict.fromkeys(layer.owner for layer in self))})"

    def __iter__(self) -> Iterator[PositionalEncoding]:
        return iter(self.layers)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.layers)

    def prepare(self, at: Positions, dtype: torch.dtype = torch.float32) -> Positions:
        for layer in {layer.owner: layer for layer in self}.values():
            at = layer.prepare(at, dtype)
        return at

    def at_layer(self, n: int) -> PositionalEncoding:
        if not 0 <= n < len(self.layers):
            raise ValueError(f"n: expected a layer from 0 to {len(self) - 1}, this PerLayer has {len(self)}, got {n}")
        layer: PositionalEncoding = self.layers[n]  # type: ignore[assignment]
        return layer.at_layer(n)

    def at_length(self, n: int) -> PerLayer:
        return PerLayer(layer.at_length(n) for layer in self)

    def heads(self, start: int, stop: int) -> PerLayer:
        return PerLayer(layer.heads(start, stop) for layer in self)
