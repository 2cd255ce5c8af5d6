"""From a config.json to a PositionSpec."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from posenc.configs import attached, gguf, source
from posenc.configs.beside import with_weights_beside
from posenc.configs.errors import ConfigError
from posenc.configs.family import read_section
from posenc.configs.keys import Keys
from posenc.configs.spec import PositionSpec
from posenc.support.checked import checked
from posenc.support.checks import shown
from posenc.support.languages import Words, joined


@checked
def read_config(config: str | PathLike[str] | Mapping[str, Any], *, defaults: bool = True) -> PositionSpec:
    """The positional encoding of every layer of a model, exactly as transformers 5.23 computes it.

        spec = read_config("config.json")
        spec.encoding(layer=3)                       # a posenc encoding
        spec["text_config"].encoding(3).frequencies  # a part of a multimodal model

    config    a file, a folder with config.json, a GGUF file, "-" for standard input, or a mapping; beside a config.json,
              the headers of safetensors files are read for sizes that it lacks and for the layout of converted weights
    defaults  whether a missing base is that of the model's class, with a note; otherwise it is an error

    Warns, in one line, of keys that are read otherwise than they look, or not at all; `spec.remarks` has them, and notes.
    Raises ConfigError (one line with key, value, expectation and remedy) for a file that is no model's configuration, an
    unknown family or an invalid number; FileNotFoundError if there is no file.
    """
    spec = spec_of(config, defaults=defaults)
    if graver := [remark for _, part in spec.walk() for remark in part.remarks if remark.grade != "note"]:
        remarks = "; ".join(dict.fromkeys(f"{remark.key}: {remark.text}" for remark in graver))
        warnings.warn(f"posenc: this configuration of {spec.family} is read with remarks: {remarks}", stacklevel=3)
    return spec


@checked
def spec_of(config: str | PathLike[str] | Mapping[str, Any], *, defaults: bool = True) -> PositionSpec:
    """`read_config` for what shows the remarks itself: no warning."""
    if isinstance(config, Mapping) or config == "-":
        return _spec(config, defaults)
    try:
        return gguf.spec_of_gguf(config) if gguf.is_gguf(Path(config)) else _spec(config, defaults)
    except ConfigError as error:
        if error.words.en.startswith(str(config)):
            raise
        raise ConfigError(joined((Words(str(config)), error.words), ": ", "：")) from error


def _spec(config: str | PathLike[str] | Mapping[str, Any], defaults: bool) -> PositionSpec:
    data, entry = attached.own_config(source.load(config))
    model_type = source.family(data)
    if model_type is None and (another := source.another(data)):
        raise ConfigError(f"model_type: missing; this is {another}: give the model's config.json")
    if not isinstance(model_type, str):
        got = "missing" if model_type is None else f"got {shown(model_type)}"
        raise ConfigError(
            f"model_type: {got}; expected the name of a family such as 'llama', which decides how the other keys of the "
            "config are read"
        )
    keys, folder = Keys(data, model_type, defaults=defaults), source.folder(config)
    spec = read_section(keys if folder is None else with_weights_beside(keys, folder))
    if (another := source.another(data, sure=True)) and not any(part.keys for _, part in spec.walk()):
        raise ConfigError(f"model_type: {model_type!r}, but no other key is of a model; this is {another}")
    return spec if entry is None else attached.with_attached(spec, entry)
