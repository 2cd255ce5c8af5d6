"""Python that builds an encoding of a specification: what `posenc inspect` prints of a model, and docs/images.md."""

from __future__ import annotations

from typing import Any

from posenc.configs.spec import BY_AXIS, Rotation, Use

NAMES = {"MixedRoPE": "rope_mixed", "Sinusoidal": "sinusoidal", "Sinusoidal3D": "sinusoidal_3d"}
"""Classes that have a name of the catalogue with their own arguments."""


def as_python(use: Use, frequencies: str = "") -> str:
    """An expression in which only `posenc` is free, after the import of what has no name in the catalogue.

    frequencies   an expression that stands for those of the use
    """
    arguments, rotation = dict(use.arguments), use.rotation
    if use.name == "RoPE" and rotation is not None:
        return _rope(arguments, rotation, frequencies)
    written = {
        name: frequencies or frequencies_as_python(value) if isinstance(value, Rotation) else repr(value)
        for name, value in arguments.items()
    }
    if written.get("layout") == "'interleaved'" and use.name == "WideRoPE":
        del written["layout"]
    if name := NAMES.get(use.name):
        return _call(f'posenc.create("{name}"', written, opened=True)
    module = use.encoding.rpartition(".")[0]
    return f"from posenc.{module} import {use.name}\n{_call(f'{use.name}(', written)}"


def _rope(arguments: dict[str, Any], rotation: Rotation, frequencies: str) -> str:
    """RoPE under the shortest name that it has."""
    d_head, parameters = arguments["d_head"], dict(rotation.parameters)
    more = {name: repr(value) for name, value in arguments.items() if not isinstance(value, Rotation) and name != "d_head"}
    if more.get("layout") == "'interleaved'":
        del more["layout"]
    base = {} if rotation.base == 10000 else {"base": repr(float(rotation.base))}
    plain = not frequencies and not rotation.maps and more.keys() <= {"layout"}
    if plain and rotation.kind == BY_AXIS and parameters.keys() == {"sizes"} and rotation.width == d_head:
        name, told = "axial_rope", {"sizes": repr(tuple(parameters["sizes"])), **base}
    elif plain and rotation.kind == "rotary" and rotation.width == d_head:
        name, told = "rope", base
    elif plain and rotation.kind == "rotary":
        name, told = "partial", {"fraction": repr(rotation.width / d_head), **base}
    else:
        name, told = "rope", {"frequencies": frequencies or frequencies_as_python(rotation)}
    return _call(f'posenc.create("{name}"', {"d_head": repr(d_head), **told, **more}, opened=True)


def frequencies_as_python(rotation: Rotation) -> str:
    """An expression of `posenc.frequencies`."""
    parameters = dict(rotation.parameters)
    if rotation.kind == BY_AXIS:
        made = _by_axis(rotation, parameters)
    elif "." in rotation.kind:
        made = _call(
            f"posenc.{rotation.kind}({rotation.width}, {float(rotation.base)!r}", _written(parameters), opened=True
        )
    else:
        made = f"posenc.frequencies.rotary({rotation.width}, {float(rotation.base)!r})"
        if rotation.kind != "rotary":
            made = _call(f"posenc.frequencies.{rotation.kind}({made}", _written(parameters), opened=True)
    for name, arguments in rotation.maps:
        made = _call(f"posenc.frequencies.{name}({made}", _written(dict(arguments)), opened=True)
    return made


def _by_axis(rotation: Rotation, parameters: dict[str, Any]) -> str:
    sizes = tuple(parameters["sizes"])
    if parameters.keys() == {"sizes"}:
        return f"posenc.frequencies.separate({sizes}, {float(rotation.base)!r})"
    spectra = [f"posenc.frequencies.rotary({size}, {float(rotation.base)!r})" for size in sizes]
    for name in ("ntk", "linear"):
        factors = parameters.get(name, (1.0,) * len(sizes))
        spectra = [
            one if by == 1 else f"posenc.frequencies.{name}({one}, {by!r})"
            for one, by in zip(spectra, factors, strict=True)
        ]
    return f"posenc.frequencies.of_axes({', '.join(spectra)})"


def _written(values: dict[str, Any]) -> dict[str, str]:
    return {name: repr(value) for name, value in values.items()}


def _call(beginning: str, arguments: dict[str, str], *, opened: bool = False) -> str:
    """A call; `opened`: the beginning has an argument already."""
    told = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return f"{beginning}{', ' if opened and told else ''}{told})"
