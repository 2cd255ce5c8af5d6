"""AdamW and its learning rate schedule, the same for every arm.

    rate    0 ╱ 1 ╲ 0
           warmup, then the rest of the steps

AdamW's own arguments are those of `experiment.Training`.
"""

from __future__ import annotations

from typing import Any

from posenc.lab.trial.model import Transformer


def schedule(step: int, steps: int, warmup: float) -> float:
    """The learning rate factor: linear warmup to 1, then linear decay to 0."""
    return min(1.0, (step + 1) / max(1.0, warmup * steps)) * (1 - step / steps)


def groups(model: Transformer, weight_decay: float) -> list[dict[str, Any]]:
    """Parameter groups for AdamW: with weight decay, and without."""
    positional = {id(parameter) for parameter in model.encodings.parameters()}
    decayed = [p for p in model.parameters() if p.ndim > 1 and id(p) not in positional]
    rest = [p for p in model.parameters() if p.ndim < 2 or id(p) in positional]
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]
