"""Compares the positions of two models: the first difference, and where outputs differ by more than 0.001.

Two pairs of unit length rotated by ω_A p and ω_B p differ by 2·|sin(p(ω_A - ω_B)/2)|; different scales of cos and sin
differ at position 0 already. Other encodings are evaluated at positions 0, 1, 2, …
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from posenc.configs import ConfigError, Layer, PositionSpec, Rotation, Use, spec_of
from posenc.configs.gguf import CLASS as GGUF
from posenc.configs.gguf import PERMUTES
from posenc.configs.report.labels import scaling_name
from posenc.configs.report.names import kind
from posenc.configs.report.report import main_part
from posenc.frequencies import Frequencies

APART = 1e-3


@dataclass(frozen=True)
class Difference:
    """One difference.

    where     part and layer, "text_config, layer 5"; "" for the whole model
    what      one sentence with both values
    position  the first position at which queries of unit pairs, or biases, differ by more than 0.001; None if there is none
              within the shorter trained length, or if values are learned
    pair      the pair of channels, or the head, that differs first
    """

    where: str
    what: str
    position: int | None = None
    pair: int | None = None


def differences(a: PositionSpec, b: PositionSpec) -> list[Difference]:
    """All differences, first layer first; empty if the positions are the same."""
    first, second = attending(a), attending(b)
    if len(first) == len(second) == 1:  # the text model of a multimodal file against the same model by itself
        return list(_of_parts(*first[0], *second[0]))
    if GGUF in (a.config_class, b.config_class):  # which holds the text model only
        one, other = main_part(a), main_part(b)
        if one and other and 1 in (len(first), len(second)):
            return list(_of_parts(*one, *other))
    found: list[Difference] = []
    mine, theirs = dict(first), dict(second)
    for path in {**mine, **theirs}:
        if path in mine and path in theirs:
            found += _of_parts(path, mine[path], path, theirs[path])
        else:
            only = "the first" if path in mine else "the second"
            found.append(Difference(path, f"only {only} model has this part"))
    return found


def without_effect(a: PositionSpec, b: PositionSpec, file: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    """What differs in the two files and changes no position: trained lengths, defaults written out, other spellings, and
    keys that have nothing to do with position.

    A key that neither reader reads is one of these, and one that is read if the first file, with the second one's value,
    has the same positions as before. `file` and `other` are the files as data, empty for a GGUF file, whose keys are not
    compared.
    """
    found: list[Difference] = []
    mine, theirs = dict(a.walk()), dict(b.walk())
    for path in (path for path in mine if path in theirs):
        one, two = mine[path], theirs[path]
        if one.layers and two.layers and one.trained_length != two.trained_length:
            found.append(Difference(path, f"trained length {one.trained_length} against {two.trained_length}"))
        read = {**dict(one.keys), **dict(two.keys)}
        inside = [_inside(data, path) for data in (file, other)] if file and other else [{}, {}]
        for key in {**read, **inside[0], **inside[1]} if file and other else ():
            was, now = (data.get(key, ABSENT) for data in inside)
            if was == now or f"{path}.{key}".strip(".") in {**mine, **theirs}:
                continue
            if key not in read or _same_with(a, file, path, key, now):
                found.append(Difference(path, f"{key}: {_in_file(was)} against {_in_file(now)}"))
    return found


ABSENT = object()
LONGEST = 200  # characters of a value


def _inside(data: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """The section at a path of parts; empty where the file has none."""
    for name in filter(None, path.split(".")):
        data = data.get(name) or {}
    return data


def _same_with(spec: PositionSpec, file: Mapping[str, Any], path: str, key: str, value: Any) -> bool:
    """Whether the positions stay the same if this key of the file has another value, or is absent."""
    changed: Any = copy.deepcopy(dict(file))
    inside = _inside(changed, path)
    if value is ABSENT:
        inside.pop(key, None)  # type: ignore[attr-defined]
    else:
        inside[key] = value  # type: ignore[index]
    try:
        return not differences(spec, spec_of(changed))
    except ConfigError:
        return False


def _in_file(value: Any) -> str:
    text = "not in the file" if value is ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def attending(spec: PositionSpec) -> list[tuple[str, PositionSpec]]:
    return [(path, part) for path, part in spec.walk() if part.layers]


def _of_parts(path: str, a: PositionSpec, other: str, b: PositionSpec) -> Iterator[Difference]:
    if len(a.layers) != len(b.layers):
        yield Difference(path, f"{len(a.layers)} layers against {len(b.layers)}")
    if a.coordinates != b.coordinates and GGUF not in (a.config_class, b.config_class):  # such files do not say
        yield Difference(path, f"positions are numbered differently: {a.coordinates.en}, against {b.coordinates.en}")
    limit = min(a.trained_length or 2**17, b.trained_length or 2**17)
    seen: set[tuple[Layer, Layer]] = set()
    for number, layers in enumerate(zip(a.layers, b.layers, strict=False)):
        if layers not in seen:  # a difference that many layers share is told once, at the first
            seen.add(layers)
            where = f"{path or other}, layer {number}".strip(", ")
            yield from _of_layers(where, *layers, limit)


def _of_layers(where: str, a: Layer, b: Layer, limit: int) -> Iterator[Difference]:
    if a.attends != b.attends:
        yield Difference(where, f"{kind(a.kind).en} against {kind(b.kind).en}")
    if a.window != b.window:
        yield Difference(where, f"a window of {a.window or 'everything'} against {b.window or 'everything'}")
    if a.chunk != b.chunk:
        yield Difference(where, f"chunks of {a.chunk or 'everything'} against {b.chunk or 'everything'}")
    if a.causal != b.causal:
        yield Difference(where, f"{_direction(a)} against {_direction(b)}")
    names = [tuple(use.name for use in layer.uses) for layer in (a, b)]
    if names[0] != names[1]:
        yield Difference(where, f"{_listed(names[0])} against {_listed(names[1])}")
        return
    for one, two in zip(a.uses, b.uses, strict=True):
        yield from _of_uses(where, one, two, limit)


def _direction(layer: Layer) -> str:
    return "causal" if layer.causal else "both directions"


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(names) or "no position"


def _of_uses(where: str, a: Use, b: Use, limit: int) -> Iterator[Difference]:
    if a.rotation is not None and b.rotation is not None:
        yield from _of_rotations(where, a, b, limit)
        return
    mine, theirs = dict(a.arguments), dict(b.arguments)
    told = [
        f"{name} {mine.get(name)} against {theirs.get(name)}"
        for name in {**mine, **theirs}
        if mine.get(name) != theirs.get(name)
    ]
    if told:
        position, head = _first_bias_apart(a, b, limit)
        yield Difference(where, f"{a.name}: {'; '.join(told)}", position, head)


def _of_rotations(where: str, a: Use, b: Use, limit: int) -> Iterator[Difference]:
    assert a.rotation is not None
    assert b.rotation is not None
    one, two = a.rotation.frequencies().at_length(limit), b.rotation.frequencies().at_length(limit)
    for name, default in (
        ("layout", "interleaved"),
        ("returns", None),
        ("reverse", False),
        ("trailing", False),
        ("d_head", 0),
    ):
        mine, theirs = dict(a.arguments).get(name, default), dict(b.arguments).get(name, default)
        if mine != theirs and not (name == "layout" and _permuted(a, b)):
            yield Difference(where, f"RoPE: {name} {mine} against {theirs}", 0 if name in ("d_head", "returns") else 1, 0)
    if len(one) != len(two) or one.axes != two.axes:
        yield Difference(where, f"RoPE: {_pairs(one)} against {_pairs(two)}", 1, min(len(one), len(two)))
        return
    if one.softmax_scale != two.softmax_scale:
        yield Difference(where, f"softmax scale × {one.softmax_scale:.7g} against × {two.softmax_scale:.7g}", 0)
    same = _nearly if "configs.gguf.divided" in (a.rotation.kind, b.rotation.kind) else tuple.__eq__
    if not same(one.values, two.values) or one.cos_sin_scale != two.cos_sin_scale:
        position, pair = first_apart(one, two, limit)
        yield Difference(where, f"RoPE: {_unlike(a.rotation, b.rotation)}", position, pair)


def _permuted(a: Use, b: Use) -> bool:
    """Whether one is from a GGUF file whose q and k were permuted for its layout."""
    return PERMUTES in (dict(a.said_by).get("layout"), dict(b.said_by).get("layout"))


def _nearly(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
    """Equal up to the fp32 in which GGUF files have factors."""
    return all(math.isclose(a, b, rel_tol=2.0**-22) for a, b in zip(one, two, strict=True))


def _pairs(frequencies: Frequencies) -> str:
    axes = f" on {frequencies.n_axes} axes" if frequencies.axes else ""
    return f"{len(frequencies)} pairs{axes}"


def _unlike(a: Rotation, b: Rotation) -> str:
    """The parameters in which two rotations differ: "base 10,000 against 500,000; factor 8 against 32"."""
    mine, theirs = (
        {"base": r.base, "scaling": scaling_name(r.kind).en, "width": r.width, **dict(r.parameters)} for r in (a, b)
    )
    return (
        "; ".join(
            f"{name} {_short(mine.get(name))} against {_short(theirs.get(name))}"
            for name in {**mine, **theirs}
            if mine.get(name) != theirs.get(name)
        )
        or "other axes"
    )


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({len(value)} numbers)"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{value:,.10g}" if number else "none" if value is None else str(value)


def first_apart(a: Frequencies, b: Frequencies, limit: int) -> tuple[int | None, int | None]:
    """The first position below `limit` where a pair of length 1, rotated by both, differs by more than 0.001, and the
    pair."""
    scales = abs(a.cos_sin_scale - b.cos_sin_scale)
    if scales > APART:
        return 0, 0
    best: tuple[int, int] | None = None
    for pair, (one, two) in enumerate(zip(a, b, strict=True)):
        position = _pair_apart(one, two, a.cos_sin_scale, b.cos_sin_scale, limit)
        if position is not None and (best is None or position < best[0]):
            best = position, pair
    return best if best is not None else (None, None)


def _pair_apart(one: float, two: float, r: float, s: float, limit: int) -> int | None:
    """The smallest whole p with |r·e^{iωp} - s·e^{iω'p}|² = (r-s)² + 4rs·sin²(p(ω-ω')/2) > 0.001²."""
    bound = (APART**2 - (r - s) ** 2) / (4 * r * s)
    delta = abs(one - two)
    if bound >= 1 or delta == 0:
        return None
    needed = 2 * math.asin(math.sqrt(max(bound, 0.0)))  # the angle between the two, p·Δω mod 2π, must exceed it
    position = max(math.floor(needed / delta), 0)
    while position < limit:
        angle = abs(math.remainder(position * delta, 2 * math.pi))
        if angle > needed:
            return position
        position += 1
    return None


def _first_bias_apart(a: Use, b: Use, limit: int) -> tuple[int | None, int | None]:
    """The first distance and head where two distance biases differ; learned values are not compared."""
    import torch

    from posenc.encoding import DistanceBias

    one, two = a.build(), b.build()
    if not (isinstance(one, DistanceBias) and isinstance(two, DistanceBias)) or any(True for _ in one.parameters()):
        return None, None
    delta = torch.arange(min(limit, 2**15))
    mine, theirs = one.at_distance(delta), two.at_distance(delta)
    heads = min(len(mine), len(theirs))
    apart = ((mine[:heads] - theirs[:heads]).abs() > APART).nonzero()
    if not len(apart):
        return None, None
    head, position = min(apart.tolist(), key=lambda found: (found[1], found[0]))
    return position, head
