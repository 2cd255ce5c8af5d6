"""Trains the two models of `stretch`, which are two of the lab's study, and writes stretch.npz.

python -m posenc.explorer.train_stretch    needs the extra lab; about half an hour on two cores
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import posenc
from posenc.explorer import recorded
from posenc.explorer.stretch import FILE, PROMPTS, TALE
from posenc.lab.experiment import Trial, read_experiment
from posenc.lab.records.provenance import revision
from posenc.lab.text import corpus
from posenc.lab.trial.training import Run

if TYPE_CHECKING:
    from numpy import ndarray as Array

PRESET, SEED, LEARNING_RATE = "study", 0, 0.008  # the learning rate that the study's tuning chose for both encodings
TRAINED = ("alibi", "rope")
POINTS = 39  # of the recorded training loss


def trial(encoding: str) -> Trial:
    """The study's trial of an encoding with seed 0."""
    trials = read_experiment(PRESET).trials()
    own_trial = next(t for t in trials if (t.encoding, t.seed, t.oracle) == (encoding, SEED, False))
    return own_trial.model_copy(update={"training": own_trial.training.model_copy(update={"learning_rate": LEARNING_RATE})})


def text() -> corpus.Corpus:
    return corpus.read_corpus(None, max(trial(TRAINED[0]).task.lengths) + 1, "prose_6000")


def trained(encoding: str) -> tuple[dict[str, Array], list[float]]:
    """The weights rounded to float16, and the training loss in bits per byte: means of equally many steps."""
    torch.set_num_threads(1)
    run = Run(trial(encoding), text())
    losses = list[float]()
    for step, bits in enumerate(run.losses(), start=1):
        losses.append(bits)
        if step % 100 == 0:
            print(f"{encoding} step {step} of {run.steps}: {np.mean(losses[-100:]):.3f} bits a byte", flush=True)
    means = np.array(losses).reshape(POINTS, -1).mean(1)
    return {name: value.half().numpy() for name, value in run.model.state_dict().items()}, means.round(4).tolist()


def main() -> None:
    read = text()
    with ProcessPoolExecutor(len(TRAINED)) as workers:
        results = dict(zip(TRAINED, workers.map(trained, TRAINED), strict=True))
    arrays: dict[str, Any] = {
        f"{encoding}.{name}": array for encoding, (weights, _) in results.items() for name, array in weights.items()
    }
    for language in PROMPTS:
        tale = next(document for document in read.held_out if document[:1].isascii() == (language == "en"))
        arrays[f"tale.{language}"] = np.frombuffer(tale[:TALE], dtype=np.uint8)
    first = trial(TRAINED[0])
    settings = {
        "preset": PRESET,
        "seed": SEED,
        "size": first.size.model_dump(),
        "training": first.training.model_dump(),
        "trained_length": first.task.length,
        "keys": {encoding: trial(encoding).key(read.sha256) for encoding in TRAINED},
        "training_loss": {encoding: losses for encoding, (_, losses) in results.items()},
        "text": read.about(),
        "command": "python -m posenc.explorer.train_stretch",
        "date": datetime.now(UTC).date().isoformat(),
        "posenc": posenc.__version__,
        "torch": torch.__version__,
        "revision": revision(),
    }
    recorded.write(FILE, settings, arrays)


if __name__ == "__main__":
    main()
