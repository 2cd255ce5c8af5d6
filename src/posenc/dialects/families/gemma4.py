"""Gemma 4's text models: full layers have wider heads, of which a part turns, spread over the whole ("proportional")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from posenc.dialects.assumed import with_assumed
from posenc.dialects.errors import ConfigError
from posenc.dialects.families.nested import borrowing, both_ways, per_kind, sliding_but_every
from posenc.dialects.families.sliding import FULL, SLIDING, kinds_of
from posenc.dialects.family import decoder, family
from posenc.dialects.keys import Keys
from posenc.dialects.spec import PositionSpec

LOCAL = {"rope_type": "default", "rope_theta": 10000.0}
PROPORTIONAL = {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0}


@family("gemma4_text", "gemma4_unified_text")
def _(keys: Keys) -> PositionSpec:
    """Every sixth layer is full, and the last one always. The last num_kv_shared_layers take the keys of earlier ones."""
    spec = _decoder(keys, {SLIDING: LOCAL, FULL: PROPORTIONAL}, lambda n: (n + 1) % 6 != 0)
    spec = borrowing(spec, keys.whole("num_kv_shared_layers", 0, least=0))
    both = keys.text("use_bidirectional_attention", None, among=("all", "vision"))
    if both == "vision":
        keys.find("note", "use_bidirectional_attention", "sliding layers also look ahead within one image; text does not")
    if both != "all":
        return spec
    beside = keys.whole("sliding_window") // 2 + 1
    keys.find(
        "warning",
        "sliding_window",
        f"tokens up to {beside} away are seen on either side, one more than in Gemma 3 with the same number",
    )
    return both_ways(spec, 2 * beside + 1)


@family("embedding_gemma2_text")
def _(keys: Keys) -> PositionSpec:
    """An encoder: all layers look both ways, sliding ones sliding_window tokens to either side."""
    plain = {SLIDING: LOCAL, FULL: {"rope_type": "default", "rope_theta": 1000000.0}}
    spec = _decoder(keys, plain, sliding_but_every(keys, 6))
    return both_ways(spec, 2 * keys.whole("sliding_window") + 1)


def _decoder(keys: Keys, assumed: dict[str, Any], slides: Any) -> PositionSpec:
    kinds = list(kinds_of(keys, slides))
    if kinds[-1] != FULL:
        if keys.has("layer_types"):
            keys.find("warning", "layer_types", "the last layer is full attention, whatever stands here")
        kinds[-1] = FULL
    widths = _widths(keys, kinds)
    spec = decoder(
        keys,
        None,
        kinds=kinds,
        by_kind=per_kind(with_assumed(keys, assumed), kinds, d_head=widths),
        d_head=keys.whole("head_dim"),
    )
    return spec if widths[FULL] == widths[SLIDING] else replace(spec, d_head=None)


def _widths(keys: Keys, kinds: Sequence[str]) -> dict[str, int]:
    """Head widths by kind: head_dim, but for single layers what per_layer_config says, and without it 512 for full ones."""
    if keys.has("per_layer_config"):
        table = keys.table("per_layer_config")
        for number, own in table.items():
            if not str(number).isdigit() or not isinstance(own, Mapping):
                raise ConfigError(
                    f"{keys.where('per_layer_config')}.{number}: expected an object under a layer's number, got {own!r}"
                )
        said = {int(number): own for number, own in table.items()}
        each = [Keys(said.get(n, {}), "").whole("head_dim", keys.whole("head_dim")) for n in range(len(kinds))]
    else:
        wide = keys.whole("global_head_dim", 512)
        each = [wide if kind == FULL else keys.whole("head_dim") for kind in kinds]
    widths = {FULL: keys.whole("head_dim"), SLIDING: keys.whole("head_dim")}
    for kind in widths:
        found = {width for width, own in zip(each, kinds, strict=True) if own == kind}
        if len(found) > 1:
            raise ConfigError(
                f"{keys.where('per_layer_config')}: head_dim is {sorted(found)} in {kind} layers, but "
                "one rotation serves all of a kind"
            )
        widths[kind] = next(iter(found), widths[kind])
    return widths
