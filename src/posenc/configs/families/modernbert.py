"""ModernBERT, NomicBERT and similar bidirectional encoders: RoPE, half pairs."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.assumed import settings_by_kind, with_assumed
from posenc.configs.errors import ConfigError
from posenc.configs.family import bidirectional, decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.schedule import FULL, SLIDING, schedule
from posenc.configs.spec import PositionSpec


@family("jina_embeddings_v3")
def jina_embeddings_v3(keys: Keys) -> PositionSpec:
    """NomicBERT's RoPE; max_position_embeddings still counts the rows of XLM-RoBERTa's table before position 0."""
    before = keys.whole("pad_token_id", 1, least=0) + 1
    rows = keys.whole("max_position_embeddings")
    usable = rows - before if rows > before else rows
    keys.note(
        "max_position_embeddings",
        say("{rows} rows of XLM-RoBERTa's table are {usable} positions", rows=rows, usable=usable),
    )
    return replace(nomic_bert(keys), trained_length=usable)


@family("nomic_bert", "esmc", "eurobert", "gte")
def nomic_bert(keys: Keys) -> PositionSpec:
    """RoPE over the whole head in every layer."""
    kinds = [FULL] * keys.whole("num_hidden_layers")
    return bidirectional(decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds))


LABELS = (SLIDING, FULL)


@family("modernbert")
def modernbert(keys: Keys) -> PositionSpec:
    """Every third layer is full, the others see local_attention tokens and the query; each kind has its own base."""
    half = keys.whole("sliding_window", None)
    half = keys.whole("local_attention") // 2 if half is None else half
    return bidirectional(_modernbert(keys, 2 * half + 1))


@family("modernbert-decoder")
def modernbert_decoder(keys: Keys) -> PositionSpec:
    """As ModernBERT, but causal: a window of local_attention / 2, whatever sliding_window is."""
    window = keys.whole("local_attention") // 2
    if keys.has("sliding_window") and keys.whole("sliding_window") != window:
        keys.error("sliding_window", say("the class uses local_attention / 2 = {window}", window=window))
    keys.get("sliding_window", None)
    return _modernbert(keys, window)


def _modernbert(keys: Keys, window: int) -> PositionSpec:
    settings_by_kind(keys, LABELS, "rope_parameters")
    every = keys.whole("global_attn_every_n_layers", 3)
    kinds = schedule(keys, lambda n: SLIDING if n % every else FULL)
    d_head = keys.whole("hidden_size") // keys.whole("num_attention_heads")
    old = {FULL: "global_rope_theta", SLIDING: "local_rope_theta"}
    by_kind = {
        kind: rope(keys, d_head=d_head, label=kind, labels=LABELS, base_key=old[kind]) for kind in dict.fromkeys(kinds)
    }
    for kind in LABELS:
        keys.number(old[kind], None)  # read for both kinds, whichever layers there are
    return with_window(decoder(keys, None, kinds=kinds, by_kind=by_kind, d_head=d_head), window)


def with_window(spec: PositionSpec, window: int) -> PositionSpec:
    layers = tuple(replace(layer, window=window if layer.kind == SLIDING else None) for layer in spec.layers)
    return replace(spec, layers=layers)


@family("ultrabert")
def ultrabert(keys: Keys) -> PositionSpec:
    """Every third layer is full, the others see sliding_window tokens on each side; each kind has its own base."""
    windows = keys.get("attention_windows", None) or ()
    if not isinstance(windows, (list, tuple)) or any(w is not None and (type(w) is not int or w < 0) for w in windows):
        raise ConfigError(
            f"{keys.where('attention_windows')}: expected a whole number or null for each layer, got {windows}"
        )
    if len({w for w in windows if w}) > 1:
        keys.error("attention_windows", say("the class uses the first of these windows for all layers that have one"))
    half = next((w for w in windows if w), None) or keys.whole("sliding_window")
    if windows and len(windows) != keys.whole("num_hidden_layers"):
        raise ConfigError(
            f"{keys.where('attention_windows')}: expected {keys.whole('num_hidden_layers')}, one for each "
            f"layer, got {len(windows)}"
        )
    kinds = schedule(keys, lambda n: SLIDING if (windows[n] if windows else (n + 1) % 3) else FULL)
    keys = _bases_of_kinds(keys, kinds)
    settings_by_kind(keys, LABELS)
    d_head = head_width(keys)
    by_kind = {kind: rope(keys, d_head=d_head, label=kind, labels=LABELS) for kind in dict.fromkeys(kinds)}
    return bidirectional(with_window(decoder(keys, None, kinds=kinds, by_kind=by_kind), 2 * half + 1))


def _bases_of_kinds(keys: Keys, kinds: tuple[str, ...]) -> Keys:
    """rope_theta as a list, one base per layer (old files): the class keeps the last base of each kind."""
    bases = keys.data.get("rope_theta")
    if not isinstance(bases, list) or keys.has("rope_parameters"):
        both = {
            SLIDING: {"rope_type": "default", "rope_theta": 10000.0},
            FULL: {"rope_type": "default", "rope_theta": 2560000.0},
        }
        return with_assumed(keys, both)
    numbers = dict(zip(kinds, keys.numbers("rope_theta"), strict=False))
    if any(numbers[kind] != base for kind, base in zip(kinds, bases, strict=False)):
        keys.error("rope_theta", say("layers of one kind have different bases: the class uses the last one for all"))
    settings = {kind: {"rope_type": "default", "rope_theta": base} for kind, base in numbers.items()}
    return keys.replaced({"rope_parameters": settings}, without=("rope_theta",))
