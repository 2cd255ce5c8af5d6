"""What `posenc.transformers.attach` has put into a saved model: the entry "posenc" of its config.json.

    "model_type": "posenc_llama"                  the folder's, which only posenc's classes load
    "architectures": ["PosencLlamaForCausalLM"]   so that a server without posenc's plug-in refuses the folder
    "posenc": {"model_type": "llama",             the model's own, by which all other keys are read
               "encodings": [{"class": "posenc.encodings.alibi.ALiBi", "arguments": {…}}, {"stack": […]}, …],
               "layers": {"0": 0, "1": 0}}        these layers have them in place of the model's own; "encoder.0" and
                                                  "decoder.0" in a model with both

The entry is read as data, without torch: no class is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from posenc.configs.errors import ConfigError
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec, Remark, Rotation, Use

if TYPE_CHECKING:
    from posenc.frequencies import Arithmetic, Frequencies

KEY, PREFIX = "posenc", "posenc_"
NAMED = "Posenc"  # the architectures of the folder begin with it: a server that knew them would drop the encoding
OWN = "posenc."  # the path of classes of posenc begins with it
GIVEN = "configs.attached.listed_frequencies"  # the kind of a rotation whose frequencies are listed
WRITTEN = ("auto_map", KEY)  # keys of the file that are posenc's


def own_config(config: dict[str, Any]) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    """The configuration as the model itself has it, and the entry of what is attached; None where nothing is."""
    entry = config.get(KEY)
    if not isinstance(entry, Mapping):
        if str(config.get("model_type", "")).startswith(PREFIX):
            raise ConfigError(f"{KEY}: expected the entry that says what is attached, got {entry!r}")
        return config, None
    model_type = entry.get("model_type")
    if not isinstance(model_type, str) or not model_type:
        raise ConfigError(f"{KEY}.model_type: expected the model's own type such as 'llama', got {model_type!r}")
    kept = {name: value for name, value in config.items() if name not in WRITTEN}
    return kept | {"model_type": model_type} | architectures(config), entry


def architectures(config: Mapping[str, Any]) -> dict[str, Any]:
    """The entry "architectures" with the model's own names; empty where the file has none."""
    names = config.get("architectures")
    if not isinstance(names, list):
        return {}
    return {"architectures": [name.removeprefix(NAMED) if isinstance(name, str) else name for name in names]}


def with_attached(spec: PositionSpec, entry: Mapping[str, Any]) -> PositionSpec:
    """The model with the encodings of the entry in its layers. Raises ConfigError for an entry that does not fit it."""
    try:
        encodings, layers = list(entry["encodings"]), by_part(entry["layers"])
        uses = [_uses(entry, f"{KEY}.encodings[{number}]") for number, entry in enumerate(encodings)]
        chosen = {part: {n: uses[int(number)] for n, number in of_part.items()} for part, of_part in layers.items()}
        if not chosen:
            raise ValueError("layers: expected a number for each layer, got none")
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{KEY}: is not as posenc writes it: {type(error).__name__}: {str(error)[:200]}") from error
    for part, of_part in chosen.items():
        spec = _in_part(spec, part, of_part) if part else _within(spec, of_part)
    return spec


def by_part(layers: Mapping[str, int]) -> dict[str, dict[int, int]]:
    """The layers of each part of the model, by number: {"0": 0, "1": 0} is {"": {0: 0, 1: 0}}, and
    {"encoder.0": 0, "decoder.0": 1} is {"encoder": {0: 0}, "decoder": {0: 1}}."""
    parts: dict[str, dict[int, int]] = {}
    for name, number in layers.items():
        part, _, n = name.rpartition(".")
        parts.setdefault(part, {})[int(n)] = number
    return parts


def has_attached(spec: PositionSpec) -> bool:
    return any(remark.key == KEY for _, part in spec.walk() for remark in part.remarks)


def listed_frequencies(
    width: int,
    base: float,
    *,
    values: tuple[float, ...],
    cos_sin_scale: float = 1.0,
    softmax_scale: float = 1.0,
    axes: tuple[int, ...] = (),
    arithmetic: Arithmetic = "float64",
) -> Frequencies:
    """Frequencies that the file lists; as `Rotation.kind` names it."""
    from posenc.frequencies import Frequencies

    return Frequencies(values, cos_sin_scale, softmax_scale, axes, arithmetic=arithmetic)


def _within(spec: PositionSpec, chosen: dict[int, tuple[Use, ...]]) -> PositionSpec:
    """In the part whose layers attend: the model itself, or the first of its parts that has as many layers."""
    if spec.layers:
        if missing := [n for n in chosen if not 0 <= n < len(spec.layers)]:
            raise ConfigError(f"{KEY}.layers: the model has {len(spec.layers)} layers, got {missing[0]}")
        layers = [replace(layer, uses=chosen.get(n, layer.uses)) for n, layer in enumerate(spec.layers)]
        remark = say(
            "{count} of {layers} layers have an encoding attached by posenc, in place of the model's own",
            count=len(chosen),
            layers=len(layers),
        )
        return replace(spec, layers=tuple(layers), remarks=(*spec.remarks, Remark("note", KEY, remark)))
    for number, part in enumerate(spec.parts):
        if len(part.layers) > max(chosen) and all(part.layers[n].attends for n in chosen):
            changed = _within(part, chosen)
            return replace(spec, parts=(*spec.parts[:number], changed, *spec.parts[number + 1 :]))
    raise ConfigError(f"{KEY}.layers: no part of the model has a layer {max(chosen)}")


def _in_part(spec: PositionSpec, name: str, chosen: dict[int, tuple[Use, ...]]) -> PositionSpec:
    """In the part of that name."""
    if name not in (part.part for part in spec.parts):
        raise ConfigError(f"{KEY}.layers: the model has no part {name!r}")
    return replace(spec, parts=tuple(_within(part, chosen) if part.part == name else part for part in spec.parts))


def _uses(entry: Mapping[str, Any], where: str) -> tuple[Use, ...]:
    if "stack" in entry:
        return tuple(use for n, part in enumerate(entry["stack"]) for use in _uses(part, f"{where}.stack[{n}]"))
    path, arguments = str(entry["class"]), dict(entry["arguments"])
    if not path.startswith(OWN):
        raise ValueError(f"{where}.class: {path} is not posenc's, and a configuration imports no code")
    if arguments.get("length") == 1:  # of frequencies that do not depend on it
        del arguments["length"]
    width = arguments.get("rotary_dim") or arguments.get("d_head")
    values = {name: _value(value, width) for name, value in arguments.items()}
    if isinstance(values.get("frequencies"), Rotation):
        values["base"] = None
    return (
        Use(
            path.removeprefix(OWN),
            tuple((name, value) for name, value in values.items() if value is not None),
            tuple((name, f"{where}.{name}") for name in values),
        ),
    )


def _value(value: Any, width: Any) -> Any:
    if isinstance(value, list):
        return tuple(_value(item, width) for item in value)
    if not isinstance(value, Mapping):
        return value
    if "frozenset" in value:
        return frozenset(value["frozenset"])
    held = value["frequencies"]
    if held.get("base") is not None:
        return Rotation(int(held["width"]), float(held["base"]))
    kept = {name: held[name] for name in ("values", "cos_sin_scale", "softmax_scale", "axes")}
    listed = {name: tuple(item) if isinstance(item, list) else item for name, item in kept.items()}
    return Rotation(2 * len(held["values"]), 10000.0, GIVEN, tuple(listed.items()))
