"""New rotary settings for a longer context, by each method, as a fragment of config.json that transformers reads.

The methods are in extension_methods.py, the spellings of their settings in spellings.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from posenc.configs import ConfigError, PositionSpec, Rotation, spec_of
from posenc.configs.families.llama import NORMALISED
from posenc.configs.families.qwen2_vl import text_is_flat
from posenc.configs.report.extension_methods import METHODS, SETTINGS, remarks
from posenc.configs.report.limit import limit, scaling
from posenc.configs.report.spellings import complaints, spellings, standard
from posenc.configs.rotary import TYPES
from posenc.configs.say import say
from posenc.frequencies import Frequencies
from posenc.support.languages import Words, joined


@dataclass(frozen=True)
class Extension:
    """One method for a longer context.

    fragment   keys that replace those of the file, in the file's own spelling; empty if the code does not support it
    standard   the same as keys of the configuration that transformers 5 has read
    before, after  the frequencies of the layers that it changes
    note       what to know about this method here
    family, rotation   the model type of the part, and its rotary settings before
    lengths    further keys of the file that servers take for its length
    remote     whether the model's own code runs it, not transformers'
    chunked    whether the file has dual_chunk_attention_config, with which servers read the base alone
    """

    method: str
    length: int
    factor: float
    fragment: dict[str, Any]
    standard: dict[str, Any]
    before: Frequencies
    after: Frequencies
    note: Words
    family: str
    rotation: Rotation
    lengths: tuple[str, ...]
    remote: bool
    chunked: bool


ORIGINAL = "original_max_position_embeddings"
LENGTHS = ("max_sequence_length", "max_seq_length", "max_seq_len", "seq_length", "seq_len", "model_max_length")


def extensible(spec: PositionSpec) -> tuple[str, PositionSpec]:
    """The part whose context can be extended: the first with RoPE over text positions.

    Raises ValueError if nothing rotates.
    """
    for path, part in spec.walk():
        turns = any(use.rotation is not None for layer in part.layers for use in layer.uses)
        if turns and part.trained_length:
            return path, part
    raise ValueError(f"--extend-to: {spec.family} has no rotary frequencies with a trained length")


def extend(
    config: Mapping[str, Any], spec: PositionSpec, length: int, methods: tuple[str, ...] = METHODS, path: str = ""
) -> list[Extension]:
    """The extensions to `length` positions for the part of the model at `path` of the file.

    Raises ValueError for a model without one set of rotary frequencies to change, for a length that is not longer, and
    where windows keep every distance within those of training.
    """
    rotation = rotation_to_change(spec)
    trained, usable = pretrained_length(spec, rotation), scaling(spec)[1]
    if rotation.kind == "linear":  # the model was trained with it
        trained = usable
    if trained is None:
        raise ValueError("--extend-to: the file does not give the trained length")
    if length <= (usable or trained):
        reached = f"{usable} positions that the file's settings are made for" if usable else f"trained {trained} positions"
        after = "; where the file gives the length after its linear scaling, write the one before it first"
        message = f"--extend-to: expected more than the {reached}, got {length}"
        raise ValueError(message + after if limit(spec).other else message)
    if useless := windows_suffice(spec, usable or trained):
        raise ValueError(f"--extend-to: {useless}")
    section: Mapping[str, Any] | None = config
    inside = [key for key in path.split(".") if key]
    spelled = [] if text_is_flat(config) else inside  # in the file; transformers 5 moves it to where it belongs
    for key in spelled:
        section = section and section.get(key)
    if section is None or not _reads_alone(section, spec, rotation):
        raise ValueError(
            "--extend-to: settings are written into the section of one part, and the file has none with the sizes of "
            f"{path or spec.family}"
        )
    extensions = []
    for method in methods:
        try:
            extensions.append(_extension(method, section, spec, rotation, trained, length / trained, length))
        except ConfigError as error:  # Phi-3's class reads "yarn" as "longrope"
            if len(methods) == 1:
                raise ValueError(f"--method {method}: {spec.family}'s code does not support it: {error}") from None
            now = rotation.frequencies().at_length(trained)
            extensions.append(
                Extension(
                    method,
                    length,
                    length / trained,
                    {},
                    {},
                    now,
                    now,
                    say("not for this family: {error}", error=error.words),
                    spec.family,
                    rotation,
                    (),
                    spec.remote,
                    False,
                )
            )
    return [
        replace(extension, fragment=_nested(spelled, extension.fragment), standard=_nested(inside, extension.standard))
        if extension.fragment
        else extension
        for extension in extensions
    ]


def _reads_alone(section: Mapping[str, Any], spec: PositionSpec, rotation: Rotation) -> bool:
    """Whether the part's section of the file, read by itself, is the part: not where defaults of the whole fill it."""
    try:
        return rotation_to_change(spec_of({**section, "model_type": spec.family}, defaults=True)) == rotation
    except ValueError:
        return False


def fitting(extensions: Sequence[Extension]) -> Extension | None:
    """The method that fits the model: the scaling that it has, otherwise the first that its code supports; None if none."""
    able = [extension for extension in extensions if extension.fragment]
    return next((one for one in able if one.method == one.rotation.kind), next(iter(able), None))


