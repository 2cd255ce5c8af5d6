"""From a config.json to a PositionSpec."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from posenc.configs import gguf, source
from posenc.configs.beside import with_weights_beside
from posenc.configs.errors import ConfigError
from posenc.configs.family import read_section
from posenc.configs.keys import Keys
from posenc.configs.spec import PositionSpec
from posenc.support.checked import checked


@checked
def read_config(config: str | PathLike[str] | Mapping[str, Any], *, defaults: bool = True) -> PositionSpec:
    """The positional encoding of every layer of a model, exactly as transformers 5.23 computes it.

        spec = read_config("config.json")
        spec.encoding(layer=3)                       # a posenc encoding
        spec["text_config"].encoding(3).frequencies  # a part of a multimodal model

    config    a file, a folder with config.json, a GGUF file, "-" for standard input, or a mapping; beside a config.json,
              the headers of safetensors files are read for sizes that it lacks and for the layout of converted weights
    defaults  whether a missing base is that of the model's class, with a note; otherwise it is an error

    Raises ConfigError (one line with key, value, expectation and remedy) for a file that is no model's configuration, an
    unknown family or an invalid number; FileNotFoundError if there is no file.
    """
    if not isinstance(config, Mapping) and gguf.is_gguf(Path(config)):
        return gguf.spec_of_gguf(config)
    found = source.load(config)
    model_type = found.get("model_type", "" if found.get("architectures") else None)
    if not isinstance(model_type, str):
        raise ConfigError(
            f"model_type: expected the name of a family such as 'llama', got {model_type!r}; it decides "
            "how the other keys of the config are read"
        )
    keys, folder = Keys(found, model_type, defaults=defaults), source.folder(config)
    return read_section(keys if folder is None else with_weights_beside(keys, folder))
