"""One rotation for all kinds of layers, halves paired; what differs from layer to layer is how far a query looks back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from posenc.dialects.assumed import scaled_without_width, with_assumed
from posenc.dialects.errors import ConfigError
from posenc.dialects.families.llama import alike
from posenc.dialects.family import decoder, family, head_width
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.spec import PositionSpec, Use

FULL, SLIDING = "full_attention", "sliding_attention"


def kinds_of(keys: Keys, assumed: Callable[[int], bool], allowed: tuple[str, ...] = (FULL, SLIDING)) -> tuple[str, ...]:
    """layer_types; where the file has none, sliding where `assumed` says so of a layer's number. ConfigError."""
    count = keys.whole("num_hidden_layers")
    said = keys.names("layer_types", None, length=count)
    kinds = said or tuple(allowed[1] if assumed(number) else allowed[0] for number in range(count))
    for kind in kinds:
        if kind not in allowed:
            raise ConfigError(f"{keys.where('layer_types')}: expected {' or '.join(allowed)}, got {kind!r}")
    return kinds


@family("doge", "mistral", "mixtral", "starcoder2")
def _(keys: Keys) -> PositionSpec:
    """One window for all layers, where there is one."""
    use = rope(keys, d_head=head_width(keys))
    if keys.family == "mixtral":
        scaled_without_width(keys, use)
    return decoder(keys, use, kinds=alike(keys, SLIDING if keys.whole("sliding_window", None) else FULL))


@family("qwen3_moe")
def _(keys: Keys) -> PositionSpec:
    """All layers look through the window, but only where use_sliding_window says so."""
    window = _if_used(keys)
    return _through(keys, alike(keys, SLIDING if window else FULL), window)


@family("qwen2", "qwen3")
def _(keys: Keys) -> PositionSpec:
    """The layers from max_window_layers on slide, where use_sliding_window says so."""
    return _first_full(keys, _if_used(keys))


@family("dots1")
def _(keys: Keys) -> PositionSpec:
    """As Qwen 2 without its switch: a window that is given is used."""
    return _first_full(keys, keys.whole("sliding_window", None))


@family("qwen2_moe")
def _(keys: Keys) -> PositionSpec:
    """Every second layer below max_window_layers slides, unlike Qwen 2, whose layers from there on do."""
    window, last = _if_used(keys), keys.whole("max_window_layers", least=0)
    kinds = kinds_of(keys, lambda n: window is not None and n % 2 == 0 and n < last)
    return _through(keys, kinds, window)


@family("cwm")
def _(keys: Keys) -> PositionSpec:
    """Every fourth layer is full, the first one among them. Scaled as Llama 3.1 where the file says nothing."""
    keys = with_assumed(
        keys,
        {
            "rope_theta": 1000000.0,
            "factor": 16.0,
            "high_freq_factor": 4.0,
            "low_freq_factor": 1.0,
            "original_max_position_embeddings": 8192,
            "rope_type": "llama3",
        },
    )
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds_of(keys, lambda n: n % 4 != 0))


@family("ministral")
def _(keys: Keys) -> PositionSpec:
    window, use = keys.whole("sliding_window", None), rope(keys, d_head=head_width(keys))
    scaled_without_width(keys, use)
    return decoder(keys, use, kinds=kinds_of(keys, lambda n: window is not None))


@family("gemma2", "vaultgemma")
def _(keys: Keys) -> PositionSpec:
    """Every second layer is full, the first one slides."""
    if "use_bidirectional_attention" in keys.facts["defaults"] and keys.flag("use_bidirectional_attention", False):
        keys.find("warning", "use_bidirectional_attention", "makes no mask: attention stays causal where masks are given")
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds_of(keys, lambda n: n % 2 == 0))


@family("gpt_oss")
def _(keys: Keys) -> PositionSpec:
    """Every second layer is full, the first one slides; YaRN where the file says nothing; halves as two chunks."""
    yarn = {
        "rope_type": "yarn",
        "factor": 32.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
        "original_max_position_embeddings": 4096,
    }
    keys = with_assumed(keys, yarn)
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds_of(keys, lambda n: n % 2 == 0))


@family("afmoe")
def _(keys: Keys) -> PositionSpec:
    """Only sliding layers turn; every global_attn_every_n_layers-th layer is full and has no positions."""
    every = keys.whole("global_attn_every_n_layers")
    return _turning_where_sliding(keys, kinds_of(keys, lambda n: (n + 1) % every != 0))


@family("flint")
def _(keys: Keys) -> PositionSpec:
    """Only sliding layers turn; full are the first two layers, then every fourth, and the last."""
    last = keys.whole("num_hidden_layers") - 1
    kinds = kinds_of(keys, lambda n: not (n < 2 or n % 4 == 1 or n == last))
    if keys.whole("sliding_window", None) is None:
        keys.find("warning", "sliding_window", "null: rotation depends on it, so that no layer turns at all")
        return decoder(keys, None, kinds=kinds)
    return _turning_where_sliding(keys, kinds)


@family("granite_swa", "granitemoe_swa")
def _(keys: Keys) -> PositionSpec:
    """Every fourth layer is full, the first one among them; layer_rope_theta gives each layer its base, 0: no positions."""
    kinds = kinds_of(keys, lambda n: n % 4 != 0)
    use = rope(keys, d_head=head_width(keys))
    bases = keys.numbers("layer_rope_theta", None, length=len(kinds))
    spec = decoder(keys, use, kinds=kinds)
    if bases is None:
        return spec
    uses = [_at_base(use, float(base)) for base in bases]
    return replace(
        spec, layers=tuple(replace(layer, uses=(own,) if own else ()) for layer, own in zip(spec.layers, uses, strict=True))
    )


def _at_base(use: Use | None, base: float) -> Use | None:
    if use is None or not base:
        return None
    given = dict(use.arguments)
    arguments = given | {"frequencies": replace(given["frequencies"], base=base)}
    said_by = dict(use.said_by) | {"base": "layer_rope_theta"}
    return replace(use, arguments=tuple(arguments.items()), said_by=tuple(said_by.items()))


def _turning_where_sliding(keys: Keys, kinds: tuple[str, ...]) -> PositionSpec:
    uses: Mapping[str, Use | None] = {SLIDING: rope(keys, d_head=head_width(keys)), FULL: None}
    return decoder(keys, None, kinds=kinds, by_kind=uses)


def _if_used(keys: Keys) -> int | None:
    """The window, or None where the switch is off, which it is in a file that does not say."""
    window: int | None = keys.whole("sliding_window", None, least=0) or None  # saved as 0 or null where not in use
    if keys.flag("use_sliding_window", False):
        return window
    if window and keys.has("sliding_window"):
        keys.find("note", "sliding_window", "not in use: use_sliding_window is off")
    return None


def _first_full(keys: Keys, window: int | None) -> PositionSpec:
    first = keys.whole("max_window_layers", least=0)
    kinds = kinds_of(keys, lambda n: window is not None and n >= first)
    return _through(keys, kinds, window)


def _through(keys: Keys, kinds: Sequence[str], window: int | None) -> PositionSpec:
    """Sliding layers with this window, whatever the key beside the switch says."""
    spec = decoder(keys, rope(keys, d_head=head_width(keys)), kinds=[FULL] * len(kinds))
    layers = [
        replace(layer, kind=kind, window=window if kind == SLIDING else None)
        for layer, kind in zip(spec.layers, kinds, strict=True)
    ]
    return replace(spec, layers=tuple(layers))