def windows_suffice(spec: PositionSpec, length: int) -> str:
    """Why no longer context needs other frequencies, where windows keep every distance within `length`; "" elsewhere."""
    reach = _farthest(spec)
    if reach is None or reach > length:
        return ""
    return (
        f"every layer of {spec.family} that rotates has a window, of at most {reach} tokens: no distance goes beyond those "
        "of training, and no setting of the frequencies is needed; widen the window to see further"
    )


def _farthest(spec: PositionSpec) -> int | None:
    """The largest distance that a layer with RoPE sees; None for one that sees everything."""
    reaches = [layer.reach for layer in spec.layers if any(use.rotation is not None for use in layer.uses)]
    return None if None in reaches else max(reach for reach in reaches if reach is not None)


def _nested(path: list[str], fragment: dict[str, Any]) -> dict[str, Any]:
    if not fragment:
        return {}
    for key in reversed(path):
        fragment = {key: fragment}
    return fragment


def rotation_to_change(spec: PositionSpec) -> Rotation:
    """The rotary settings of the full-attention layers; layers with a window never look further."""
    wide = [layer for layer in spec.layers if layer.reach is None] or list(spec.layers)
    rotations = {use.rotation for layer in wide for use in layer.uses if use.rotation is not None}
    if not rotations:
        rotates = any(use.rotation is not None for layer in spec.layers for use in layer.uses)
        why = "rotates only in layers with a window, which never look further" if rotates else "has no rotary frequencies"
        raise ValueError(f"--extend-to: {spec.family} {why}")
    if len(rotations) > 1:
        raise ValueError(
            f"--extend-to: {spec.family} has {len(rotations)} sets of rotary frequencies in its full layers; "
            "one method cannot set them all"
        )
    return rotations.pop()


def pretrained_length(spec: PositionSpec, rotation: Rotation) -> int | None:
    """The length before any scaling: the one that the file's scaling names, otherwise the file's length."""
    length_listed = dict(rotation.parameters).get("trained_length")
    return int(length_listed) if length_listed is not None else spec.trained_length


def _extension(
    method: str, config: Mapping[str, Any], spec: PositionSpec, rotation: Rotation, trained: int, factor: float, length: int
) -> Extension:
    settings, note = SETTINGS[method](rotation, trained, factor)
    fragment, changed = _changed(config, spec, rotation, settings, length, trained)
    more = remarks(rotation, settings)
    if any(remark.words.en.endswith(NORMALISED.en) for remark in spec.remarks) and method in ("yarn", "longrope"):
        note = NORMALISED  # the note of the method is about that scale
    now = rotation_to_change(changed)
    if now.width != rotation.width:
        raise ConfigError(say("rope_parameters: other pairs would turn than in this model"))
    before, after = rotation.frequencies().at_length(trained), now.frequencies().at_length(length)
    if len(before) != len(after) or any(old == 0 != new for old, new in zip(before, after, strict=True)):
        raise ConfigError(say("rope_parameters: other pairs would turn than in this model"))
    return Extension(
        method,
        length,
        factor,
        fragment,
        standard(config, fragment, changed),
        before,
        after,
        joined((note, *more), " ", ""),
        spec.family,
        rotation,
        tuple(key for key in LENGTHS if config.get(key) is not None),
        spec.remote,
        config.get("dual_chunk_attention_config") is not None,
    )


def _changed(
    config: Mapping[str, Any], spec: PositionSpec, rotation: Rotation, settings: dict[str, Any], length: int, trained: int
) -> tuple[dict[str, Any], PositionSpec]:
    """The fragment in the first spelling that the family's code reads as `settings`, and what it makes of the file.

    Raises ConfigError if it reads none, with what it refuses.
    """
    section = {**config, "model_type": spec.family}
    known = complaints(spec_of(section, defaults=True))
    wanted = TYPES[settings["rope_type"]][0], settings.get("rope_theta", rotation.base)
    began = settings.get(ORIGINAL)  # the trained length of the scaling
    read: list[tuple[int, dict[str, Any], PositionSpec]] = []
    refusals: list[ConfigError] = []
    for spelled in spellings(config, spec, settings, length, trained, rotation.base):
        # Some families' scaled frequencies need the width of a head; Phi-3's class has a trained length of its own.
        for more in ({}, {"head_dim": spec.d_head}, {ORIGINAL: trained}):
            fragment = {**spelled, **more}
            try:
                changed = spec_of({**section, **fragment}, defaults=True)
                now, found = rotation_to_change(changed), complaints(changed)
            except ConfigError as error:
                refusals.append(error)
                continue
            as_meant = (now.kind, now.base) == wanted and dict(now.parameters).get("trained_length") == began
            if as_meant and now != rotation and found <= known:
                read.append((len(found), fragment, changed))
    if not read:
        wrong = say("rope_parameters: {family}'s code does not read such settings", family=spec.family)
        raise refusals[0] if refusals else ConfigError(wrong)
    return min(read, key=lambda one: one[0])[1:]
