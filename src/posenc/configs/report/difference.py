"""Compares the positions of two models: the first difference, and where outputs differ by more than 0.001.

Two pairs of unit length rotated by ω_A p and ω_B p differ by 2·|sin(p(ω_A - ω_B)/2)|; different scales of cos and sin
differ at position 0 already. Other encodings are evaluated at positions 0, 1, 2, …

What changes no score is no difference: another order of the channels of queries and keys alike, the rows before position 0
of a table that a GGUF file lacks, its fp32 numbers, a window wider than the model was trained.
"""

from __future__ import annotations

import copy
import inspect
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from posenc.configs import ConfigError, Layer, PositionSpec, Rotation, Use, spec_of
from posenc.configs.beside import RECORD
from posenc.configs.gguf import CLASS as GGUF
from posenc.configs.gguf import PERMUTES
from posenc.configs.report.labels import scaling_name
from posenc.configs.report.names import kind
from posenc.configs.report.report import main_part
from posenc.frequencies import Frequencies

APART = 1e-3
FP32 = 2.0**-22  # two roundings
CUT_OFF = {"row_offset", "padding_row"}  # of a table: a GGUF file has the rows of positions only


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


class Unfelt(Difference):
    """One that changes no score."""


def differences(a: PositionSpec, b: PositionSpec) -> list[Difference]:
    """All differences, first layer first; empty if the positions are the same."""
    return [one for one in _compared(a, b) if not isinstance(one, Unfelt)]


def _compared(a: PositionSpec, b: PositionSpec) -> list[Difference]:
    first, second = attending(a), attending(b)
    if len(first) == len(second) == 1:  # the text model of a multimodal file against the same model by itself
        return list(_of_parts(*first[0], *second[0]))
    if GGUF in (a.config_class, b.config_class):  # which holds the text model only
        first_main, second_main = main_part(a), main_part(b)
        if first_main and second_main and 1 in (len(first), len(second)):
            return list(_of_parts(*first_main, *second_main))
    result: list[Difference] = []
    parts_a, parts_b = dict(first), dict(second)
    for path in {**parts_a, **parts_b}:
        if path in parts_a and path in parts_b:
            result += _of_parts(path, parts_a[path], path, parts_b[path])
        else:
            only = "the first" if path in parts_a else "the second"
            result.append(Difference(path, f"only {only} model has this part"))
    return result


