"""Encoders of two kinds of layers, each with its base: some see all, the others a window, to both sides but in decoders."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from posenc.dialects.assumed import with_assumed
from posenc.dialects.errors import ConfigError
from posenc.dialects.families.encoders import both_ways
from posenc.dialects.family import decoder, family, head_width, parts
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.schedule import FULL, SLIDING, schedule
from posenc.dialects.spec import PositionSpec

LABELS = (SLIDING, FULL)


@family("modernbert")
def _(keys: Keys) -> PositionSpec:
    """Every third layer sees all, the others local_attention tokens and itself; each kind has its base."""
    half = keys.whole("sliding_window", None)
    half = keys.whole("local_attention") // 2 if half is None else half
    return both_ways(_modernbert(keys, 2 * half + 1))


@family("modernbert-decoder")
def _(keys: Keys) -> PositionSpec:
    """As ModernBERT, looking back only: half of local_attention, whatever sliding_window says."""
    window = keys.whole("local_attention") // 2
    if keys.has("sliding_window") and keys.whole("sliding_window") != window:
        keys.find("error", "sliding_window", f"the class takes local_attention / 2 = {window}")
    keys.get("sliding_window", None)
    return _modernbert(keys, window)


def _modernbert(keys: Keys, window: int) -> PositionSpec:
    every = keys.whole("global_attn_every_n_layers", 3)
    kinds = schedule(keys, lambda n: SLIDING if n % every else FULL)
    d_head = keys.whole("hidden_size") // keys.whole("num_attention_heads")
    old = {FULL: "global_rope_theta", SLIDING: "local_rope_theta"}
    by_kind = {
        kind: rope(keys, d_head=d_head, label=kind, labels=LABELS, base_key=old[kind]) for kind in dict.fromkeys(kinds)
    }
    for kind in LABELS:
        keys.number(old[kind], None)  # read for both kinds, whichever layers there are
    return _behind(decoder(keys, None, kinds=kinds, by_kind=by_kind, d_head=d_head), window)


def _behind(spec: PositionSpec, window: int) -> PositionSpec:
    layers = tuple(replace(layer, window=window if layer.kind == SLIDING else None) for layer in spec.layers)
    return replace(spec, layers=layers)


@family("modernvbert")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"))


@family("ultrabert")
def _(keys: Keys) -> PositionSpec:
    """Every third layer sees all, the others sliding_window tokens to each side; each kind has its base."""
    windows = keys.get("attention_windows", None) or ()
    if not isinstance(windows, (list, tuple)) or any(w is not None and (type(w) is not int or w < 0) for w in windows):
        raise ConfigError(
            f"{keys.where('attention_windows')}: expected a whole number or null for each layer, got {windows}"
        )
    if len({w for w in windows if w}) > 1:
        keys.find("error", "attention_windows", "the class takes the first of these windows for all layers that have one")
    half = next((w for w in windows if w), None) or keys.whole("sliding_window")
    if windows and len(windows) != keys.whole("num_hidden_layers"):
        raise ConfigError(
            f"{keys.where('attention_windows')}: expected {keys.whole('num_hidden_layers')}, one for each "
            f"layer, got {len(windows)}"
        )
    kinds = schedule(keys, lambda n: SLIDING if (windows[n] if windows else (n + 1) % 3) else FULL)
    keys = _bases_of_kinds(keys, kinds)
    d_head = head_width(keys)
    by_kind = {kind: rope(keys, d_head=d_head, label=kind, labels=LABELS) for kind in dict.fromkeys(kinds)}
    return both_ways(_behind(decoder(keys, None, kinds=kinds, by_kind=by_kind), 2 * half + 1))


def _bases_of_kinds(keys: Keys, kinds: tuple[str, ...]) -> Keys:
    """A list rope_theta of older files, one for each layer: of several for one kind the class keeps the last."""
    bases = keys.data.get("rope_theta")
    if not isinstance(bases, list) or keys.has("rope_parameters"):
        both = {
            SLIDING: {"rope_type": "default", "rope_theta": 10000.0},
            FULL: {"rope_type": "default", "rope_theta": 2560000.0},
        }
        return with_assumed(keys, both)
    numbers = dict(zip(kinds, keys.numbers("rope_theta"), strict=False))
    if any(numbers[kind] != base for kind, base in zip(kinds, bases, strict=False)):
        keys.find("error", "rope_theta", "layers of one kind have different bases: the class takes the last one for all")
    return _with_settings(keys, {kind: {"rope_type": "default", "rope_theta": base} for kind, base in numbers.items()})


def _with_settings(keys: Keys, settings: Mapping[str, Any]) -> Keys:
    """These keys as if the file had them in rope_parameters; what is read and found stays with the caller's."""
    made = copy(keys)
    made.data = {key: value for key, value in keys.data.items() if key != "rope_theta"} | {
        "rope_parameters": dict(settings)
    }
    return made


@family("muse_glimmer_assistant")
def _(keys: Keys) -> PositionSpec:
    """A draft model: a block of new tokens reads what the large model made of the context, and itself both ways."""
    kinds = schedule(keys, lambda n: SLIDING)
    keys.find(
        "note",
        "block_size",
        "keys are those of the context and then of the block, queries of the block alone, at the last of the positions",
    )
    spec = decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds)
    return both_ways(_behind(spec, 2 * keys.whole("sliding_window") + 1))
