"""The report of posenc inspect as plain data: one dict, from which the page is drawn."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from posenc.configs import Layer, PositionSpec, Remark, Rotation, Use
from posenc.configs.as_python import as_python
from posenc.configs.report.limit import Limit, limit
from posenc.configs.report.meaning import leaving, meaning
from posenc.configs.report.names import SEAMS, SENTENCES, origin, sentence
from posenc.configs.report.remarks import facts, remarks
from posenc.configs.say import say
from posenc.configs.spec import GRADES
from posenc.frequencies import Frequencies
from posenc.support.languages import Language, Words


def report(spec: PositionSpec, length: int | None = None, language: Language = "en") -> dict[str, Any]:
    """The report on the model and every part with attention layers; with `length`, also what happens there.

    Its sentences are in `language`; keys and names are the same in both.
    """
    walked = [(path, part) for path, part in spec.walk() if part.layers]
    listed = [{"grade": r.grade, "key": r.key, "text": r.words.in_language(language)} for r in all_remarks(spec)]
    return {
        "family": spec.family,
        "claims": spec.claims,
        "wraps": spec.wraps,
        "config_class": spec.config_class,
        "verdict": verdict(spec, listed, language),
        "parts": [described(path, part, length, language) for path, part in walked],
        "without_attention": [
            {"part": path, "family": part.family, "coordinates": part.coordinates.in_language(language)}
            for path, part in spec.walk()
            if not part.layers and not part.parts
        ],
        "remarks": listed,
        "facts": list(dict.fromkeys(fact.in_language(language) for _, part in walked for fact in facts(part))),
    }


def main_part(spec: PositionSpec) -> tuple[str, PositionSpec] | None:
    """The part that the verdict is about: the first that generates text, otherwise the first that attends."""
    walked = [(path, part) for path, part in spec.walk() if part.layers]
    generating = [entry for entry in walked if any(layer.causal for layer in entry[1].layers)]
    turning = [entry for entry in generating if any(layer.uses for layer in entry[1].layers)]
    return next(iter(turning or generating or walked), None)


def verdict(spec: PositionSpec, remarks: list[dict[str, str]], language: Language) -> dict[str, Any]:
    """Trained and usable length of the main part, what fails first beyond it, what to do, and errors in the file."""
    part = main_part(spec)
    errors = sum(remark["grade"] == "error" for remark in remarks)
    if part is None:
        return {"part": "", "errors": errors, "trained": None, "usable": None, "fails": None}
    bound = limit(part[1])
    return {
        "part": part[0],
        "trained": bound.trained,
        "scaled": bound.scaled,
        "by": bound.by.in_language(language),
        "usable": bound.usable,
        "or_only": bound.or_only,
        "fails": bound.fails,
        "why": bound.why.in_language(language),
        "or_fails": bound.other.fails if bound.other else None,
        "or_why": bound.other.why.in_language(language) if bound.other else None,
        "remedy": bound.remedy.in_language(language),
        "errors": errors,
    }


def all_remarks(spec: PositionSpec) -> list[Remark]:
    """Remarks on the file's keys and on the encodings, errors first, without duplicates."""
    listed: list[Remark] = []
    for path, part in spec.walk():
        listed += part.remarks
        listed += [replace(remark, key=_of_part(path, remark.key)) for remark in remarks(part)]
    once = list(dict.fromkeys(listed))
    return sorted(once, key=lambda remark: GRADES.index(remark.grade))


def _of_part(path: str, key: str) -> str:
    """The part of a remark, or the key, which has its part in it already."""
    return key if key.startswith(path) else f"{path}.{key}".strip(".")


def described(path: str, spec: PositionSpec, length: int | None, language: Language) -> dict[str, Any]:
    bound = limit(spec)
    return {
        "part": path,
        "family": spec.family,
        "n_layers": len(spec.layers),
        "n_heads": spec.n_heads,
        "n_kv_heads": spec.n_kv_heads,
        "d_head": spec.d_head,
        "d_model": spec.d_model,
        "trained_length": spec.trained_length,
        "usable_length": bound.usable,
        "or_only": bound.or_only,
        "coordinates": spec.coordinates.in_language(language),
        "input": [_use(use, bound, spec.layers[0], length, language) for use in at_input(spec)],
        "groups": [
            {
                "layers": numbers,
                "kind": layer.kind,
                "attends": layer.attends,
                "window": layer.window,
                "chunk": layer.chunk,
                "causal": layer.causal,
                "encodings": [_use(use, bound, layer, length, language) for use in layer.uses],
            }
            for layer, numbers in grouped(inside(spec))
        ],
        "code": code(spec),
    }


def code(spec: PositionSpec) -> list[str]:
    """Of a class of diffusers, Python that builds each of its encodings, and its positions; [] for other models."""
    if not spec.family[:1].isupper():
        return []
    from posenc.configs.families.diffusion_transformers import ROWS, positions_of

    if spec.family not in ROWS:
        return []
    calls = dict.fromkeys(as_python(use) for layer in spec.layers for use in layer.uses)
    return [*calls, *(f"at = {at}" for at in [positions_of(spec)] if at)]


def at_input(spec: PositionSpec) -> list[Use]:
    """The encodings added to the embeddings, before the first layer."""
    return [use for use in spec.layers[0].uses if acts(use)[0] == ("embed",)]


