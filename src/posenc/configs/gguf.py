"""The positions of a GGUF file as a PositionSpec: what llama.cpp computes.

    ω_i = base^(-2i/d) / factor_i       rope_freqs: llama3's scaling, as one number for each pair

The file names an architecture and its numbers; what follows from the architecture alone is in `llama_cpp`. Where the model
itself has halves and the architecture neighbours (Llama), the converter permutes the rows of q and k.
"""

from __future__ import annotations

import glob
import math
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from posenc.configs import gguf_file, llama_cpp
from posenc.configs.coordinates import THREE_AXES
from posenc.configs.errors import ConfigError
from posenc.configs.gguf_file import GGUF
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Rotation, Use
from posenc.frequencies import Arithmetic, Frequencies, mscale_of

PERMUTES = "llama.cpp's converter permutes q and k"
CLASS = "GGUF"
LEAST, NEVER = 1e-6, 1e20  # factors of pairs: smaller ones are slips, larger ones stop a pair
WARM = {  # architectures whose file has a temperature: the key of its step
    "deepseek2": "attention.temperature_length",
    "mistral3": "rope.scaling.original_context_length",
    "mistral4": "attention.temperature_length",
}
# In place of the class of transformers that may have the name of an architecture.
NO_CLASS: dict[str, Any] = {"class": "", "names": {}, "defaults": {}, "parts": {}, "base": None}
MOST_PARTS = 1024  # files of a split model


