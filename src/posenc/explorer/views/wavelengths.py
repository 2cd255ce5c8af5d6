"""The wavelength of each pair of channels, by the formula or from a model's configuration."""

from __future__ import annotations

import json
import math
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from posenc import frequencies
from posenc.configs import PositionSpec, Rotation, source, spec_of
from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.parameters import Refused
from posenc.explorer.template import program
from posenc.frequencies import Frequencies

ORDER = 50

MOST_PAIRS = 4096
LONGEST = 2**20


def _example(**keys: Any) -> str:
    return json.dumps(keys, indent=1)


EXAMPLES = {
    "Llama 3.1 8B": _example(
        model_type="llama",
        hidden_size=4096,
        num_attention_heads=32,
        num_hidden_layers=32,
        max_position_embeddings=131072,
        rope_theta=500000.0,
        rope_scaling={
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    ),
    "Qwen2.5 7B + YaRN": _example(
        model_type="qwen2",
        hidden_size=3584,
        num_attention_heads=28,
        num_hidden_layers=28,
        max_position_embeddings=131072,
        rope_theta=1000000.0,
        rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
    ),
    "Gemma 3 4B": _example(
        model_type="gemma3_text",
        hidden_size=2560,
        num_attention_heads=8,
        head_dim=256,
        num_hidden_layers=34,
        max_position_embeddings=131072,
        sliding_window=1024,
        sliding_window_pattern=6,
        rope_theta=1000000.0,
        rope_local_base_freq=10000.0,
        rope_scaling={"rope_type": "linear", "factor": 8.0},
    ),
}
WITH_EXAMPLES: Any = {"examples": EXAMPLES}


class Parameters(Base):
    base: float = Field(default=10000.0, ge=2, le=1e8)
    d_model: int = Field(default=128, ge=2, le=1024)
    length: int = Field(default=4096, ge=16, le=LONGEST)
    config: str = Field(default="", max_length=16_384, json_schema_extra=WITH_EXAMPLES)
    layer: int = Field(default=0, ge=0, le=511)


EXPORTED = (*(Parameters(config=text) for text in EXAMPLES.values()), Parameters(config=EXAMPLES["Gemma 3 4B"], layer=5))


def data(params: Parameters) -> Data:
    if params.config.strip():
        return _of_model(params)
    rotary = frequencies.rotary(params.d_model, params.base)
    python = program(__file__, d_model=params.d_model, base=params.base, length=params.length)
    return _answer(rotary, params.length, python, {})


def _of_model(params: Parameters) -> Data:
    """Reads the configuration. Any error of a family's reader becomes Refused with a readable message."""
    try:
        config = source.parsed(params.config.encode(), "config")
        path, spec, number, rotation = _turning(spec_of(config), params.layer)
        length = min(spec.trained_length or params.length, LONGEST)
        if rotation.width > 2 * MOST_PAIRS:
            raise Refused(f"config: {rotation.width} channels that turn are more than the {2 * MOST_PAIRS} drawn here")
        turning = rotation.frequencies().at_length(length)
    except ValueError:
        raise
    except Exception as error:
        raise Refused(f"config: cannot be read: {type(error).__name__}: {str(error)[:200]}") from error
    part = "".join(f"[{name!r}]" for name in path.split(".") if name)
    python = f'''import json
import math
import torch
import posenc

config = json.loads(r"""
{params.config.strip()}
""")
spec = posenc.read_config(config){part}
rotation = spec.layer({params.layer}).uses[{number}].rotation
turning = rotation.frequencies().at_length({length})
print(turning)  # with where they came from
omega = torch.tensor(turning, dtype=torch.float64)
wavelength = 2 * math.pi / omega.abs()
sine_at_end = (omega * {length}).sin()
unfinished = (wavelength > {length}).sum()'''
    more = {}
    plain = frequencies.rotary(rotation.width, rotation.base)
    if len(plain) == len(turning) and plain.values != turning.values:
        more["original"] = torch.tensor(plain, dtype=torch.float64)
        python += "\noriginal = torch.tensor(posenc.frequencies.rotary(rotation.width, rotation.base), dtype=torch.float64)"
    layer = spec.layers[params.layer]
    model = {
        "family": spec.family,
        "part": path,
        "layer": params.layer,
        "n_layers": len(spec.layers),
        "kind": layer.kind,
        "window": layer.window,
        "trained": spec.trained_length,
        "base": rotation.base,
        "width": rotation.width,
        "values_from": turning.values_from,
        "cos_sin_scale": turning.cos_sin_scale,
        "trained_length": dict(rotation.parameters).get("trained_length"),
    }
    return _answer(turning, length, python, {"model": model}, **more)


def _turning(whole: PositionSpec, layer: int) -> tuple[str, PositionSpec, int, Rotation]:
    """The rotary encoding of that layer, in the text part if there is one. Raises Refused if there is none."""
    parts = sorted(((path, part) for path, part in whole.walk() if part.layers), key=lambda pair: "text" not in pair[0])
    if not parts:
        raise Refused(f"config: {whole.family} has no attention layers")
    for path, part in parts:
        for number, use in enumerate(part.layers[layer].uses if layer < len(part.layers) else ()):
            if use.rotation is not None:
                return path, part, number, use.rotation
    _, part = parts[0]
    if layer >= len(part.layers):
        raise Refused(f"layer: {part.family} has layers 0 … {len(part.layers) - 1}, got {layer}")
    names = " and ".join(use.name for use in part.layers[layer].uses) or "no positional encoding (NoPE)"
    raise Refused(
        f"config: layer {layer} of {part.family} uses {names}, which has no rotary frequencies; "
        "expected a model with RoPE, such as Llama, Qwen or Gemma"
    )


def _answer(omegas: Frequencies, length: int, python: str, facts: dict[str, Any], **more: Tensor) -> Data:
    omega = torch.tensor(omegas, dtype=torch.float64)
    wavelength = 2 * math.pi / omega.abs()
    about = {"length": length, "unfinished": int(((wavelength > length) & (omega != 0)).sum())}
    return Data(
        {"omega": omega, "wavelength": wavelength, "sine_at_end": (omega * length).sin(), **more}, python, about | facts
    )
