"""A saved model with what was attached to it."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn

from posenc.configs.attached import KEY, architectures
from posenc.configs.source import CONSTANTS
from posenc.support import strict_json
from posenc.support.checked import checked
from posenc.transformers.attachment import PARAMETERS, RECORD, chosen, put
from posenc.transformers.decoder import tried
from posenc.transformers.saved import restored


@checked
def from_pretrained(folder: str | PathLike[str], *, trust_code: bool = False, **options: Any) -> nn.Module:
    """The model of a folder that `save_pretrained` wrote, of the class that was saved, with what was attached to it.

    options     go to transformers' from_pretrained
    trust_code  imports the module of an encoding that is not posenc's, as the folder names it, which runs its code

    Raises FileNotFoundError where there is no such folder: nothing is looked for on a hub. Raises ValueError where nothing
    is attached in that folder; for an entry that posenc has not written, naming the place in it; for an encoding that is
    not posenc's, without trust_code; for a class of model that transformers does not have; and where a parameter of the
    encodings is missing from the weights.
    """
    path = Path(folder) / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"folder: expected one with a config.json that save_pretrained wrote, got {folder}")
    config = _read(path)
    model: nn.Module = load(_class_of(config, path), folder, trust_code=trust_code, **options)
    return model


def load(
    kind: Any, folder: str | PathLike[str], *args: Any, trust_code: bool, overrides: Any = None, **options: Any
) -> Any:
    """A model of that class of transformers from the folder, with what the folder says is attached.

    overrides   a configuration instead of the folder's, whose entry stays
    """
    path = Path(folder) / "config.json"
    held = _read(path)
    entry = held[KEY]
    try:
        encodings, layers = restored(entry, trust_code=trust_code)
        config = _own(held if overrides is None else overrides.to_dict(), entry["model_type"])
    except ValueError as error:
        raise ValueError(f"folder: {path}: {error}") from error
    model: nn.Module = kind.from_pretrained(folder, *args, config=config, **options)
    of_parts = {
        part: {n: encoding for number, encoding in enumerate(encodings) for n, index in of_part.items() if index == number}
        for part, of_part in layers.items()
    }
    try:
        stacks = tried(model)
        known = {stack.part: list(stack.attention) for stack in stacks}
        for part, of_layers in of_parts.items():
            if part not in known:
                raise ValueError(f"layers: {type(model).__name__} has no {part or 'single stack of layers'}")
            chosen(of_layers, known[part])
        put(model, stacks, of_parts)
    except (ValueError, TypeError) as error:
        raise ValueError(f"folder: {path}: {KEY} does not fit the model: {error}") from error
    getattr(model, RECORD).of_folder = True
    wanted = {name for name in model.state_dict() if name.startswith(f"{PARAMETERS}.")}
    stored = _stored(folder, wanted)
    if missing := sorted(wanted - stored.keys()):
        raise ValueError(f"folder: {folder} lacks the weights {missing}")
    if other := [
        name for name, parameter in model.named_parameters() if stored.get(name, parameter).shape != parameter.shape
    ]:
        raise ValueError(f"folder: {folder} has {other[0]} of another shape than its encoding's arguments say")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in stored:
                parameter.copy_(stored[name])
    return model


def own_config(folder: str | PathLike[str]) -> Any:
    """The model's own configuration in a folder that `save_pretrained` wrote. Raises ValueError for an entry of others."""
    path = Path(folder) / "config.json"
    held = _read(path)
    try:
        return _own(held, held[KEY].get("model_type") if isinstance(held[KEY], dict) else None)
    except ValueError as error:
        raise ValueError(f"folder: {path}: {error}") from error


def _class_of(config: Any, path: Path) -> Any:
    """The class that was saved, with its head: AutoModelForCausalLM would put a new one in the place of another's."""
    import transformers

    names = architectures(config).get("architectures", [])
    model_class = getattr(transformers, names[0], None) if len(names) == 1 else None
    if not (isinstance(model_class, type) and issubclass(model_class, transformers.PreTrainedModel)):
        raise ValueError(f"folder: {path}: architectures: expected the name of one model of transformers, got {names}")
    return model_class


def _own(config: Mapping[str, Any], model_type: Any) -> Any:
    """The model's own configuration, without what is posenc's in the file. Raises ValueError for a type without a class."""
    from transformers import CONFIG_MAPPING

    if not isinstance(model_type, str) or model_type not in CONFIG_MAPPING:
        raise ValueError(f"{KEY}.model_type: expected a model type of transformers such as 'llama', got {model_type!r}")
    kept = {name: value for name, value in config.items() if name not in (KEY, "auto_map")}
    return CONFIG_MAPPING[model_type].from_dict(kept | {"model_type": model_type} | architectures(config))


def _read(path: Path) -> dict[str, Any]:
    """The configuration of a folder, which has an entry of posenc."""
    try:
        config = strict_json.loads(path.read_bytes(), CONSTANTS)
    except ValueError as error:
        raise ValueError(f"folder: {path}, whose entry {KEY} says what is attached, cannot be read: {error}") from error
    if not isinstance(config, dict) or KEY not in config:
        raise ValueError(f"folder: {path.parent} has nothing of posenc in its config.json; load it with transformers")
    return config


def _stored(folder: Any, names: set[str]) -> dict[str, Any]:
    from safetensors import safe_open

    tensors: dict[str, Any] = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            tensors |= {name: file.get_tensor(name) for name in file.keys() if name in names}  # noqa: SIM118
    return tensors
