"""How far a model's positions go: the length it was trained on, what scales it, what fails first beyond, what to do.

For rotary encodings, training has seen the angles 0 … ω·N of a pair, all of them if the pair completes a turn. Beyond, the
first pair of a layer that sees far enough to meet a new angle ends the usable length. A layer with a window or chunks sees
no distance beyond it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from posenc.configs import Layer, PositionSpec, Rotation, Use
from posenc.configs.attached import has_attached
from posenc.configs.say import say
from posenc.configs.short_factors import SHORT_AT_ANY_LENGTH
from posenc.frequencies import Frequencies
from posenc.support.languages import Words

# Their files give the length with the factor of their linear scaling included; other files give the length before it.
LENGTH_AFTER_LINEAR = ("gemma3_text", "gemma3", "gemma-embedding", "t5gemma2_text", "t5gemma2_decoder")  # GGUF's names too
NAMES = {
    "dynamic": say("dynamic NTK"),
    "linear": say("linear"),
    "llama3": say("Llama 3's scaling"),
    "longrope": Words("LongRoPE"),
    "yarn": Words("YaRN"),
}
TRAINED_WITH = (NAMES["llama3"].en, NAMES["longrope"].en)  # up to the length of the file
TRAINED_WITH_YARN = {  # published so; of other families YaRN is what a user adds. GGUF's names too
    *("deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "deepseek_vl_v2_text", "deepseek2", "kimi_k2"),
    *("gpt_oss", "gpt-oss", "openai_privacy_filter", "ministral3", "mistral3", "mistral4", "mistral_large4_text", "olmo3"),
}
UNSCALED = Words("")
EVALUATE = say("evaluate the model at a longer length before you use it there")


@dataclass(frozen=True)
class Limit:
    """The usable length of one part of a model.

    trained   the length before any scaling, or with the scaling that it was trained with; None if the file does not say
    scaled    the length that the scaling is made for; None without scaling
    by        the scaling: "YaRN ×4"; empty without one
    fails     the first length at which something fails; None if nothing in the encoding does
    why, remedy   in one sentence each
    other     the same if the file gives the length after its linear scaling; None where the family decides that
    """

    trained: int | None
    scaled: int | None
    by: Words
    fails: int | None
    why: Words
    remedy: Words
    other: Limit | None = None

    @property
    def usable(self) -> int | None:
        return self.trained if self.scaled is None else self.scaled

    @property
    def or_only(self) -> int | None:
        """The usable length of the other reading."""
        return self.other.usable if self.other else None


def limit(spec: PositionSpec) -> Limit:
    """The usable length of this part's own layers."""
    trained, scaled, by = scaling(spec)
    if scaled is not None and scaled == spec.trained_length and _trained_with(spec, by.en):
        by = say("{scaling} of {original:,}", scaling=by, original=trained)
        return Limit(scaled, None, by, *_failure(spec, None, scaled))
    undecided = by.en.startswith("linear") and trained is not None
    other = Limit(None, trained, by, *_failure(spec, None, trained)) if undecided else None
    return Limit(trained, scaled, by, *_failure(spec, trained, scaled), other)


def _trained_with(spec: PositionSpec, by: str) -> bool:
    """Whether the model was trained with this scaling, not only scaled: by its kind, by its family, or as the file says."""
    if by.startswith(TRAINED_WITH):
        return True
    settings = dict(spec.keys).get("rope_scaling") or {}
    return by.startswith(NAMES["yarn"].en) and (spec.family in TRAINED_WITH_YARN or settings.get("finetuned") is True)


def scaling(spec: PositionSpec) -> tuple[int | None, int | None, Words]:
    """The length before scaling, the one it is made for, and the name of the scaling."""
    length = spec.trained_length
    rotation = next((rotation for _, rotation in rotations(spec, everywhere=False)), None)
    if rotation is None:
        return length, None, UNSCALED
    parameters = dict(rotation.parameters)
    original, factor = int(parameters.get("trained_length", 0)), float(parameters.get("factor") or 1)
    original = min(original, length or original)  # a file that says otherwise is warned of
    kind = "longrope" if "short_factor" in parameters else rotation.kind
    times = f" ×{factor:g}" if parameters.get("factor") else ""
    by = Words("{kind}{times}").filled(kind=NAMES.get(kind, kind), times=times)
    if kind == "yarn":
        return original, _times(original, factor), by
    if rotation.kind == SHORT_AT_ANY_LENGTH:  # long_factor, and with it the longer length, is not used
        return original, None, UNSCALED
    if kind in ("llama3", "longrope"):
        longer = length if length is not None and length > original else None
        return original, longer or (_times(original, factor) if kind == "llama3" else None), by
    if kind == "linear" and length is not None and factor != 1:
        after = spec.family in LENGTH_AFTER_LINEAR
        return (None, length, by) if after else (length, _times(length, factor), by)
    if kind == "dynamic":
        known = int(parameters["trained_length"])
        return known, _times(known, factor) if factor > 1 else None, by
    return length, None, by if kind == "ntk_alpha" else UNSCALED


