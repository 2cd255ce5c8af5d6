"""SmolLM3: RoPE in most layers, none in every fourth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from posenc.configs.errors import ConfigError
from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.schedule import FULL, SLIDING, schedule
from posenc.configs.spec import PositionSpec, Use


@family("smollm3")
def smollm3(keys: Keys) -> PositionSpec:
    """no_rope_layers lists 1 for layers with RoPE and 0 without; every fourth has none by default. A window applies to the
    layers without RoPE."""
    turning = rope_layers(keys)
    window = keys.whole("sliding_window", None) if keys.flag("use_sliding_window", False) else None
    kinds = schedule(keys, lambda n: SLIDING if window and not turning[n] else FULL)
    if SLIDING in kinds and not window:
        keys.warning(
            "layer_types",
            say(
                "layer_types has sliding layers although use_sliding_window is off: their mask has the "
                "window, but kernels that make their own mask get none"
            ),
        )
    return rope_where(decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds), turning)


def rope_layers(keys: Keys) -> tuple[bool, ...]:
    """no_rope_layers, where 1 means that a layer uses RoPE; by default all but every no_rope_layer_interval-th."""
    count = keys.whole("num_hidden_layers")
    flags = keys.numbers("no_rope_layers", None)
    keys.get("no_rope_layer_interval", None)  # counts where there is no list
    if flags:
        if len(flags) != count or not set(flags) <= {0, 1}:
            raise ConfigError(
                f"{keys.where('no_rope_layers')}: expected {count} of 1 (RoPE) and 0 (none), got {list(flags)}"
            )
        keys.note("no_rope_layers", say("1 means that a layer uses RoPE, 0 that it does not"))
        return tuple(bool(flag) for flag in flags)
    every = keys.whole("no_rope_layer_interval")
    return tuple((n + 1) % every != 0 for n in range(count))


def rope_where(spec: PositionSpec, turning: Sequence[bool], other: Sequence[Use] = ()) -> PositionSpec:
    """The spec with `other` instead of the rotation in layers where `turning` is false."""
    layers = [
        layer if turns else replace(layer, uses=tuple(other)) for layer, turns in zip(spec.layers, turning, strict=True)
    ]
    return replace(spec, layers=tuple(layers))