def without_effect(a: PositionSpec, b: PositionSpec, file: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    """What differs in the two files and changes no position: trained lengths, defaults written out, other spellings, and
    keys that have nothing to do with position.

    A key that neither reader reads is one of these, and one that is read if the first file, with the second one's value,
    has the same positions as before. `file` and `other` are the files as data, empty for a GGUF file, whose keys are not
    compared.
    """
    result: list[Difference] = [one for one in _compared(a, b) if isinstance(one, Unfelt)]
    parts_a, parts_b = dict(a.walk()), dict(b.walk())
    for path in (path for path in parts_a if path in parts_b):
        part_a, part_b = parts_a[path], parts_b[path]
        if part_a.layers and part_b.layers and part_a.trained_length != part_b.trained_length:
            result.append(Difference(path, f"trained length {part_a.trained_length} against {part_b.trained_length}"))
        read = {**dict(part_a.keys), **dict(part_b.keys)}
        inside = [_inside(data, path) for data in (file, other)] if file and other else [{}, {}]
        for key in {**read, **inside[0], **inside[1]} if file and other else ():
            was, now = (data.get(key, ABSENT) for data in inside)
            if was == now or f"{path}.{key}".strip(".") in {**parts_a, **parts_b}:
                continue
            if key not in read or _same_with(a, file, path, key, now):
                result.append(Difference(path, f"{key}: {_in_file(was)} against {_in_file(now)}"))
    return result


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
    pair = _Pair(limit, GGUF in (a.config_class, b.config_class))
    seen: set[tuple[Layer, Layer]] = set()
    for number, layers in enumerate(zip(a.layers, b.layers, strict=False)):
        if layers not in seen:  # a difference that many layers share is told once, at the first
            seen.add(layers)
            yield from pair.of_layers(f"{path or other}, layer {number}".strip(", "), *layers)


@dataclass(frozen=True)
class _Pair:
    """Two models. limit: the shorter trained length; gguf: whether one is a GGUF file, whose numbers are fp32."""

    limit: int
    gguf: bool

    def of_layers(self, where: str, a: Layer, b: Layer) -> Iterator[Difference]:
        if a.attends != b.attends:
            yield Difference(where, f"{kind(a.kind).en} against {kind(b.kind).en}")
        if a.window != b.window:
            felt = Unfelt if min(a.window or self.limit, b.window or self.limit) >= self.limit else Difference
            yield felt(where, f"a window of {a.window or 'everything'} against {b.window or 'everything'}")
        if a.chunk != b.chunk:
            yield Difference(where, f"chunks of {a.chunk or 'everything'} against {b.chunk or 'everything'}")
        if a.causal != b.causal:
            yield Difference(where, f"{_direction(a)} against {_direction(b)}")
        names = [tuple(use.name for use in layer.uses) for layer in (a, b)]
        if names[0] != names[1]:
            yield Difference(where, f"{_listed(names[0])} against {_listed(names[1])}")
            return
        for use_a, use_b in zip(a.uses, b.uses, strict=True):
            rotate = use_a.rotation is not None and use_b.rotation is not None
            yield from (self._of_rotations if rotate else self._of_arguments)(where, use_a, use_b)

    def _of_arguments(self, where: str, a: Use, b: Use) -> Iterator[Difference]:
        arguments_a, arguments_b = dict(a.arguments), dict(b.arguments)
        unlike = {
            name: f"{name} {arguments_a.get(name)} against {arguments_b.get(name)}"
            for name in {**arguments_a, **arguments_b}
            if arguments_a.get(name) != arguments_b.get(name)
        }
        if not unlike:
            return
        told = f"{a.name}: {'; '.join(unlike.values())}"
        if self.gguf and unlike.keys() <= CUT_OFF:
            yield Unfelt(where, told)
        else:
            yield Difference(where, told, *_first_bias_apart(a, b, self.limit))

    def _of_rotations(self, where: str, a: Use, b: Use) -> Iterator[Difference]:
        assert a.rotation is not None
        assert b.rotation is not None
        f_a, f_b = a.rotation.frequencies().at_length(self.limit), b.rotation.frequencies().at_length(self.limit)
        for name, default in (
            ("layout", "interleaved"),
            ("returns", None),
            ("reverse", False),
            ("trailing", False),
            ("d_head", 0),
        ):
            in_a, in_b = dict(a.arguments).get(name, default), dict(b.arguments).get(name, default)
            if in_a == in_b or (name == "layout" and _from(PERMUTES, a, b)):
                continue
            told = f"RoPE: {name} {in_a} against {in_b}"
            if name == "returns":
                yield Unfelt(where, f"{told}: keys are cached in another order of channels")
            elif name == "layout" and _from(RECORD, a, b) and not self.gguf:
                yield Unfelt(where, f"{told}, for which the weights were converted")
            else:
                yield Difference(where, told, 0 if name == "d_head" else 1, 0)
        if len(f_a) != len(f_b) or f_a.axes != f_b.axes:
            yield Difference(where, f"RoPE: {_pairs(f_a)} against {_pairs(f_b)}", 1, min(len(f_a), len(f_b)))
            return
        if not self._same((f_a.softmax_scale,), (f_b.softmax_scale,)):
            yield Difference(where, f"softmax scale × {f_a.softmax_scale:.7g} against × {f_b.softmax_scale:.7g}", 0)
        if not self._same((*f_a.values, f_a.cos_sin_scale), (*f_b.values, f_b.cos_sin_scale)):
            position, pair = first_apart(f_a, f_b, self.limit)
            yield Difference(where, f"RoPE: {_unlike(a.rotation, b.rotation)}", position, pair)

    def _same(self, first: tuple[float, ...], second: tuple[float, ...]) -> bool:
        """Equal, up to fp32 where one is a GGUF file."""
        return first == second or (
            self.gguf and all(math.isclose(a, b, rel_tol=FP32) for a, b in zip(first, second, strict=True))
        )


def _direction(layer: Layer) -> str:
    return "causal" if layer.causal else "both directions"


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(names) or "no position"


def _from(origin: str, a: Use, b: Use) -> bool:
    """Whether the layout of one of them comes from there."""
    return origin in (dict(a.said_by).get("layout"), dict(b.said_by).get("layout"))


def _pairs(frequencies: Frequencies) -> str:
    axes = f" on {frequencies.n_axes} axes" if frequencies.axes else ""
    return f"{len(frequencies)} pairs{axes}"


def _unlike(a: Rotation, b: Rotation) -> str:
    """The parameters in which two rotations differ: "base 10,000 against 500,000; factor 8 against 32"."""
    settings_a, settings_b = _settings(a, b), _settings(b, a)
    return (
        "; ".join(
            f"{name} {_short(settings_a.get(name))} against {_short(settings_b.get(name))}"
            for name in {**settings_a, **settings_b}
            if settings_a.get(name) != settings_b.get(name)
        )
        or "other axes"
    )


def _settings(rotation: Rotation, other: Rotation) -> dict[str, Any]:
    """What a rotation is made of; what the other one of the same kind says too, by its default."""
    usual: dict[str, Any] = {}
    if rotation.kind == other.kind and "." not in rotation.kind:
        from posenc import frequencies

        made = inspect.signature(getattr(frequencies, rotation.kind)).parameters.values()
        usual = {
            one.name: one.default for one in made if one.default is not one.empty and one.name in dict(other.parameters)
        }
    return {
        "base": rotation.base,
        "scaling": scaling_name(rotation.kind).en,
        "width": rotation.width,
        **usual,
        **dict(rotation.parameters),
    }


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
    for pair, (frequency_a, frequency_b) in enumerate(zip(a, b, strict=True)):
        position = _pair_apart(frequency_a, frequency_b, a.cos_sin_scale, b.cos_sin_scale, limit)
        if position is not None and (best is None or position < best[0]):
            best = position, pair
    return best if best is not None else (None, None)


def _pair_apart(frequency_a: float, frequency_b: float, r: float, s: float, limit: int) -> int | None:
    """The smallest whole p with |r·e^{iωp} - s·e^{iω'p}|² = (r-s)² + 4rs·sin²(p(ω-ω')/2) > 0.001²."""
    bound = (APART**2 - (r - s) ** 2) / (4 * r * s)
    delta = abs(frequency_a - frequency_b)
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

    bias_a, bias_b = a.build(), b.build()
    if not (isinstance(bias_a, DistanceBias) and isinstance(bias_b, DistanceBias)) or any(
        True for _ in bias_a.parameters()
    ):
        return None, None
    delta = torch.arange(min(limit, 2**15))
    terms_a, terms_b = bias_a.at_distance(delta), bias_b.at_distance(delta)
    heads = min(len(terms_a), len(terms_b))
    apart = ((terms_a[:heads] - terms_b[:heads]).abs() > APART).nonzero()
    if not len(apart):
        return None, None
    head, position = min(apart.tolist(), key=lambda index: (index[1], index[0]))
    return position, head
