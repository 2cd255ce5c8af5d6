"""Checks whether a user's own task may join an experiment: its rows are what the lab trains and scores, and it trains.

my_task.py:MyTask ─► read with its settings ─► rows of training and of every scored length ─► a step of training
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

import torch
from pydantic import ValidationError
from torch.nn import functional as F

from posenc.checking.result import Result
from posenc.lab import tasks, user_file
from posenc.lab.experiment import error_line
from posenc.lab.experiment.arm import Arm
from posenc.lab.tasks.shortcuts import given_away
from posenc.lab.tasks.task import IGNORE, Batch, Task
from posenc.lab.trial.model import Transformer
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.lab.experiment import Size

ROWS, BATCHES = 8, 16
Check = Callable[[Task, "Size"], str]  # what is wrong, "" if nothing is


def examine_task(settings: Mapping[str, Any], size: Size) -> Iterator[Result]:
    """The result of every check. Raises ValueError where the task cannot be read: the words of its file, in one line."""
    word = settings["name"]
    try:
        cls = tasks.class_of(settings)
        task = cls(**settings)
    except ValidationError as error:
        message = error_line.line(error, cls)
        raise ValueError(message if word in message else f"{word}: {message}") from error
    except Exception as error:
        raise ValueError(user_file.in_one_line(word, error)) from error
    if task.reads_text:
        raise ValueError(f"{task.name}: expected a task that makes its rows, got one with reads_text = True")
    for name, check in CHECKS.items():
        try:
            wrong = check(task, size)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        yield Result(name, "failed" if wrong else "passed", wrong)


def training_rows(task: Task, size: Size) -> str:
    """Rows to train on have tokens and targets of the vocabulary, and no more tokens than `tokens(length)`."""
    return next(filter(None, (_wrong(task, batch, task.length) for batch in _batches(task))), "")


def scored_rows(task: Task, size: Size) -> str:
    """So have the rows of every scored length, of which there are at most `held_out`."""
    for length in task.lengths:
        batch = task.scored(length, None)
        if len(batch.tokens) > task.held_out:
            return f"{len(batch.tokens)} rows at length {length}, more than held_out={task.held_out}"
        if wrong := _wrong(task, batch, length):
            return f"at length {length}: {wrong}"
    return ""


def same_rows_again(task: Task, size: Size) -> str:
    """The random numbers given to it decide the rows of training; the length alone decides the scored rows."""
    once, again = list(_batches(task)), list(_batches(task))
    if not all(_same(first, other) for first, other in zip(once, again, strict=True)):
        return "training_batch gives other rows from equal generators; draw from `random` only"
    wrong = [length for length in task.lengths if not _same(task.scored(length, None), task.scored(length, None))]
    return f"scored({wrong[0]}) gives other rows the second time" if wrong else ""


def nothing_held_out_is_trained_on(task: Task, size: Size) -> str:
    """No scored row of the trained length is among many rows of training."""
    scored = {tuple(row) for row in task.scored(task.length, None).tokens.tolist()}
    trained = {tuple(row) for batch in _batches(task) for row in batch.tokens.tolist()}
    return f"{len(scored & trained)} of {len(scored)} scored rows are trained on" if scored & trained else ""


def chance_is_a_number(task: Task, size: Size) -> str:
    """The score of guessing is finite at every length."""
    return next((f"chance({n}) is {task.chance(n)}" for n in task.lengths if not isfinite(task.chance(n))), "")


def nothing_gives_it_away(task: Task, size: Size) -> str:
    """Answers that need no position are right in few rows, for a task that has `shortcuts`."""
    return given_away(task)


def a_training_step(task: Task, size: Size) -> str:
    """A forward and a backward pass in the lab's model give finite numbers."""
    model = Transformer(
        Arm("nope"), size, vocabulary=task.vocabulary, causal=task.causal, positions=task.tokens(task.length), seed=0
    )
    batch = next(_batches(task))
    logits = model(batch.tokens, model.prepare(Positions.arange(1, batch.tokens.shape[1])))
    loss = F.cross_entropy(logits.flatten(0, 1).float(), batch.targets.flatten(), ignore_index=IGNORE)
    loss.backward()
    return "" if loss.isfinite() else "the loss is not finite"


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        *(training_rows, scored_rows, same_rows_again, nothing_held_out_is_trained_on, chance_is_a_number),
        *(nothing_gives_it_away, a_training_step),
    )
}


def _batches(task: Task) -> Iterator[Batch]:
    random = torch.Generator().manual_seed(0)
    return (task.training_batch(ROWS, random, None) for _ in range(BATCHES))


def _same(first: Batch, other: Batch) -> bool:
    return torch.equal(first.tokens, other.tokens) and torch.equal(first.targets, other.targets)


def _wrong(task: Task, batch: Batch, length: int) -> str:
    """What is wrong with rows of that length, "" if nothing is."""
    tokens, targets = batch.tokens, batch.targets
    if tokens.dtype != torch.int64 or targets.dtype != torch.int64:
        return f"expected tokens and targets of int64, got {tokens.dtype} and {targets.dtype}"
    if tokens.ndim != 2 or tokens.shape != targets.shape:
        return (
            f"expected tokens and targets of one shape [rows, tokens], got {list(tokens.shape)} and {list(targets.shape)}"
        )
    if tokens.shape[1] > task.tokens(length):
        return f"{tokens.shape[1]} tokens in a row, more than tokens({length}) = {task.tokens(length)}"
    valid = targets[targets != IGNORE]
    if not (targets != IGNORE).any(1).all():
        return f"a row without a target; {IGNORE} is the mark of no target"
    if min(tokens.min(), valid.min()) < 0 or max(tokens.max(), valid.max()) >= task.vocabulary:
        return f"expected tokens of 0 … {task.vocabulary - 1}, got {tokens.min()} … {max(tokens.max(), valid.max())}"
    return ""
