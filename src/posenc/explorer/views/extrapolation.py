"""Angles not seen in training, for each way to scale rotary frequencies, and measured results at greater lengths.

Legend: m methods, n pairs of channels, a arms, l lengths, s seeds.
"""

from __future__ import annotations

import math
from pprint import pformat
from typing import Any, Literal, NamedTuple

from pydantic import Field

from posenc import frequencies
from posenc.catalogue import measured
from posenc.configs import ConfigError, source, spec_of
from posenc.configs.report.extension import extensible, pretrained_length, rotation_to_change
from posenc.configs.spec import STARTS, Rotation
from posenc.explorer.data import Data, computed
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.template import program
from posenc.frequencies import Frequencies
from posenc.pictures.measures import unfinished_pairs

ORDER = 160

Task = Literal["language_model", "chains", "passkey", "recall", "word_order", "copy", "counting", "addition"]
LOW, HIGH = 1.0, 4.0  # low_freq_factor and high_freq_factor of Llama 3
MOST_PAIRS = 512

ARRAYS = (
    *("omega", "in_training", "at_target", "covered", "new"),
    *("mean", "seeds", "low", "high", "changed", "changed_seeds"),
)


class Parameters(Base):
    d: int = Field(default=128, ge=4, le=512, multiple_of=2)
    base: float = Field(default=10000.0, ge=2, le=1e9)
    trained: int = Field(default=4096, ge=16, le=262144)
    factor: float = Field(default=4.0, ge=1, le=64)
    config: str = Field(default="", max_length=20000)
    task: Task = "language_model"


class Given(NamedTuple):
    """The frequencies to scale: a width, a base, a trained length, and those of the configuration, if there is one."""

    plain: Frequencies
    trained: int
    theirs: Frequencies | None = None
    python: str = ""
    family: str = ""


def data(params: Parameters) -> Data:
    given_frequencies = (
        _of_file(params) if params.config.strip() else Given(frequencies.rotary(params.d, params.base), params.trained)
    )
    of = {
        "none": given_frequencies.plain,
        "linear": frequencies.linear(given_frequencies.plain, params.factor),
        "ntk": frequencies.ntk(given_frequencies.plain, params.factor),
        "yarn": frequencies.yarn(given_frequencies.plain, params.factor, given_frequencies.trained),
        "llama3": frequencies.llama3(given_frequencies.plain, params.factor, LOW, HIGH, given_frequencies.trained),
        **({} if given_frequencies.theirs is None else {"config": given_frequencies.theirs}),
    }
    return computed(_python(params, given_frequencies), ARRAYS, _facts(params, given_frequencies, of))


def _facts(params: Parameters, plan: Given, of: dict[str, Frequencies]) -> dict[str, Any]:
    assert plan.plain.base is not None
    assert plan.plain.width is not None
    low, high = frequencies.yarn_range(plan.plain, plan.trained)
    return {
        "d": plan.plain.width,
        "base": plan.plain.base,
        "trained": plan.trained,
        "family": plan.family,
        "unfinished": unfinished_pairs(plan.plain.width, plan.trained, plan.plain.base),
        "ntk_base": of["ntk"].base,
        "ramp": [low, high],
        "llama3": [LOW, HIGH],
        "methods": [
            {
                "name": name,
                "cos_sin_scale": f.cos_sin_scale,
                "cos_sin_scale_from": f.cos_sin_scale_from,
                "softmax_scale": f.softmax_scale,
                "softmax_scale_from": f.softmax_scale_from,
                "values_from": f.values_from,
            }
            for name, f in of.items()
        ],
        "task": measured.task(params.task),
        "measured": measured.experiment(params.task),
    }


def _of_file(params: Parameters) -> Given:
    """Reads a configuration. Raises ValueError unless it has plain rotary frequencies and a trained length."""
    config = source.parsed(params.config.encode(), "config")
    try:
        spec = spec_of(config, defaults=True)
        path, part = extensible(spec)
        rotation = rotation_to_change(part)
        trained = pretrained_length(part, rotation)
    except (ConfigError, ValueError) as error:
        raise ValueError(f"config: {str(error).removeprefix('--extend-to: ')}") from None
    assert trained is not None  # extensible asks for it
    plain = _plain(rotation)
    theirs = rotation.frequencies().at_length(math.ceil(trained * params.factor))
    if len(theirs) != len(plain) or plain.width is None or len(plain) > MOST_PAIRS:
        raise ValueError(f"config: {spec.family} turns by {rotation.kind} frequencies, which this view does not draw")
    places = ((layer, use, used.rotation) for layer, its in enumerate(part.layers) for use, used in enumerate(its.uses))
    layer, use = next((layer, use) for layer, use, found_there in places if found_there == rotation)
    inside = "".join(f"[{name!r}]" for name in path.split(".") if name)
    rows = pformat(config, width=100, sort_dicts=False)
    python = (
        f"spec = posenc.read_config({rows}, defaults=True)\n"
        f"rotation = spec{inside}.layers[{layer}].uses[{use}].rotation\n"
        f"theirs = rotation.frequencies().at_length({math.ceil(trained * params.factor)})"
    )
    return Given(plain, trained, theirs, python, spec.family)


def _plain(rotation: Rotation) -> Frequencies:
    """The frequencies before the scaling of the configuration."""
    if rotation.kind not in STARTS:
        return frequencies.rotary(rotation.width, rotation.base)
    started: Frequencies = getattr(frequencies, rotation.kind)(rotation.width, rotation.base, **dict(rotation.parameters))
    return started


def _python(params: Parameters, plan: Given) -> str:
    sizes = {"d": plan.plain.width, "base": plan.plain.base, "trained": plan.trained, "config": plan.python}
    return program(__file__, "config" if plan.python else "", **{**params.model_dump(), **sizes})