def _times(length: int, factor: float) -> int:
    return max(1, round(length * factor))


def rotations(spec: PositionSpec, *, everywhere: bool) -> list[tuple[Layer, Rotation]]:
    """Layers with rotary frequencies, one of each kind; those without a window or chunk alone if there are any."""
    pairs = {
        (layer, use.rotation): None
        for layer in spec.layers
        for use in layer.uses
        if use.rotation is not None and "d_head" in dict(use.arguments)
    }
    wide = [pair for pair in pairs if pair[0].reach is None]
    return list(pairs) if everywhere or not wide else wide


def _failure(spec: PositionSpec, trained: int | None, scaled: int | None) -> tuple[int | None, Words, Words]:
    rows = [int(n) for layer in spec.layers for use in layer.uses if (n := _rows(use)) is not None]
    if rows:
        n = min(rows)
        return n, *(
            say("position {n} and later have no row in the learned table", n=n),
            say("a longer input needs a longer table, trained or interpolated"),
        )
    usable = trained if scaled is None else scaled
    every = rotations(spec, everywhere=True)
    wide = [
        (layer, rotation)
        for layer, rotation in every
        if layer.reach is None or (usable is not None and layer.reach > usable)
    ]
    if wide and usable is not None:
        return _rotary_failure(spec, wide, trained, usable)
    if wide:
        return None, *(say("the file does not say for which length it was trained"), say("give --length to see a length"))
    return (None, _harmless(spec), say("evaluate the model at a longer length before you use it there"))


def _rows(use: Use) -> int | None:
    rows = dict(use.arguments).get("max_positions")
    return rows if isinstance(rows, int) else None


def _harmless(spec: PositionSpec) -> Words:
    """Why no length fails."""
    turning = rotations(spec, everywhere=True)
    if turning:
        reach = max(layer.reach or 0 for layer, _ in turning)
        return say("no new angle: layers that rotate see at most {reach:,} tokens", reach=reach)
    far = [
        int(n)
        for layer in spec.layers
        for use in layer.uses
        if isinstance(n := dict(use.arguments).get("max_distance"), int)
    ]
    if far:
        n = max(far)
        return say("no length is an error: distances from {n} on share a bucket", n=n)
    if any(layer.uses for layer in spec.layers):
        return say("the encoding is defined for any length")
    return say("attention has no positions that could run out")


def _rotary_failure(
    spec: PositionSpec, wide: list[tuple[Layer, Rotation]], trained: int | None, usable: int
) -> tuple[int | None, Words, Words]:
    grows = next((rotation for _, rotation in wide if rotation.kind == "dynamic"), None)
    if grows is not None:
        n = int(dict(grows.parameters)["trained_length"])
        return n, *(
            say("all frequencies change with the length of the request past {n:,}", n=n),
            say("choose the frequencies once per request: encoding.at_length(n)"),
        )
    first: int | None = None
    pairs = moving = layers = 0
    for layer, rotation in wide:
        values = rotation.frequencies().at_length(usable)
        at, new = new_angles(rotation, values, trained, usable)
        if at is not None:
            first = at if first is None else min(first, at)
            pairs, moving = max(pairs, new), max(moving, sum(1 for value in values if value))
            layers += spec.layers.count(layer)
    if first is None:
        return None, *(say("every pair completes a turn in training: no new angle beyond"), EVALUATE)
    return first, *(
        say(
            "{pairs} of {moving} pairs in {layers} layers reach angles not seen in training",
            pairs=pairs,
            moving=moving,
            layers=layers,
        ),
        say("posenc inspect … --extend-to N writes settings for N") if _settable(spec) else EVALUATE,
    )


def _settable(spec: PositionSpec) -> bool:
    """Whether settings of a config.json change the frequencies: not of attached encodings, GGUF, or those of the code."""
    from_code = (
        dict(use.said_by).get("base") == "constant of the code"
        for layer in spec.layers
        for use in layer.uses
        if use.rotation
    )
    return not has_attached(spec) and spec.config_class != "GGUF" and not all(from_code)


def new_angles(rotation: Rotation, f: Frequencies, trained: int | None, usable: int) -> tuple[int | None, int]:
    """The first length with an angle not seen in training, and how many pairs meet one past the usable length.

    YaRN and linear scaling extend a model that saw the unscaled frequencies to `trained`; with any other scaling, or where
    `trained` is not known, it was trained up to `usable`.
    """
    seen = Rotation(rotation.width, rotation.base).frequencies().at_length(1)
    if rotation.kind in ("yarn", "linear") and trained is not None and len(f) == len(seen):
        ends = [trained * was / now for was, now in zip(seen, f, strict=True) if now and 2 * math.pi / was > trained]
    else:
        ends = [float(usable) for value in f if value and 2 * math.pi / abs(value) > usable]
    return (math.floor(min(ends) + 0.5), len(ends)) if ends else (None, 0)
