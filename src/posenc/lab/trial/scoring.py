"""Scores held-out rows at every length, item by item.

    same targets       ………………………│ targets │      the task's rows at that length, with the task's targets
    non-overlapping    │ row │ row │ row │ row │    language model: the longest windows cut into rows, every byte a target
    random positions   ……0..3.4…..7│..9.11.12│      as same targets, at random positions as in training: the mean over draws
    last window        ………………………│ row │ target   each target with exactly the trained length before it; at random positions
                                                where the encoding is scored so

Legend: b rows, t tokens, n target positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean as mean
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc.lab.experiment.arm import Arm, Numbering
from posenc.lab.records.record import LAST_WINDOW, NON_OVERLAPPING, RANDOM_POSITIONS, SAME_TARGETS, Rows
from posenc.lab.tasks.language_model import LanguageModel
from posenc.lab.tasks.shortcuts import is_among
from posenc.lab.tasks.task import IGNORE, Batch, Task
from posenc.lab.text.corpus import Corpus
from posenc.lab.trial.model import Transformer, seed_of
from posenc.lab.trial.placed import Placed
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float, Int

NO_NUMBER = "the score was no number"
TABLE_ENDS = "table ends at"  # of a length beyond the largest position of an encoding
CHUNK = {"cpu": 1024}  # tokens at once: small enough for the cache and for malloc's free lists
CHUNK_ELSEWHERE = 2**13  # one row of 8192: some encodings store all its logits


@dataclass(frozen=True)
class Scores:
    """For every target: its bits, and whether it has the largest logit; both 0 at positions without a target.

    `said` is the token with the largest logit, and IGNORE at positions without a target.
    """

    bits: Float[Tensor, "b t"]
    right: Float[Tensor, "b t"]
    counted: Bool[Tensor, "b t"]
    said: Int[Tensor, "b t"]

    @property
    def finite(self) -> bool:
        return bool(self.bits.isfinite().all())

    def only(self, counted: Bool[Tensor, "b t"]) -> Scores:
        """The scores of some of the targets."""
        bits, right = (of.where(counted, 0.0) for of in (self.bits, self.right))
        return Scores(bits, right, counted, self.said.where(counted, IGNORE))


@torch.no_grad()
def scores(
    model: Transformer,
    tokens: Int[Tensor, "b t"],
    targets: Int[Tensor, "b t"],
    at: Positions | None = None,
    number: Numbering | None = None,
) -> Scores:
    """Computes on the device of the model, in chunks of rows that bound the memory; the result is on the CPU, in fp64.

    `at` are the positions of every row: 0, 1, 2, … if left out. `number` gives them where they depend on the tokens.
    """
    model.eval()
    device = model.head.weight.device
    shared = model.prepare(Positions.arange(1, tokens.shape[1], device=device) if at is None else at.to(device))
    rows = max(1, CHUNK.get(device.type, CHUNK_ELSEWHERE) // tokens.shape[1])
    counted = targets != IGNORE
    bits, right = torch.zeros(2, *targets.shape, dtype=torch.float64)
    said = torch.full_like(targets, IGNORE)
    for begin in range(0, len(tokens), rows):
        chunk = slice(begin, begin + rows)
        at = shared if number is None else model.prepare(number(tokens[chunk].to(device)))
        part = Placed(tokens[chunk], targets[chunk], at, device)
        logits = model.logits(part.at_targets(model.hidden(part.tokens, at))).float()
        bits[chunk][counted[chunk]] = F.cross_entropy(logits, part.targets, reduction="none").cpu().double() / math.log(2)
        likeliest = logits.argmax(dim=-1)
        right[chunk][counted[chunk]] = (likeliest == part.targets).cpu().double()
        said[chunk][counted[chunk]] = likeliest.cpu()
    return Scores(bits, right, counted, said)


def score_lengths(
    model: Transformer, arm: Arm, task: Task, text: Corpus | None, rows: Rows, report: Callable[[float], None]
) -> dict[str, str]:
    """Adds a row for every item at every length. Returns the lengths that cannot be scored, with the reason."""
    cannot, whole = dict[str, str](), None
    for length in task.lengths:
        if (why := out_of_reach(model, arm.positions(task, length))) is not None:
            cannot[str(length)] = why
            continue
        batch = task.scored(length, text)
        if isinstance(task, LanguageModel) and task.cut_up == "longest" and length == task.lengths[-1]:
            every = whole = side_by_side(model, task, length, text)  # the longest rows are read once for both modes
        else:
            every = scores(model, batch.tokens, task.all_targets(batch), number=arm.numbering(task))
        of_targets = every.only(batch.targets != IGNORE)
        if not of_targets.finite:
            cannot[str(length)] = NO_NUMBER
            continue
        add_scored(rows, task, [of_targets], batch, mode=SAME_TARGETS, length=length)
        if length in (task.length, max(task.lengths)) and not isinstance(task, LanguageModel):
            add_positions(rows, every, length)
        report(sum(task.lengths[: task.lengths.index(length) + 1]) / sum(task.lengths))
    if isinstance(task, LanguageModel):
        non_overlapping(model, task, text, rows, cannot, whole)
    return cannot


def loss_at(model: Transformer, arm: Arm, task: Task, length: int, text: Corpus | None, rows: int) -> float | None:
    """The mean bits of the first held-out rows at a length; None where the model cannot be scored there."""
    if out_of_reach(model, arm.positions(task, length)) is not None:
        return None
    batch = task.scored(length, text)
    result = scores(model, batch.tokens[:rows], batch.targets[:rows], number=arm.numbering(task))
    return (result.bits.sum() / result.counted.sum()).item() if result.finite else None


def score_draws(
    model: Transformer, arm: Arm, task: Task, text: Corpus | None, rows: Rows, draws: int, cannot: dict[str, str]
) -> None:
    """Adds the mean over draws of random positions for every item at every length. All trials have the same draws."""
    for length in task.lengths if draws else ():
        if str(length) not in cannot:
            of_draws(model, arm, task, task.scored(length, text), rows, draws, mode=RANDOM_POSITIONS, length=length)


def of_draws(
    model: Transformer, arm: Arm, task: Task, batch: Batch, rows: Rows, draws: int, *, mode: str, length: int
) -> None:
    longest, random = task.tokens(max(task.lengths)), torch.Generator().manual_seed(seed_of("scored positions", length))
    positions = [arm.drawn_positions(batch.tokens.shape[1], longest, random) for _ in range(draws)]
    drawn = [scores(model, batch.tokens, batch.targets, at) for at in positions]
    if all(result.finite for result in drawn):
        add_scored(rows, task, drawn, batch, mode=mode, length=length)


def score_last_window(
    model: Transformer, arm: Arm, task: Task, text: Corpus | None, rows: Rows, draws: int = 0, change: str = ""
) -> None:
    """Adds a row for every item: the model cut to the trained length."""
    if (batch := task.last_window(text)) is None:
        return
    if draws:
        of_draws(model, arm, task, batch, rows, draws, mode=LAST_WINDOW, length=task.length)
        return
    result = scores(model, batch.tokens, batch.targets, number=arm.numbering(task))
    if result.finite:
        add_items(rows, [result], items(batch), mode=LAST_WINDOW, length=task.length, change=change)


def out_of_reach(model: Transformer, tokens: int) -> str | None:
    largest = model.encoding(0).largest_position()
    return f"{TABLE_ENDS} {largest + 1}" if largest is not None and tokens > largest + 1 else None


def non_overlapping(
    model: Transformer,
    task: LanguageModel,
    text: Corpus | None,
    rows: Rows,
    cannot: dict[str, str],
    whole: Scores | None = None,
) -> None:
    """Adds the non-overlapping scores. Every byte is a target, so these rows also give the bits by position.

    `whole` are those at the longest length, if they are known.
    """
    for length in task.lengths if task.cut_up == "every length" else task.lengths[-1:]:
        if str(length) in cannot:
            continue
        result = whole if whole is not None and length == task.lengths[-1] else side_by_side(model, task, length, text)
        if result.finite:
            item = items(task.side_by_side(length, text))
            add_items(rows, [result], item, mode=NON_OVERLAPPING, length=length)
            if length in (task.length, task.lengths[-1]):
                add_positions(rows, result, length)


def side_by_side(model: Transformer, task: LanguageModel, length: int, text: Corpus | None) -> Scores:
    batch = task.side_by_side(length, text)
    return scores(model, batch.tokens, batch.targets)


def items(batch: Batch) -> Int[Tensor, "b"]:
    return torch.arange(len(batch.tokens)) if batch.item is None else batch.item


def add_scored(rows: Rows, task: Task, of_draws: Sequence[Scores], batch: Batch, **where: Any) -> None:
    """The scores of every item; and whether its answer was found, in any order, of a task that asks for it."""
    add_items(rows, of_draws, items(batch), **where)
    if task.retrieves:
        add_retrieved(rows, of_draws, batch, **where)


def add_items(rows: Rows, of_draws: Sequence[Scores], item: Int[Tensor, "b"], **where: Any) -> None:
    """Sums the rows of each item; `exact` is 1 if all its targets are right. With several draws, their mean is added."""
    number, place = item.unique(return_inverse=True)

    def summed(of_row: Tensor) -> Tensor:
        return torch.zeros(len(number), dtype=torch.float64).index_add_(0, place, of_row.double())

    weight = summed(of_draws[0].counted.sum(1))
    draws = [(summed(draw.bits.sum(1)), summed(draw.right.sum(1))) for draw in of_draws]
    for n, item_number in enumerate(number.tolist()):
        if count := weight[n].item():
            columns = {"change": "", **where, "item": item_number, "weight": count}
            rows.add("bits", mean(bits[n].item() / count for bits, _ in draws), **columns)
            rows.add("right", mean(right[n].item() / count for _, right in draws), **columns)
            rows.add("exact", mean(float(right[n] == weight[n]) for _, right in draws), **columns)


def add_retrieved(rows: Rows, of_draws: Sequence[Scores], batch: Batch, **where: Any) -> None:
    """`retrieved` is 1 for a row whose likeliest tokens are all of its answer, in any order; with draws, their mean."""
    answered = (batch.targets != IGNORE).any(0)
    answer = batch.targets[:, answered]
    found = [is_among(draw.said[:, answered], answer).all(1).double() for draw in of_draws]
    for item, share in zip(items(batch).tolist(), torch.stack(found).mean(0).tolist(), strict=True):
        rows.add("retrieved", share, **{"change": "", **where, "item": item, "weight": answer.shape[1]})


def add_positions(rows: Rows, result: Scores, length: int) -> None:
    weight, bits = result.counted.sum(0).tolist(), result.bits.sum(0).tolist()
    for position, (count, total) in enumerate(zip(weight, bits, strict=True)):
        if count:
            rows.add("position", total / count, length=length, position=position, weight=count)