def is_gguf(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return path.suffix == ".gguf" or file.read(4) == b"GGUF"


def spec_of_gguf(path: str | PathLike[str]) -> PositionSpec:
    """The positional encoding of a GGUF model.

    Raises ConfigError for a bad file, an unknown kind of scaling, and an architecture that is not known or has no positions
    to read.
    """
    file, absent = _whole(Path(path), gguf_file.read_gguf(Path(path)))
    architecture = _architecture(file)
    start = f"{architecture}."
    keys = Keys({name.removeprefix(start): value for name, value in file.keys.items()}, architecture, architecture)
    keys.facts = dict(NO_CLASS)
    if absent:
        count = file.keys["split.count"]
        keys.warning(
            "split.count",
            say(
                "only {present} of its {count} parts are here: rotary factors in the others are not read",
                present=count - absent,
                count=count,
            ),
        )
    if architecture in llama_cpp.BUCKETS:
        return _t5(keys)
    about: dict[str, Any] = {
        "config_class": CLASS,
        "d_model": keys.whole("embedding_length"),
        "trained_length": keys.whole("context_length", None),
    }
    if architecture in llama_cpp.RECURRENT:
        return _finished(PositionSpec(architecture, coordinates=llama_cpp.RECURRENCE, **about), keys)
    use, sliding = _uses(file, keys, architecture)
    spec = PositionSpec(
        architecture,
        layers=tuple(_tempered(keys, architecture, _layers(keys, architecture, use, sliding)))[: _run(keys)],
        n_heads=_heads(keys),
        d_head=dict(use.arguments).get("d_head") if use else None,
        **about,
    )
    if use and use.rotation and _has_axes(use.rotation):
        spec = replace(spec, coordinates=THREE_AXES)
    return _finished(spec, keys)


def _whole(path: Path, first: GGUF) -> tuple[GGUF, int]:
    """The first file of a split model with the factors of the others beside it, and how many are not there.

    Raises ConfigError for another part than the first, and for a part that is cut short.
    """
    count, number = first.keys.get("split.count"), first.keys.get("split.no")
    if not isinstance(count, int) or not isinstance(number, int) or count < 2:
        return first, 0
    if number > 0:
        raise ConfigError(f"part {number + 1} of {count}; give the first, which has the metadata")
    start, ending = path.name.partition("-00001-of-")[::2]
    others = sorted(path.parent.glob(f"{glob.escape(start)}-*-of-{glob.escape(ending)}"))[:MOST_PARTS] if ending else []
    factors = dict(first.factors)
    for other in others:
        if other != path:
            factors |= gguf_file.read_gguf(other).factors
    return replace(first, factors=factors), max(0, count - max(1, len(others)))


def _architecture(file: GGUF) -> str:
    """The architecture that the file names. Raises ConfigError for one whose positions are not known."""
    where = "general.architecture"
    if where not in file.keys:
        raise ConfigError(f"{where}: missing; it names the keys of the others")
    architecture = file.keys[where]
    if not isinstance(architecture, str):
        got = "a long list" if architecture is None else repr(architecture)
        raise ConfigError(f"{where}: expected a string such as 'llama', got {got[:60]}")
    if architecture in llama_cpp.REFUSED:
        raise ConfigError(f"{where}: {architecture!r} is not read: {llama_cpp.REFUSED[architecture]}")
    known = (
        llama_cpp.NEIGHBOURS,
        llama_cpp.HALVES,
        llama_cpp.ALIBI,
        llama_cpp.LEARNED,
        llama_cpp.BUCKETS,
        llama_cpp.RECURRENT,
        llama_cpp.NO_POSITIONS,
    )
    if not any(architecture in names for names in known):
        raise ConfigError(
            f"{where}: {architecture[:60]!r} is not known; which channels form a pair depends on llama.cpp's code for it: "
            "give the config.json of the model"
        )
    return architecture


def _finished(spec: PositionSpec, keys: Keys) -> PositionSpec:
    return replace(spec, remarks=tuple(keys.remarks), keys=tuple(keys.read.items()))


def _has_axes(rotation: Rotation) -> bool:
    return any(name.endswith("sections") for name, _ in rotation.maps)


# Layers.


def _heads(keys: Keys) -> int | None:
    """The number of query heads; None if it differs between layers."""
    counts = keys.get("attention.head_count", None)
    if isinstance(counts, list):
        return int(counts[0]) if counts and len(set(counts)) == 1 else None
    count: int | None = keys.whole("attention.head_count", None)
    return count


def _run(keys: Keys) -> int:
    """How many layers predict the next token; those after them, of block_count, predict further tokens only."""
    count, further = keys.whole("block_count"), keys.whole("nextn_predict_layers", 0, least=0)
    if further >= count:
        raise ConfigError(f"{keys.where('nextn_predict_layers')}: expected less than block_count={count}, got {further}")
    return int(count - further)


def _layers(keys: Keys, architecture: str, use: Use | None, sliding: Use | None) -> list[Layer]:
    """Every layer: full, with the window, in chunks, or recurrent."""
    count = keys.whole("block_count")
    causal = keys.flag("attention.causal", architecture not in llama_cpp.BOTH_WAYS)
    full = Layer((use,) if use else (), causal=causal)
    if architecture in llama_cpp.LEARNED:  # added to the embeddings
        return [full, *[replace(full, uses=())] * (count - 1)]
    if architecture == "llama4" and keys.whole("attention.sliding_window", None, least=0) != 0:
        chunked = replace(full, kind="chunked_attention", chunk=llama_cpp.CHUNK)
        layers = [chunked if (n + 1) % llama_cpp.CHUNKED_EVERY else full for n in range(count)]
    else:
        layers = _windowed(keys, architecture, full, sliding, count)
    every = llama_cpp.NO_ROTATION_EVERY.get(architecture)
    if architecture == "llama4" and keys.whole("attention.sliding_window", None, least=0) == 0:
        every = count
    return [
        Layer(kind="linear_attention")
        if recurrent
        else replace(layer, uses=())
        if every and (n + 1) % every == 0
        else layer
        for n, (layer, recurrent) in enumerate(zip(layers, _recurrent(keys, architecture, count), strict=True))
    ]


def _tempered(keys: Keys, architecture: str, layers: list[Layer]) -> list[Layer]:
    """Queries scaled by their position: Llama 4's in layers without rotation, of other architectures in all."""
    arguments: dict[str, Any] = {}
    if architecture == "llama4" and keys.whole("attention.sliding_window", None, least=0) != 0:
        arguments = llama_cpp.WARMTH
    elif scale := keys.number("attention.temperature_scale", None, positive=False) if architecture in WARM else None:
        key = WARM[architecture]
        length = keys.whole(key, None) or keys.whole("context_length", None)
        if length is None:
            raise ConfigError(f"{keys.where(key)}: missing; queries are scaled by it")
        arguments = {"scale": _short(scale), "trained_length": length, "offset": 0}
    if not arguments:
        return layers
    said_by = dict.fromkeys(arguments, "constant of the code")
    if architecture in WARM:
        said_by |= {
            "scale": keys.said_by("attention.temperature_scale"),
            "trained_length": keys.said_by(WARM[architecture]),
        }
    warm = Use("encodings.bases.temperature.FloorLogTemperature", tuple(arguments.items()), tuple(said_by.items()))
    return [
        replace(layer, uses=(*layer.uses, warm)) if architecture in WARM or not layer.uses else layer for layer in layers
    ]


def _recurrent(keys: Keys, architecture: str, count: int) -> Sequence[bool]:
    """Layers that are not attention: those without heads for keys, or all but every n-th."""
    heads = keys.get("attention.head_count_kv", None)
    if isinstance(heads, list) and len(heads) == count:
        return [number == 0 for number in heads]
    every = keys.whole("full_attention_interval", llama_cpp.FULL_EVERY.get(architecture))
    return [bool(every) and (n + 1) % every != 0 for n in range(count)]


def _windowed(keys: Keys, architecture: str, full: Layer, use: Use | None, count: int) -> list[Layer]:
    """The layers with and without the window, as the file's pattern or llama.cpp's says."""
    window = keys.whole("attention.sliding_window", None, least=0)
    if not window:
        return [full] * count
    if architecture in llama_cpp.SYMMETRIC:
        window = 2 * (window // 2) + 1
    sliding = replace(full, uses=(use,) if use else (), kind="sliding_attention", window=window)
    code, pattern = llama_cpp.WINDOWS.get(architecture), keys.get("attention.sliding_window_pattern", None)
    if isinstance(pattern, list) and len(pattern) == count:
        slides = [bool(flag) for flag in pattern]
    elif isinstance(pattern, int) and not isinstance(pattern, bool) and pattern > 0:
        first = code is not None and code.full_first
        slides = [llama_cpp.Windows(pattern, first).slides(n) for n in range(count)]
    elif code is not None:
        slides = [code.slides(n) for n in range(count)]
    else:
        keys.note(
            "attention.sliding_window",
            say("not read: llama.cpp's code for {architecture} has no windows", architecture=architecture),
        )
        return [full] * count
    if code is not None and code.only and any(slides):
        full = replace(full, uses=())
    return [sliding if flag else full for flag in slides]


# Encodings.


def _uses(file: GGUF, keys: Keys, architecture: str) -> tuple[Use | None, Use | None]:
    """The encoding of full layers, and that of layers with a window."""
    if architecture in llama_cpp.NO_POSITIONS or not keys.flag("rope.scaling.finetuned", True):
        return None, None
    most = keys.number("attention.max_alibi_bias", None, positive=False)
    by_size = llama_cpp.ALIBI_BY_SIZE.get(architecture) == keys.whole("block_count")
    if architecture in llama_cpp.ALIBI or most or by_size:
        arguments: tuple[tuple[str, Any], ...] = (("n_heads", keys.whole("attention.head_count")),)
        arguments += (("bias_max", most),) if most not in (None, 0.0, 8.0) else ()
        use = Use("encodings.alibi.ALiBi", arguments, (("n_heads", keys.said_by("attention.head_count")),))
        return use, use
    if architecture in llama_cpp.LEARNED:
        rows = keys.whole("context_length")
        sources = (("d_model", keys.said_by("embedding_length")), ("max_positions", keys.said_by("context_length")))
        arguments = (("d_model", keys.whole("embedding_length")), ("max_positions", rows))
        return Use("encodings.learned.Learned", arguments, sources), None
    code = llama_cpp.WINDOWS.get(architecture)
    base = keys.number("rope.freq_base_swa", code.base if code else None)
    full = _rope(keys, architecture, _rotation(file, keys, _width(keys, "rope.dimension_count", "attention.key_length")))
    if base is None and not (code and code.unscaled):
        return full, full
    width = keys.whole("rope.dimension_count_swa", keys.whole("attention.key_length_swa", None)) or _width(
        keys, "rope.dimension_count", "attention.key_length"
    )
    rotation = Rotation(width, base if base is not None else _base(keys))
    sliding = _rope(keys, architecture, rotation, "attention.key_length_swa")
    origin = keys.said_by("rope.freq_base_swa") if keys.has("rope.freq_base_swa") else "constant of the code"
    return full, sliding if base is None else sliding.with_said_by({"base": origin})


def _d_head(keys: Keys, key: str = "attention.key_length") -> int:
    """The channels of a head; of latent attention those before its keys are compressed, by which llama.cpp scales."""
    size = keys.whole("attention.key_length_mla", None) or keys.whole(key, None) or keys.whole("attention.key_length", None)
    if size:
        return int(size)
    heads = _heads(keys)
    if not heads or keys.whole("embedding_length") % heads:
        raise ConfigError(f"{keys.where('attention.key_length')}: missing, and attention.head_count does not give it")
    return int(keys.whole("embedding_length") // heads)


def _width(keys: Keys, key: str, head: str) -> int:
    """The channels that rotate."""
    d_head, width = _d_head(keys, head), keys.whole(key, None)
    if width is not None and (width > d_head or width % 2):
        raise ConfigError(f"{keys.where(key)}: expected an even number up to {d_head}, the width of a head, got {width}")
    return int(width or d_head)


def _base(keys: Keys) -> float:
    return float(keys.number("rope.freq_base", 10000.0))


def _rope(keys: Keys, architecture: str, rotation: Rotation, head: str = "attention.key_length") -> Use:
    said_by = {"base": keys.said_by("rope.freq_base"), "rotary_dim": keys.said_by("rope.dimension_count")}
    layout = "interleaved" if architecture in llama_cpp.NEIGHBOURS and not _has_axes(rotation) else "half"
    permuted = architecture in llama_cpp.PERMUTED or (architecture in llama_cpp.NEIGHBOURS and layout == "half")
    said_by["layout"] = PERMUTES if permuted else f"llama.cpp's code for {architecture}"
    arguments: tuple[tuple[str, Any], ...] = (
        ("d_head", _d_head(keys, head)),
        ("layout", layout),
        ("frequencies", rotation),
    )
    arguments += (("trailing", True),) if architecture in llama_cpp.LAST_CHANNELS else ()
    return Use("encodings.rope.RoPE", arguments, tuple(said_by.items()))


def _rotation(file: GGUF, keys: Keys, width: int) -> Rotation:
    base, length = _base(keys), keys.whole("context_length", None)
    kind = keys.text("rope.scaling.type", "linear", among=("none", "linear", "yarn", "longrope"))
    factor = keys.number("rope.scaling.factor", None) or keys.number("rope.scale_linear", None)
    original = keys.whole("rope.scaling.original_context_length", None) or length
    for name, factors in file.factors.items():
        if len(factors) != width // 2 or not all(math.isfinite(factor) and factor >= LEAST for factor in factors):
            expected = f"expected a number from {LEAST:g} for each of {width // 2} pairs"
            raise ConfigError(f"{name}: {expected}, got {len(factors)} numbers from {min(factors, default=0.0):g}")
    attention = _short(keys.number("rope.scaling.attn_factor", 1.0))  # of cos and sin, whatever the scaling
    if file.factors.keys() & {"rope_factors_long", "rope_factors_short"}:
        if original is None or length is None:
            raise ConfigError(f"{keys.where('context_length')}: missing; LongRoPE's factors need it")
        plain = (1.0,) * (width // 2)  # of a set that the file does not have
        parameters: dict[str, Any] = {
            f"{side}_factor": file.factors.get(f"rope_factors_{side}", plain) for side in ("short", "long")
        }
        parameters |= {"trained_length": original, "factor": length / original, "attention_factor": attention}
        return _kept(width, base, "longrope", parameters)
    if "rope_freqs" in file.factors:
        return Rotation(width, base, "configs.gguf.divided", (("factors", file.factors["rope_freqs"]),))
    if kind == "linear" and factor not in (None, 1.0):
        return Rotation(width, base, "linear", (("factor", factor),))
    if kind == "yarn":
        if factor is None or original is None:
            missing = "rope.scaling.factor" if factor is None else "rope.scaling.original_context_length"
            raise ConfigError(f"{keys.where(missing)}: missing; yarn needs it")
        return _yarn(keys, width, base, factor, original, attention)
    return Rotation(width, base, maps=_axes(keys, width // 2))


def _yarn(keys: Keys, width: int, base: float, factor: float, original: int, attention: float) -> Rotation:
    """YaRN as llama.cpp computes its two magnitudes (src/llama-context.cpp; src/models/deepseek2.cpp).

    cos and sin     mscale_of(factor, m) / mscale_of(factor, w)   w = yarn_log_multiplier, m = 1; deepseek2: m = w
    softmax         (cos and sin · (1 + 0.1·w·ln factor))², of latent attention
    """
    share = keys.number("rope.scaling.yarn_ext_factor", 1.0) if keys.family in llama_cpp.EXTRAPOLATED else 1.0
    if share != 1:
        raise ConfigError(
            f"{keys.where('rope.scaling.yarn_ext_factor')}: expected 1, fast pairs that are not scaled, got {share:g}"
        )
    betas = {f"beta_{side}": keys.number(f"rope.scaling.yarn_beta_{side}", None) for side in ("fast", "slow")}
    parameters: dict[str, Any] = {"factor": factor, "trained_length": original}
    if keys.family in llama_cpp.BETAS:
        parameters |= betas
    else:
        for side, default in (("fast", 32.0), ("slow", 1.0)):
            if betas[f"beta_{side}"] not in (None, default):
                keys.warning(
                    f"rope.scaling.yarn_beta_{side}",
                    say("not read: llama.cpp's code for {family} uses {default:g}", family=keys.family, default=default),
                )
    unit = llama_cpp.LOG_MULTIPLIER.get(keys.family)
    written = keys.number("rope.scaling.yarn_log_multiplier", None, positive=False) if unit else None
    if written is not None and written < 0:
        raise ConfigError(f"{keys.where('rope.scaling.yarn_log_multiplier')}: expected 0 or more, got {written:g}")
    weight = _short(written / unit) if unit and written else 0.0
    if weight:
        unit_weight = weight if keys.family == "deepseek2" else 1.0
        attention *= mscale_of(factor, unit_weight) / mscale_of(factor, weight) if weight != unit_weight else 1.0
        parameters["attention_factor"] = attention
    elif attention != 1:
        attention *= mscale_of(factor)
        parameters["attention_factor"] = attention
    else:
        attention = mscale_of(factor)
    rotation = _kept(width, base, "yarn", parameters)
    if keys.family not in llama_cpp.SCALED_SOFTMAX or factor <= 1:
        return rotation
    more = mscale_of(factor, weight) if weight else 1.0
    grown = weight if attention == 1 else (attention * more - 1) / (0.1 * math.log(factor))
    return (
        replace(rotation, maps=(("softmax_mscale", (("factor", factor), ("mscale_all_dim", grown))),))
        if grown
        else rotation
    )


def _short(number: float) -> float:
    """The shortest decimal number of seven digits: files hold fp32."""
    return float(f"{number:.7g}")


def _axes(keys: Keys, pairs: int) -> tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]:
    """Sections of time, row and column, of models that read three coordinates."""
    sizes_listed = keys.wholes("rope.dimension_sections", None, least=0)
    if sizes_listed is None or sum(size > 0 for size in sizes_listed) < 2:
        return ()
    sizes = tuple(sizes_listed[:3])
    if sum(sizes) != pairs:
        where = keys.where("rope.dimension_sections")
        raise ConfigError(f"{where}: expected sections that sum to {pairs} pairs, got {list(sizes_listed)}")
    how = "interleaved_sections" if keys.family in llama_cpp.INTERLEAVED_AXES else "sections"
    return ((how, (("sizes", sizes),)),)


def _kept(width: int, base: float, kind: str, options: dict[str, Any]) -> Rotation:
    return Rotation(width, base, kind, tuple(sorted((name, value) for name, value in options.items() if value is not None)))


def divided(width: int, base: float, *, arithmetic: Arithmetic, factors: tuple[float, ...]) -> Frequencies:
    """base^(-2i/d) / factor_i; a factor above 1e20 stops a pair (Gemma 4).

    Raises ValueError unless there is a positive factor for each pair.
    """
    unscaled = Rotation(width, base).frequencies(arithmetic).at_length(1)
    if len(factors) != len(unscaled) or not all(factor > 0 for factor in factors):
        raise ValueError(
            f"rope_freqs: expected a positive factor for each of {len(unscaled)} pairs, got {len(factors)} numbers"
        )
    values = tuple(0.0 if factor > NEVER else value / factor for value, factor in zip(unscaled, factors, strict=True))
    return replace(unscaled, values=values, base=None, values_from=f"{unscaled.values_from}, divided by rope_freqs")


# T5.


def _t5(keys: Keys) -> PositionSpec:
    """Encoder and decoder with a learned bias for each bucket of distance; a lone encoder for t5encoder."""
    heads, d_head = keys.whole("attention.head_count"), _d_head(keys)
    counts = {"encoder": keys.whole("block_count")}
    if keys.family == "t5":
        counts["decoder"] = keys.whole("decoder_block_count", counts["encoder"])
    parts = []
    for side, count in counts.items():
        arguments = (
            ("n_heads", heads),
            ("n_buckets", keys.whole("attention.relative_buckets_count", least=2)),
            ("max_distance", llama_cpp.FARTHEST),
            ("bidirectional", side == "encoder"),
            ("scale", 1.0),
        )
        said_by = dict.fromkeys(("max_distance", "bidirectional", "scale"), "constant of the code")
        said_by |= {"n_heads": keys.said_by("attention.head_count")}
        said_by |= {"n_buckets": keys.said_by("attention.relative_buckets_count")}
        use = Use("encodings.t5.T5", arguments, tuple(said_by.items()))
        layers = (Layer((use,), causal=side == "decoder"),) * count
        sizes = {"d_model": keys.whole("embedding_length"), "n_heads": heads, "d_head": d_head}
        length = keys.whole("context_length", None)
        parts.append(
            PositionSpec(keys.family, part=side, layers=layers, trained_length=length, config_class=CLASS, **sizes)
        )
    return _finished(PositionSpec(keys.family, parts=tuple(parts), config_class=CLASS), keys)