def inside(spec: PositionSpec) -> tuple[Layer, ...]:
    """The layers without what is added to the embeddings."""
    added = at_input(spec)
    first = replace(spec.layers[0], uses=tuple(use for use in spec.layers[0].uses if use not in added))
    return (first, *spec.layers[1:])


@functools.lru_cache(maxsize=1024)
def acts(use: Use) -> tuple[tuple[str, ...], str]:
    """The seams where it acts ("embed", "rotate", "bias", …, in small letters), and a sentence on what it does.

    One is built, which imports torch, where the name does not tell the seams and where the constructor may refuse arguments
    that the family's reader does not check.
    """
    arguments = dict(use.arguments)
    if use.name in SEAMS and _in_range(arguments):
        scaled = ("rotate",) if "floor" in arguments else ()  # a bank of distances whose queries are scaled too
        return (*scaled, *SEAMS[use.name]), SENTENCES[use.name].en
    import torch

    from posenc.encoding import SEAMS as IN_ORDER

    with torch.device("meta"):  # sizes of a file cost nothing here
        encoding = use.build()
    idea = " ".join((type(encoding).__doc__ or "").split("\n\n")[0].split())
    return tuple(seam for seam in IN_ORDER if seam in encoding.seams), idea


def _in_range(arguments: dict[str, Any]) -> bool:
    """Whether no constructor refuses these axes and buckets of distances."""
    buckets, far = (_numbers(arguments.get(name)) for name in ("n_buckets", "max_distance"))
    axes = arguments.get("axes", 1)
    shared = axes == 1 or ("d_model" in arguments and arguments["d_model"] % (4 * axes) == 0)
    return shared and (not buckets or 4 <= min(buckets) <= max(buckets) <= min(far or buckets))


def _numbers(value: Any) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else () if value is None else (value,)


def grouped(layers: tuple[Layer, ...]) -> list[tuple[Layer, list[int]]]:
    """Equal layers grouped together, in order of first appearance."""
    groups: dict[Layer, list[int]] = {}
    for number, layer in enumerate(layers):
        groups.setdefault(layer, []).append(number)
    return list(groups.items())


def _use(use: Use, of: Limit, layer: Layer, length: int | None, language: Language) -> dict[str, Any]:
    usable = of.usable
    seams, idea = acts(use)
    about: dict[str, Any] = {
        "encoding": use.name,
        "idea": sentence(use.name, idea).in_language(language),
        "seams": list(seams),
        "arguments": {name: _plain(value) for name, value in use.arguments if not isinstance(value, Rotation)},
        "said_by": {name: origin(source, language) for name, source in use.said_by},
        "note": use.note.in_language(language) if use.note else "",
    }
    if use.rotation is not None and "d_head" in dict(use.arguments):
        frequencies = use.rotation.frequencies().at_length(usable or 1)
        about["rotation"] = _rotation(use.rotation, frequencies, language)
        if usable:
            within = usable if layer.reach is None else min(usable, layer.reach)
            about["meaning"] = _finite(asdict(meaning(frequencies, within)))
            if length is not None:
                about["beyond"] = _there(use.rotation, usable, length, layer)
                if of.or_only is not None:
                    about["beyond"]["or_pairs"] = _there(use.rotation, of.or_only, length, layer)["pairs"]
    elif length is not None:
        about["beyond"] = {"length": length, "text": _beyond(use, length).in_language(language)}
    return about


def _there(rotation: Rotation, usable: int, length: int, layer: Layer) -> dict[str, Any]:
    """The pairs that have an angle at `length` which training, up to the usable length, has not seen."""
    there = rotation.frequencies().at_length(length)
    reach = length if layer.reach is None else min(length, layer.reach)
    return {
        "length": length,
        "pairs": list(leaving(there, usable, length, layer.reach)),
        "of": len(there),
        "meaning": _finite(asdict(meaning(there, reach))),
    }


def _beyond(use: Use, length: int) -> Words:
    arguments = dict(use.arguments)
    rows = arguments.get("max_positions")
    if isinstance(rows, int):
        if length <= rows:
            return say("within the table")
        return say("the table ends at {rows}: position {rows} and later are errors", rows=rows)
    if "max_distance" in arguments:
        far = arguments["max_distance"]
        return say("distances from {far} on share one bucket", far=far)
    return say("defined for any length")


def _rotation(rotation: Rotation, frequencies: Frequencies, language: Language) -> dict[str, Any]:
    return {
        "kind": rotation.kind,
        "base": rotation.base,
        "width": rotation.width,
        "parameters": {name: _plain(value) for name, value in rotation.parameters},
        "frequencies": list(frequencies),
        "axes": list(frequencies.axes),
        "values_from": frequencies.values_from,
        "cos_sin_scale": frequencies.cos_sin_scale,
        "cos_sin_scale_from": origin(frequencies.cos_sin_scale_from, language),
        "softmax_scale": frequencies.softmax_scale,
        "softmax_scale_from": origin(frequencies.softmax_scale_from, language),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _finite(numbers: dict[str, Any]) -> dict[str, Any]:
    """Replaces infinities by None, since JSON has none: the wavelength of a pair that never rotates is null."""
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in numbers.items()}
