"""Encoders that look both ways and turn queries and keys: halves are paired in all of them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from posenc.dialects.assumed import with_assumed
from posenc.dialects.errors import ConfigError
from posenc.dialects.family import decoder, family, head_width, parts, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.schedule import FULL, SLIDING, schedule
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight

LABELS = (SLIDING, FULL)


@family("esmc", "eurobert", "gte", "jina_embeddings_v3", "nomic_bert")
def _(keys: Keys) -> PositionSpec:
    """Every layer alike, the whole head turns."""
    kinds = [FULL] * keys.whole("num_hidden_layers")
    return both_ways(decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds))


def both_ways(spec: PositionSpec) -> PositionSpec:
    """The spec with nothing hidden but by its windows."""
    return replace(spec, layers=tuple(replace(layer, causal=False) for layer in spec.layers))


@family("esm")
def _(keys: Keys) -> PositionSpec:
    """position_embedding_type: "rotary" (ESM-2) turns, "absolute" (ESM-1) adds a table that counts as RoBERTa's does."""
    layers = [Layer(causal=keys.flag("is_decoder", False))] * keys.whole("num_hidden_layers")
    kind = keys.text("position_embedding_type", "absolute")
    if kind == "rotary":
        plain = copy(keys)  # the code knows a base and no other setting
        plain.data = {key: value for key, value in keys.data.items() if key not in ("rope_parameters", "rope_scaling")}
        use = rope(plain, d_head=keys.whole("hidden_size") // keys.whole("num_attention_heads"))
        return stack_of(keys, [replace(layer, uses=(use,) if use else ()) for layer in layers])
    if kind != "absolute":
        keys.find("warning", "position_embedding_type", f"{kind!r} is neither 'absolute' nor 'rotary': no positions at all")
        return stack_of(keys, layers, coordinates="none: attention has no positions")
    padding, rows = keys.whole("pad_token_id", None, least=0), keys.whole("max_position_embeddings")
    if padding is None:
        raise ConfigError(f"{keys.where('pad_token_id')}: missing; positions are counted from the row after it")
    if rows < padding + 2:
        raise ConfigError(f"{keys.where('max_position_embeddings')}: {rows} rows leave none after padding row {padding}")
    arguments = (("d_model", keys.whole("hidden_size")), ("max_positions", rows - padding - 1),
                 ("row_offset", padding + 1), ("padding_row", padding))  # fmt: skip
    said_by = (("d_model", keys.said_by("hidden_size")), ("max_positions", keys.said_by("max_position_embeddings")),
               ("row_offset", keys.said_by("pad_token_id")), ("padding_row", keys.said_by("pad_token_id")))  # fmt: skip
    table = Use("encodings.learned.Learned", arguments, said_by,
                weights=(Weight("table", "embeddings.position_embeddings.weight"),))  # fmt: skip
    keys.find("note", "max_position_embeddings", f"rows of the table: the longest sequence has {rows - padding - 1} "
              f"tokens, and position_ids that a caller gives are rows, from {padding + 1}")  # fmt: skip
    return stack_of(keys, layers, embedding=[table], length=rows - padding - 1,
                    coordinates="0, 1, 2, … over the tokens that are not padding")  # fmt: skip


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
        raise ConfigError(f"{keys.where('attention_windows')}: expected {keys.whole('num_hidden_layers')}, one for each "
                          f"layer, got {len(windows)}")  # fmt: skip
    kinds = schedule(keys, lambda n: SLIDING if (windows[n] if windows else (n + 1) % 3) else FULL)
    keys = _bases_of_kinds(keys, kinds)
    d_head = head_width(keys)
    by_kind = {kind: rope(keys, d_head=d_head, label=kind, labels=LABELS) for kind in dict.fromkeys(kinds)}
    return both_ways(_behind(decoder(keys, None, kinds=kinds, by_kind=by_kind), 2 * half + 1))


def _bases_of_kinds(keys: Keys, kinds: tuple[str, ...]) -> Keys:
    """A list rope_theta of older files, one for each layer: of several for one kind the class keeps the last."""
    bases = keys.data.get("rope_theta")
    if not isinstance(bases, list) or keys.has("rope_parameters"):
        both = {SLIDING: {"rope_type": "default", "rope_theta": 10000.0},
                FULL: {"rope_type": "default", "rope_theta": 2560000.0}}  # fmt: skip
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


@family("neomme")
def _(keys: Keys) -> PositionSpec:
    """Rows and columns of images turn pairs in turn, text has the same number for both; a quarter of the head in full
    layers.

    Windows alternate between sliding_window and 1024 among the sliding layers, unless per_layer_config says otherwise.
    """
    count = keys.whole("num_hidden_layers")
    kinds = schedule(keys, lambda n: FULL if (n + 1) % 6 == 0 or n == count - 1 else SLIDING)
    d_head, assumed = keys.whole("head_dim"), {FULL: (1000000.0, 0.25), SLIDING: (10000.0, 1.0)}
    uses: dict[str, Use | None] = {}
    for kind in dict.fromkeys(kinds):
        own = copy(keys)
        own.facts = keys.facts | {"base": assumed[kind][0]}
        uses[kind] = rope(own, d_head=d_head, label=kind, labels=LABELS, partial=True, partial_default=assumed[kind][1],
                          maps=(("cycling", (("order", (0, 1)),)),))  # fmt: skip
    spec = decoder(keys, None, kinds=kinds, by_kind=uses, d_head=d_head,
                   coordinates="(row, column); text counts 0, 1, 2, … with both the same")  # fmt: skip
    halves = _halves(keys, kinds)
    layers = [replace(layer, window=2 * half + 1 if half is not None else None)
              for layer, half in zip(spec.layers, halves, strict=True)]  # fmt: skip
    return both_ways(replace(spec, layers=tuple(layers)))


def _halves(keys: Keys, kinds: tuple[str, ...]) -> list[int | None]:
    """How far each layer sees to either side; None: all."""
    short, said = (
        keys.whole("sliding_window", None),
        keys.table("per_layer_config") if keys.has("per_layer_config") else None,
    )
    found: list[int | None] = []
    for number, kind in enumerate(kinds):
        seen = sum(before == SLIDING for before in kinds[:number])
        half = (1024 if seen % 2 else short) if kind == SLIDING else None
        if said is not None:
            own: Any = next((inner for key, inner in said.items() if str(key).isdigit() and int(key) == number), {})
            half = own.get("sliding_window", short) if isinstance(own, Mapping) else short
        if half is not None and (type(half) is not int or half < 1):
            raise ConfigError(
                f"{keys.where('per_layer_config')}.{number}.sliding_window: expected a whole number, got {half!r}"
            )
        found.append(half)
    return found


@family("timesfm2_5")
def _(keys: Keys) -> PositionSpec:
    """Turns causal attention over patches of a time series; queries and keys are normalised after it."""
    keys.find(
        "note", "rope_parameters", "queries and keys are normalised after the rotation, which takes any magnitude away"
    )
    d_head = keys.whole("head_dim")
    return decoder(keys, rope(keys, d_head=d_head), kinds=[FULL] * keys.whole("num_hidden_layers"), d_head=d_head,
                   coordinates="0, 1, 2, … over patches; padding in front counts down from -1")  # fmt: skip


@family("timesfm")
def _(keys: Keys) -> PositionSpec:
    """No positions in causal attention; sinusoids are added to the patches where use_positional_embedding says so."""
    layers = [Layer()] * keys.whole("num_hidden_layers")
    d_head = keys.whole("head_dim")
    if not keys.flag("use_positional_embedding", False):
        return stack_of(
            keys, layers, length=None, d_head=d_head, coordinates="none: attention is causal, without positions"
        )
    d_model = keys.whole("hidden_size")
    shortest, longest = keys.number("min_timescale"), keys.number("max_timescale")
    if shortest != 1:
        keys.find("warning", "min_timescale", "multiplies the frequencies where it should divide them: the fastest pair "
                  f"turns by {shortest:g} for each patch, not by 1/{shortest:g}")  # fmt: skip
    if d_model % 2:
        raise ConfigError(f"{keys.where('hidden_size')}: {d_model} is odd: the code would add a token, not a channel")
    waves = Use("encodings.sinusoidal.Sinusoidal", (("d_model", d_model), ("base", longest / shortest),
                ("layout", "sin_cos"), ("denominator", "d/2-1"), ("scale", shortest)),
                (("base", "max_timescale / min_timescale"), ("scale", keys.said_by("min_timescale")),
                 ("layout", "constant of the code"), ("d_model", keys.said_by("hidden_size"))))  # fmt: skip
    return stack_of(keys, layers, embedding=[waves], length=None, d_head=d_head,
                    coordinates="0, 1, 2, … over patches from the first that is not padding; those before it count on from "
                    "the end, modulo the number of patches")  # fmt: skip


@family("muse_glimmer_assistant")
def _(keys: Keys) -> PositionSpec:
    """A draft model: a block of new tokens reads what the large model made of the context, and itself both ways."""
    kinds = schedule(keys, lambda n: SLIDING)
    keys.find("note", "block_size", "keys are those of the context and then of the block, queries of the block alone, at "
              "the last of the positions")  # fmt: skip
    spec = decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds)
    return both_ways(_behind(spec, 2 * keys.whole("sliding_window") + 1))
