"""The whole training step of the model that `posenc compare` trains, with each encoding; and what importing costs.

floor   the same step with no encoding; for the import, importing torch alone, each in a fresh process
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.contest import Contender, Contest, Entry
from bench.gate import limits
from bench.plan import Case

IMPORTS = {
    "import torch": "import torch",
    "import posenc": "from posenc import Positions, attend, create; create('rope', d_head=64)",
}


def build(case: Case, device: str = "cpu") -> Contest:
    return imports() if case.name == "import" else steps(case, device)


def imports() -> Contest:
    """posenc is lazy: what is timed imports attention, positions and an encoding."""

    def fresh(code: str) -> Contender:
        call = functools.partial(subprocess.run, [sys.executable, "-c", code], check=True)
        return Contender(call, list)

    floor, ours = (Entry(name, "torch", lambda code=code: fresh(code)) for name, code in IMPORTS.items())  # type: ignore[misc]
    return Contest(floor, [Entry(ours.name, "posenc", ours.make)], {"": list}, lambda _, exact: [], ())


def steps(case: Case, device: str) -> Contest:
    from posenc.catalogue import lookup
    from posenc.lab.experiment import Trial, read_experiment
    from posenc.lab.tasks.language_model import LanguageModel
    from posenc.lab.text.corpus import Corpus
    from posenc.lab.trial.cost import MANY_STEPS
    from posenc.lab.trial.training import Run, new_model
    from posenc.positions import Positions

    task = LanguageModel(length=case.length, lengths=(case.length,), targets=1)
    preset = read_experiment("compare_text")
    training = preset.tasks[0].training.model_copy(update={"rows": case.batch, "steps": MANY_STEPS})
    text = bytes(torch.randint(256, (64 * case.length,), generator=torch.Generator().manual_seed(0)).tolist())
    corpus = Corpus("random bytes", "", (text,), (text,))
    batch = task.training_batch(case.batch, torch.Generator().manual_seed(1), corpus)

    def trial(name: str) -> Trial:
        return Trial(task=task, encoding=name, seed=0, size=preset.size, training=training)

    def step(name: str) -> Contender:
        if device != "cpu":
            raise NotImplementedError("the model of posenc compare trains on the CPU")
        taken = Run(trial(name), corpus).losses()
        return Contender(lambda: next(taken), lambda: gradients(name, torch.float32, "auto"))

    def gradients(name: str, dtype: torch.dtype, impl: str) -> list[Tensor]:
        """Logits and the gradient of the embedding, at the first step."""
        model = new_model(trial(name)).to(dtype)
        at = model.encodings[0].prepare(Positions.arange(1, case.length), dtype)  # type: ignore[operator]
        for layer in model.layers:
            layer.impl = impl  # type: ignore[assignment]
        logits = model(batch.tokens, at)
        F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten()).backward()
        assert model.embedding.weight.grad is not None
        return [logits.detach(), model.embedding.weight.grad]

    def allowed(name: str, exact: Sequence[Tensor]) -> list[float]:
        """The allowed error: twice that of the reference backend in float32, plus a few roundings for the order of sums."""
        return limits(gradients(name, torch.float32, "reference"), exact, times=2, roundings=4)

    names = [name for name in lookup.FOUNDATION if name != "nope"]
    return Contest(
        Entry("nope", "torch", lambda: step("nope")),
        [Entry(name, "posenc", lambda name=name: step(name), truth=name) for name in names],  # type: ignore[misc]
        {name: lambda name=name: gradients(name, torch.float64, "reference") for name in names},  # type: ignore[misc]
        allowed,
        ("logits", "d embedding"),
    )
