"""What an experiment's encodings cost relative to none, by `posenc.lab.trial.cost`: once a sweep, when no trial runs."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from posenc.lab.experiment.arm import Arm
from posenc.lab.experiment.corpus import Corpus
from posenc.lab.experiment.recipe import Recipe
from posenc.lab.tasks.language_model import LanguageModel
from posenc.lab.trial.cost import cost
from posenc.lab.trial.fp64_properties import table_bytes_per_token
from posenc.lab.trial.training import new_model

if TYPE_CHECKING:
    from posenc.lab.experiment import Experiment
    from posenc.lab.trial.training import Hardware

TASK = "language_model"  # whose training is timed
SECONDS = 12.0


@dataclasses.dataclass(frozen=True)
class RelativeCost:
    arms: tuple[Arm, ...]
    recipe: Recipe
    text: Corpus

    def inputs(self) -> dict[str, Any]:
        """Everything that decides what is measured, but for the code and the machine."""
        return {"arms": [dataclasses.asdict(arm) for arm in self.arms], "recipe": self.recipe.model_dump(mode="json")}

    def measure(self, report: Callable[[float], None]) -> dict[str, Any]:
        """Plain JSON: what `cost` returns, sizes beside the times, and the device."""
        found = cost(list(self.arms), self.recipe, self.text, SECONDS, report)
        ratios = {str(arm): found["ratios"][str(arm)] | self.sizes(arm) for arm in self.arms}
        device = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}, one thread"
        return {**found, "ratios": ratios, "device": device}

    def sizes(self, arm: Arm) -> dict[str, Any]:
        model = new_model(self.recipe.trial(arm, seed=0, steps=1))
        tables = table_bytes_per_token(model.encoding(0))
        return {"parameters": model.encoding_parameters(), "table_bytes_per_token": tables}


def wanted(experiment: Experiment, text: Corpus | None, hardware: Hardware) -> RelativeCost | None:
    """None without a language model and two encodings to compare in it, and off the CPU, which is what is timed."""
    plan = next((plan for plan in experiment.tasks if plan.task.name == TASK), None)
    words = () if plan is None else plan.encodings or experiment.encodings
    if plan is None or text is None or len(words) < 2 or hardware.device != "cpu" or hardware.devices > 1:
        return None
    assert isinstance(plan.task, LanguageModel)
    recipe = Recipe(task=plan.task, size=experiment.size, training=plan.training)
    return RelativeCost(tuple(Arm.parse(word, experiment.sources.get(word)) for word in words), recipe, text)
