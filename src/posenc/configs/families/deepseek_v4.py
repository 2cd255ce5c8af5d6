"""DeepSeek-V4: keys and values are one tensor. It is rotated, and outputs are rotated back; compressed keys are added.

    o_i = R(p_i)^T · Σ_j a_ij · R(p_j) k_j      so the output depends on p_j - p_i only

Sliding-window layers use the rotary settings "main", the others "compress". A compressed key stands for a block of tokens.
It is rotated by the index of the block's first token, whatever the position ids are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.families.deepseek_v3 import wide_enough
from posenc.configs.family import decoder, family
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use

LABELS = ("main", "compress")

SLIDING, SPARSE, HEAVY = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"

RATIOS = {0: SLIDING, 4: SPARSE, 128: HEAVY}


@family("deepseek_v4")
def deepseek_v4(keys: Keys) -> PositionSpec:
    count, d_head = keys.whole("num_hidden_layers"), keys.whole("head_dim")
    keys, moved = _nested(keys, d_head)
    both: dict[str, Any] = {"layout": "interleaved", "trailing": True, "partial": True, "labels": LABELS}
    uses: dict[str, Use] = {}
    for label in LABELS:
        base_key = "rope_theta" if label == "main" else "compress_rope_theta"
        use = rope(keys, d_head=d_head, label=label, base_key=base_key, sides=("query", "key", "value", "output"), **both)
        if use is None:
            raise ConfigError(f"{keys.where('rope_parameters')}.{label}: null; both kinds of layers need rotary settings")
        uses[label] = use.with_said_by(moved.get(label, {}))
    kinds = _kinds(keys, count)
    keys.note(
        "num_key_value_heads",
        say(
            "keys and values are the same rotated tensor, and outputs are rotated back by the query's "
            "position: a kernel that rotates only queries and keys is not enough"
        ),
    )
    keys.warning(
        "compress_rates",
        say(
            "compressed keys are rotated by their index in the sequence, but their causal mask reads "
            "position ids: the two disagree with left padding"
        ),
    )
    turning = {kind: uses["main" if kind == SLIDING else "compress"] for kind in (SLIDING, SPARSE, HEAVY)}
    spec = decoder(keys, None, kinds=kinds, by_kind=dict(turning), d_head=d_head)
    window = keys.whole("sliding_window")
    layers = tuple(replace(layer, window=window) for layer in spec.layers)
    return replace(spec, layers=layers, parts=(_indexer(keys, kinds, uses["compress"]),))


def _kinds(keys: Keys, count: int) -> tuple[str, ...]:
    kinds = keys.names("layer_types", None)
    if kinds is None and (ratios := keys.numbers("compress_ratios", None)) is not None:
        wrong = [ratio for ratio in ratios if ratio not in RATIOS]
        if wrong:
            raise ConfigError(f"{keys.where('compress_ratios')}: expected 0, 4 or 128 for each layer, got {wrong[0]}")
        kinds = tuple(RATIOS[ratio] for ratio in ratios)
    if kinds is None:
        kinds = (HEAVY,) * min(count, 2) + tuple(SPARSE if n % 2 else HEAVY for n in range(max(count - 2, 0)))
    if len(kinds) < count or any(kind not in RATIOS.values() for kind in kinds):
        raise ConfigError(
            f"{keys.where('layer_types')}: expected {count} of {', '.join(RATIOS.values())}, got {len(kinds)}"
        )
    return tuple(kinds[:count])


def _nested(keys: Keys, d_head: int) -> tuple[Keys, dict[str, dict[str, str]]]:
    """Flat settings apply to "compress"; "main" uses rope_theta and is never scaled.

    Also returns the keys that gave each number.
    """
    where = "rope_scaling" if keys.table("rope_scaling") else "rope_parameters"
    settings = keys.table(where)
    if all(isinstance(settings.get(label), dict) for label in LABELS):
        keys.number("partial_rotary_factor", None)  # both are in the settings already where these are nested
        keys.whole("qk_rope_head_dim", None)
        return keys, {}
    fraction, key = keys.number("partial_rotary_factor", None), "partial_rotary_factor"
    if fraction is None:
        turning, key = keys.whole("qk_rope_head_dim", None), "qk_rope_head_dim"
        fraction = 64 / 512 if turning is None else turning / d_head
    origin = {"rotary_dim": keys.said_by(key) if keys.has(key) else "constant of the class"}
    main: dict[str, Any] = {"rope_theta": keys.number("rope_theta"), "partial_rotary_factor": fraction}
    flat = {key: value for key, value in settings.items() if key not in ("rope_theta", *LABELS)}
    compress = flat | {"rope_theta": keys.number("compress_rope_theta"), "partial_rotary_factor": fraction}
    if compress.get("rope_type", compress.get("type")) == "yarn":
        compress.setdefault("attention_factor", 1.0)
        keys.note(
            where, say("yarn scales the compressed layers only; cos and sin are not scaled unless attention_factor is set")
        )
    nested = keys.replaced({"rope_parameters": {"main": main, "compress": compress}}, without=("rope_scaling",))
    return nested, {
        "main": origin | {"base": keys.said_by("rope_theta")},
        "compress": origin | {"base": keys.said_by("compress_rope_theta")},
    }


def _indexer(keys: Keys, kinds: tuple[str, ...], use: Use) -> PositionSpec:
    """Selects compressed keys in sparse layers.

    Its queries rotate by position, its keys by the first index of their block.
    """
    width = wide_enough(keys, use)
    arguments = {**dict(use.arguments), "d_head": width, "sides": ("query", "key")}
    turned = replace(use, arguments=tuple(arguments.items()))
    layers = tuple(
        Layer((turned,) if kind == SPARSE else (), "indexer" if kind == SPARSE else "no_indexer") for kind in kinds
    )
    return PositionSpec(keys.family, part="indexer", layers=layers, d_head=width, n_heads=keys.whole("index_n_heads"))
