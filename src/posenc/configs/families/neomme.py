"""NeoMME: one bidirectional stack for text and images, with axial RoPE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from posenc.configs.assumed import longrope_of_layers, settings_by_kind
from posenc.configs.errors import ConfigError
from posenc.configs.family import bidirectional, decoder, family
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope, within_settings
from posenc.configs.say import say
from posenc.configs.schedule import FULL, SLIDING, schedule
from posenc.configs.spec import PositionSpec, Use

LABELS = (SLIDING, FULL)


@family("neomme")
def neomme(keys: Keys) -> PositionSpec:
    """Axial RoPE for images, pairs alternately by row and column; for text both are equal. Full layers rotate a quarter of
    the head.

    The windows of sliding layers alternate between sliding_window and 1024, unless per_layer_config is set.
    """
    keys, count = within_settings(keys), keys.whole("num_hidden_layers")
    kinds = schedule(keys, lambda n: FULL if (n + 1) % 6 == 0 or n == count - 1 else SLIDING)
    d_head, assumed = keys.whole("head_dim"), {FULL: (1000000.0, 0.25), SLIDING: (10000.0, 1.0)}
    settings_by_kind(keys, LABELS)
    uses: dict[str, Use | None] = {}
    for kind in dict.fromkeys(kinds):
        uses[kind] = rope(
            keys.replaced(facts={"base": assumed[kind][0]}),
            d_head=d_head,
            label=kind,
            labels=LABELS,
            partial=True,
            partial_default=assumed[kind][1],
            maps=(("cycling", (("order", (0, 1)),)),),
        )
    spec = decoder(
        keys, None, kinds=kinds, by_kind=uses, d_head=d_head, coordinates=say("(row, column); for text both are 0, 1, 2, …")
    )
    longrope_of_layers(keys, spec)
    halves = _halves(keys, kinds)
    layers = [
        replace(layer, window=2 * half + 1 if half is not None else None)
        for layer, half in zip(spec.layers, halves, strict=True)
    ]
    return bidirectional(replace(spec, layers=tuple(layers)))


def _halves(keys: Keys, kinds: tuple[str, ...]) -> list[int | None]:
    """How far each layer sees on each side; None for full layers."""
    short, settings = (
        keys.whole("sliding_window", None),
        keys.table("per_layer_config") if keys.has("per_layer_config") else None,
    )
    halves: list[int | None] = []
    for number, kind in enumerate(kinds):
        seen = sum(before == SLIDING for before in kinds[:number])
        half = (1024 if seen % 2 else short) if kind == SLIDING else None
        if settings is not None:
            inner: Any = next((inner for key, inner in settings.items() if str(key).isdigit() and int(key) == number), {})
            half = inner.get("sliding_window", short) if isinstance(inner, Mapping) else short
        if half is not None and (type(half) is not int or half < 1):
            raise ConfigError(
                f"{keys.where('per_layer_config')}.{number}.sliding_window: expected a whole number, got {half!r}"
            )
        halves.append(half)
    return halves
