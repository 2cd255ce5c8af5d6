"""A saved model with what was attached to it."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn

from posenc.checked import checked
from posenc.transformers.attach import PARAMETERS, attach
from posenc.transformers.saved import FORMAT, KEY, restored


@checked
def from_pretrained(folder: str | PathLike[str], **options: Any) -> nn.Module:
    """The model of a folder that `save_pretrained` wrote, with what was attached to it; `options` go to transformers.

    Raises FileNotFoundError where there is no such folder: nothing is looked for on a hub. Raises ValueError where nothing
    is attached in that folder, for another format, and where a parameter of the encodings is missing from the weights.
    """
    if not (Path(folder) / "config.json").is_file():
        raise FileNotFoundError(f"folder: expected one with a config.json that save_pretrained wrote, got {folder}")
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder)
    made = getattr(config, KEY, None)
    if not isinstance(made, dict):
        raise ValueError(f"folder: {folder} has nothing of posenc in its config.json; load it with transformers")
    if made.get("format") != FORMAT:
        raise ValueError(f"folder: {folder} was written in format {made.get('format')!r}, this posenc reads {FORMAT}")
    delattr(config, KEY)
    model: nn.Module = AutoModelForCausalLM.from_pretrained(folder, config=config, **options)
    encodings = [restored(one) for one in made["encodings"]]
    for number, encoding in enumerate(encodings):
        attach(model, encoding, layers=[int(n) for n, own in made["layers"].items() if own == number])
    wanted = {name for name in model.state_dict() if name.startswith(f"{PARAMETERS}.")}
    stored = _stored(folder, wanted)
    if missing := sorted(wanted - stored.keys()):
        raise ValueError(f"folder: {folder} lacks the weights {missing}")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in stored:
                parameter.copy_(stored[name])
    return model


def _stored(folder: Any, names: set[str]) -> dict[str, Any]:
    from safetensors import safe_open

    found: dict[str, Any] = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            found |= {name: file.get_tensor(name) for name in file.keys() if name in names}  # noqa: SIM118
    return found
