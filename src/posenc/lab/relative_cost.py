"""What an experiment's encodings cost relative to none, by `posenc.lab.cost`: once a sweep, when no trial runs."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from posenc.lab.arm import Arm
from posenc.lab.corpus import Corpus, Windows
from posenc.lab.cost import cost
from posenc.lab.exact import table_bytes_per_token
from posenc.lab.model import Shape
from posenc.lab.train import Recipe, new_model

if TYPE_CHECKING:
    from posenc.lab.experiment import Experiment
    from posenc.lab.training import Hardware

TASK = "language_model"  # whose training is timed
SECONDS = 12.0


@dataclasses.dataclass(frozen=True)
class RelativeCost:
    arms: tuple[Arm, ...]
    recipe: Recipe
    text: Corpus

    def inputs(self) -> dict[str, Any]:
        """Everything that decides what is measured, but for the code and the machine."""
        return {"arms": [dataclasses.asdict(arm) for arm in self.arms], "recipe": dataclasses.asdict(self.recipe)}

    def measure(self, report: Callable[[float], None]) -> dict[str, Any]:
        """Plain JSON: what `cost` returns, sizes beside the times, and the device."""
        windows = Windows(self.text.train, self.recipe.length + 1)
        found = cost(list(self.arms), self.recipe, windows, SECONDS, report)
        ratios = {str(arm): found["ratios"][str(arm)] | self.sizes(arm) for arm in self.arms}
        device = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}, one thread"
        return {**found, "ratios": ratios, "device": device}

    def sizes(self, arm: Arm) -> dict[str, Any]:
        model = new_model(arm, self.recipe, 0)
        tables = table_bytes_per_token(model.encoding(0))
        return {"parameters": model.encoding_parameters(), "table_bytes_per_token": tables}


def wanted(experiment: Experiment, text: Corpus | None, hardware: Hardware) -> RelativeCost | None:
    """None without a language model and two encodings to compare in it, and off the CPU, which is what is timed."""
    plan = next((plan for plan in experiment.tasks if plan.task.name == TASK), None)
    words = () if plan is None else plan.encodings or experiment.encodings
    if plan is None or text is None or len(words) < 2 or hardware.device != "cpu" or hardware.devices > 1:
        return None
    recipe = Recipe(
        length=plan.task.length, batch=plan.training.rows, learning_rate=plan.training.learning_rate,
        multiples=tuple(length // plan.task.length for length in plan.task.lengths if length % plan.task.length == 0),
        shape=Shape(**experiment.size.model_dump()),
    )  # fmt: skip
    return RelativeCost(tuple(Arm.parse(word, experiment.sources.get(word)) for word in words), recipe, text)
