"""Attention among recurrent or convolutional layers: order comes from those too; only attention layers are listed.

Halves are paired in all of them. Some turn the attention layers as Llama does, some leave attention without positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from posenc.dialects.assumed import with_assumed
from posenc.dialects.errors import ConfigError
from posenc.dialects.family import decoder, family, head_width
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.schedule import FULL, OLD, RECURRENT, SLIDING, attention_among, schedule
from posenc.dialects.spec import PositionSpec

SSM, CONV, DELTA = "state space models", "short convolutions", "gated delta rules"


@family("bamba")
def _(keys: Keys) -> PositionSpec:
    """Half of each head turns, which the class writes over what the file says beside rope_parameters."""
    at = keys.numbers("attn_layer_indices", ())
    kinds = [FULL if n in at else RECURRENT for n in range(keys.whole("num_hidden_layers"))]
    if keys.number("partial_rotary_factor", 0.5) != 0.5:
        keys.find(
            "error", "partial_rotary_factor", "the class takes 0.5 whatever stands here, unless rope_parameters has it"
        )
        keys.data = {key: value for key, value in keys.data.items() if key != "partial_rotary_factor"}
    return _turning(keys, kinds, SSM, 0.5)


@family("qwen3_next")
def _(keys: Keys) -> PositionSpec:
    """A quarter of each head turns; every full_attention_interval-th layer is attention."""
    every = keys.whole("full_attention_interval", 4)
    return _turning(keys, schedule(keys, lambda n: RECURRENT if (n + 1) % every else FULL, (FULL, RECURRENT)), DELTA, 0.25)


@family("falcon_h1")
def _(keys: Keys) -> PositionSpec:
    """Every layer has attention and a state space model side by side."""
    keys.find(
        "note", "num_hidden_layers", "every layer has a state space model beside its attention, which keeps order too"
    )
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=["hybrid"] * keys.whole("num_hidden_layers"))


@family("granitemoehybrid")
def _(keys: Keys) -> PositionSpec:
    """No positions unless position_embedding_type is "rope"."""
    kinds = schedule(keys, lambda n: RECURRENT, (FULL, RECURRENT))
    if keys.text("position_embedding_type", None) == "rope":
        return _turning(keys, kinds, SSM)
    keys.find("note", "position_embedding_type", 'not "rope": attention has no positions, whatever base the file has')
    return _still(keys, kinds, SSM, "rope_theta", "rope_scaling", "rope_parameters")


@family("lfm2", "lfm2_moe")
def _(keys: Keys) -> PositionSpec:
    """layer_types, or, in older files of LFM2, the numbers of the attention layers."""
    count = keys.whole("num_hidden_layers")
    if keys.family == "lfm2_moe":
        if keys.names("layer_types", None, length=count) is None:
            raise ConfigError(f"{keys.where('layer_types')}: missing; the class assumes nothing and fails without")
        at: Sequence[float] = ()
    else:
        at = keys.numbers("full_attn_idxs", tuple(range(count)))
    return _turning(keys, schedule(keys, lambda n: FULL if n in at else "conv", (FULL, "conv")), CONV)


@family("lfm3")
def _(keys: Keys) -> PositionSpec:
    """Sliding layers turn whole heads fast; full ones turn the faster half of the pairs of a whole head, slowly."""
    kinds = schedule(
        keys, lambda n: FULL if n % 4 == 2 else SLIDING if n and n % 4 == 0 else "conv", (FULL, SLIDING, "conv")
    )
    keys = with_assumed(
        keys,
        {
            SLIDING: {"rope_type": "default", "rope_theta": 10000.0},
            FULL: {"rope_type": "proportional", "rope_theta": 1000000.0, "partial_rotary_factor": 0.5},
        },
    )
    kept = attention_among(keys, kinds, ("conv",), CONV)
    by_kind = {
        kind: rope(keys, d_head=head_width(keys), label=kind, labels=(SLIDING, FULL)) for kind in dict.fromkeys(kept)
    }
    return decoder(keys, None, kinds=kept, by_kind=by_kind)


@family("minimax")
def _(keys: Keys) -> PositionSpec:
    """Every second layer, the first one among them, is full attention that turns; linear attention decays with distance."""
    kinds = schedule(keys, lambda n: RECURRENT if n % 2 else FULL, (FULL, RECURRENT))
    spec = _turning(keys, kinds, "linear attention with a fixed decay for each head")
    window = keys.whole("sliding_window", None)
    return replace(spec, layers=tuple(replace(layer, window=window) for layer in spec.layers))


@family("olmo_hybrid")
def _(keys: Keys) -> PositionSpec:
    """Every fourth layer is attention, the last one where there are fewer. rope_theta null: no positions, as published."""
    count = keys.whole("num_hidden_layers")
    kinds = schedule(keys, lambda n: FULL if n % 4 == 3 or (count < 4 and n == count - 1) else RECURRENT, (FULL, RECURRENT))
    settings = keys.table("rope_scaling") or keys.table("rope_parameters")
    null = "rope_theta" in settings and settings["rope_theta"] is None
    if null or ("rope_theta" in keys.data and keys.data["rope_theta"] is None and not settings.get("rope_theta")):
        keys.find("note", "rope_theta", "null: attention layers have no positions")
        return _still(keys, kinds, DELTA, "rope_theta", "rope_scaling", "rope_parameters")
    return _turning(keys, kinds, DELTA)


@family("recurrent_gemma")
def _(keys: Keys) -> PositionSpec:
    """block_types repeats over the depth; all attention has a window, and half of each head turns."""
    blocks = keys.names("block_types")
    if not blocks:
        raise ConfigError(f"{keys.where('block_types')}: expected at least one of 'recurrent' and 'attention', got none")
    kinds = [
        RECURRENT if blocks[n % len(blocks)] == "recurrent" else SLIDING for n in range(keys.whole("num_hidden_layers"))
    ]
    kept = attention_among(keys, kinds, (RECURRENT,), "gated linear recurrences")
    d_model, n_heads, window = (
        keys.whole("hidden_size"),
        keys.whole("num_attention_heads"),
        keys.whole("attention_window_size"),
    )
    d_head = d_model // n_heads
    if keys.has("head_dim") and keys.whole("head_dim") != d_head:
        keys.find("error", "head_dim", "the class overwrites it with hidden_size / num_attention_heads")
    spec = decoder(
        keys, rope(keys, d_head=d_head, partial=True, partial_default=0.5), kinds=kept, d_head=d_head, length=None
    )
    return replace(spec, layers=tuple(replace(layer, window=window) for layer in spec.layers))


@family("jamba")
def _(keys: Keys) -> PositionSpec:
    """Attention in every attn_layer_period-th layer from attn_layer_offset on, without positions."""
    period, offset = keys.whole("attn_layer_period"), keys.whole("attn_layer_offset", least=0)
    kinds = [FULL if n % period == offset else RECURRENT for n in range(keys.whole("num_hidden_layers"))]
    return _still(keys, kinds, SSM)


@family("nemotron_h")
def _(keys: Keys) -> PositionSpec:
    """Each layer is one of attention, state space model, network; a string of letters says which in published files."""
    letters = {"M": RECURRENT, "E": "moe", "*": FULL, "-": "mlp"}
    pattern, said = keys.text("hybrid_override_pattern", None), keys.names("layers_block_type", None)
    if not said and pattern and not set(pattern) <= set(letters):
        raise ConfigError(
            f"{keys.where('hybrid_override_pattern')}: expected letters of {' '.join(letters)}, got {pattern!r}"
        )
    kinds = [OLD.get(kind, kind) for kind in said or [letters[letter] for letter in pattern or "ME*-"]]
    if keys.whole("num_hidden_layers", len(kinds), least=0) not in (0, len(kinds)):
        keys.find("warning", "num_hidden_layers", f"the list of layers has {len(kinds)}, which counts")
    kept = attention_among(keys, kinds, (RECURRENT, "moe", "mlp"), "state space models or networks")
    return decoder(keys, None, kinds=kept, coordinates=_UNUSED)


@family("zamba")
def _(keys: Keys) -> PositionSpec:
    """Hybrid layers have shared attention over twice the width, without positions."""
    period, offset = keys.whole("attn_layer_period"), keys.whole("attn_layer_offset", least=0)
    assumed = [RECURRENT, RECURRENT, "hybrid"]
    assumed += ["hybrid" if n % period == offset else RECURRENT for n in range(keys.whole("num_hidden_layers") - 3)]
    kinds = schedule(keys, lambda n: assumed[n], ("hybrid", RECURRENT), key="layers_block_type")
    d_head = 2 * keys.whole("hidden_size") // keys.whole("num_attention_heads")
    kept = attention_among(keys, kinds, (RECURRENT,), SSM)
    return decoder(keys, None, kinds=kept, d_head=keys.whole("attention_head_dim", d_head), coordinates=_UNUSED)


@family("zamba2")
def _(keys: Keys) -> PositionSpec:
    """As Zamba; use_mem_rope turns the shared attention's heads, which are twice as wide as hidden_size / heads."""
    assumed = [
        RECURRENT,
        *([RECURRENT] * 5 + ["hybrid"]) * 7,
        *[RECURRENT] * 4,
        "hybrid",
        *[RECURRENT] * 3,
        "hybrid",
        *[RECURRENT] * 2,
    ]
    if not keys.has("layers_block_type") and keys.whole("num_hidden_layers") != len(assumed):
        raise ConfigError(f"{keys.where('layers_block_type')}: missing; the class assumes a list of {len(assumed)} layers")
    kinds = schedule(keys, lambda n: assumed[n], ("hybrid", RECURRENT), key="layers_block_type")
    kept = attention_among(keys, kinds, (RECURRENT,), SSM)
    d_head = 2 * keys.whole("hidden_size") // keys.whole("num_attention_heads")
    length = 16384 if keys.flag("use_long_context", False) else keys.whole("max_position_embeddings")
    if not keys.flag("use_mem_rope", False):
        keys.find("note", "use_mem_rope", "off: attention has no positions, whatever base the file has")
        _nothing_read(keys, "rope_theta", "rope_scaling", "rope_parameters")
        return decoder(keys, None, kinds=kept, d_head=d_head, length=length, coordinates=_UNUSED)
    return decoder(keys, rope(keys, d_head=d_head), kinds=kept, d_head=d_head, length=length)


_UNUSED = "0, 1, 2, … for the cache; attention itself has no positions"


def _turning(keys: Keys, kinds: Sequence[str], why: str, fraction: float | None = None) -> PositionSpec:
    """Attention layers that turn; `fraction` of the head where the family reads partial_rotary_factor."""
    kept = attention_among(keys, kinds, (RECURRENT, "conv"), why)
    d_head = head_width(keys)
    use = rope(keys, d_head=d_head, partial=fraction is not None, partial_default=fraction or 1.0)
    return decoder(keys, use, kinds=kept, d_head=d_head)


def _still(keys: Keys, kinds: Sequence[str], why: str, *ignored: str) -> PositionSpec:
    """Attention layers without positions."""
    kept = attention_among(keys, kinds, (RECURRENT,), why)
    _nothing_read(keys, *ignored)
    return decoder(keys, None, kinds=kept, coordinates=_UNUSED)


def _nothing_read(keys: Keys, *names: str) -> None:
    """Keys that the class takes, and that nothing turns by here: the note says so, no further warning."""
    for name in names:
        keys.get(name, None)
