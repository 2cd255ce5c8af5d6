"""Trains the models of `trained_words` as the lab's preset `words` says, and writes trained_words.npz.

python -m posenc.explorer.train_words            needs the extra lab; two minutes on one core
python -m posenc.explorer.train_words reviews    the models of this task; the others stay as they are
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

import posenc
from posenc.attention.backends.reference import probabilities
from posenc.encoding import PositionalEncoding
from posenc.explorer import recorded
from posenc.explorer.trained_words import FILE, LINKS, STEPS, TaskName, about, record
from posenc.lab.experiment import Trial, read_experiment
from posenc.lab.records.provenance import revision
from posenc.lab.tasks import descriptions, reviews, translation
from posenc.lab.tasks.task import IGNORE, Batch
from posenc.lab.trial.training import Run
from posenc.positions import Positions
from posenc.structure import rotated

if TYPE_CHECKING:
    from numpy import ndarray as Array

    from posenc.lab.trial.model import Transformer

PRESET = "words"
NOUNS = {"descriptions": descriptions.NOUNS, "reviews": reviews.NOUNS, "translation": ()}
ADJECTIVES = {"descriptions": descriptions.ADJECTIVES, "reviews": reviews.ADJECTIVES, "translation": ()}
VOCABULARIES = {
    "descriptions": descriptions.vocabulary,
    "reviews": reviews.vocabulary,
    "translation": translation.vocabulary,
}


def snapshots(trial: Trial) -> Iterator[tuple[Transformer, dict[str, Array]]]:
    """The model at every step of STEPS and what its heads do; at the last one with the rounded weights that are shipped."""
    run, batch = Run(trial, None), trial.task.scored(trial.task.length, None)
    links = linked_words(cast(TaskName, trial.task.name), batch)
    for step, _ in enumerate(itertools.chain([0.0], run.losses())):
        if step in STEPS:
            if step == STEPS[-1]:
                run.model.load_state_dict({name: value.half().float() for name, value in run.model.state_dict().items()})
            yield run.model, looked(run.model, batch, links, trial.task.causal)
            run.model.train()


@torch.no_grad()
def looked(model: Transformer, batch: Batch, links: list[Tensor], causal: bool) -> dict[str, Array]:
    """attention, linked and right of the held-out sentences, as `trained_words` describes them."""
    layers = list[Tensor]()

    def watch(q: Tensor, k: Tensor, encoding: PositionalEncoding, at: Positions) -> None:
        at = at.expand(len(q))
        q, k = rotated(encoding, q, k, at, at)
        layers.append(probabilities(q, k, encoding, at, at, causal).double())

    model.eval()
    t = batch.tokens.shape[1]
    predicted = model.logits(model.hidden(batch.tokens, Positions.arange(1, t), watcher=watch)).argmax(-1)
    probs = torch.stack(layers, 1)  # [sentence, layer, head, query, key]
    distances = [probs.diagonal(-distance, 3, 4).mean((0, -1)) for distance in range(1 - t, t)]
    linked = [probs[row, :, :, query, key].mean(0) for row, query, key in (rows.unbind(1) for rows in links)]
    right = ((predicted == batch.targets) | (batch.targets == IGNORE)).all(1).double().mean()
    return {
        "attention": torch.stack(distances, -1).numpy(),
        "linked": torch.stack(linked, -1).numpy(),
        "right": right.numpy(),
    }


def linked_words(task: TaskName, batch: Batch) -> list[Tensor]:
    """For every kind of LINKS rows of (sentence, query, key): the word that predicts, and the one its answer stands in.

    Who describes whom: the answer is a word of the sentence. A translated word's is the English word
    that it translates. Sentences in which that word occurs twice are left out.
    """
    linked: list[list[tuple[int, int, int]]] = [[] for _ in LINKS[task]]
    known, english = VOCABULARIES[task](), {chinese: word for word, chinese in translation.dictionary().items()}
    for row, (tokens, targets) in enumerate(zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True)):
        words = [known[token] for token in tokens]
        for query, target in enumerate(targets):
            if target == IGNORE:
                continue
            wanted = english.get(known[target]) if task == "translation" else known[target]
            if wanted is not None and words.count(wanted) == 1:
                linked[words[query] in NOUNS[task]].append((row, query, words.index(wanted)))
    return [torch.tensor(rows) for rows in linked]


def uniform(links: list[Tensor], tokens: int, causal: bool) -> Array:
    """The mean probability of linked words under uniform attention over the visible words."""
    visible = [rows[:, 1] + 1 if causal else torch.full_like(rows[:, 1], tokens) for rows in links]
    return np.array([float((1 / counts.double()).mean()) for counts in visible])


def main(names: Collection[str]) -> None:
    """Trains the models of these tasks; those of the others stay as they are recorded."""
    torch.set_num_threads(1)
    experiment = read_experiment(PRESET)
    arrays = {name: array for name, array in record().items() if name.partition(".")[0] not in names}
    for trial in experiment.trials():
        start, task = f"{trial.task.name}.{trial.encoding}", trial.task
        if task.name not in names:
            continue
        models, records = zip(*snapshots(trial), strict=True)  # the same model at every step, in the end the trained one
        for name in records[0]:
            arrays[f"{start}.{name}"] = np.stack([snapshot[name] for snapshot in records]).astype(np.float32)
        arrays |= {f"{start}.{name}": weights.half().numpy() for name, weights in models[-1].state_dict().items()}
        batch = task.scored(task.length, None)
        links = linked_words(cast(TaskName, task.name), batch)
        arrays[f"{task.name}.uniform"] = uniform(links, batch.tokens.shape[1], task.causal)
    described = {
        plan.task.name: {
            "vocabulary": VOCABULARIES[plan.task.name](),
            "asked": (*NOUNS[plan.task.name], *ADJECTIVES[plan.task.name]),  # words with an answer
            "title": plan.task.title.as_dict(),
            "settings": plan.task.model_dump(),
            "training": plan.training.model_dump(),
            "tokens": plan.task.tokens(plan.task.length),
            "date": datetime.now(UTC).date().isoformat(),
            "posenc": posenc.__version__,
            "torch": torch.__version__,
            "revision": revision(),
        }
        for plan in experiment.tasks
        if plan.task.name in names
    }
    settings = {
        "preset": PRESET,
        "size": experiment.size.model_dump(),
        "seed": experiment.first_seed,
        "steps": STEPS,
        "tasks": about()["tasks"] | described,
    }
    recorded.write(FILE, settings, arrays)


if __name__ == "__main__":
    main(sys.argv[1:] or list(VOCABULARIES))
