"""What all models that are compared share: `Recipe().trial(Arm("rope"), seed=0, steps=100)` is a trial of the lab."""

from __future__ import annotations

from posenc.lab.experiment import Size, Strict, Training, Trial
from posenc.lab.experiment.arm import Arm
from posenc.lab.tasks.language_model import LanguageModel

MANY = 10**6  # steps, for those who time a few


class Recipe(Strict):
    """By default that of `posenc compare`. Tried on NoPE, RoPE, ALiBi and sinusoidal: widths 64, 96 and 128, 4 to 32 rows a
    step, 2 to 8 heads, learning rates from 4e-3 to 1.5e-2. At equal time the smallest and quickest model learnt most.
    """

    task: LanguageModel = LanguageModel(lengths=(64, 128, 256, 512), held_out=96, cut_up="longest")
    size: Size = Size(d_model=64)
    training: Training = Training(steps=1, rows=8, learning_rate=1e-2)  # every trial has its own steps

    def trial(self, arm: Arm, seed: int, steps: int) -> Trial:
        return Trial(
            task=self.task,
            encoding=str(arm),
            source=arm.source,
            seed=seed,
            size=self.size,
            training=self.training.model_copy(update={"steps": steps}),
        )
