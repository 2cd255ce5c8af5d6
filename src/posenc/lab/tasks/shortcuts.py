"""What answers score that need no position: chance is what the best of these gets, not what uniform guessing gets.

    those that occur   as many tokens as the answer has, drawn from the possible ones that occur in the prompt
    most frequent      the possible tokens that occur most often in the prompt
    nearest            the last possible tokens before the question
    first              the first ones

The first two count tokens and know no order. The others know where the row begins or ends.

Legend: b rows, t tokens, a tokens of the answer, v vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from posenc.lab.tasks.task import IGNORE, Batch, Task

if TYPE_CHECKING:
    from posenc.support.shapes import Int

AT_MOST = 0.15  # of the rows; what an answer without positions may get right, so that a score speaks of positions
WITHOUT_POSITION = ("those that occur", "most frequent")


class Share(NamedTuple):
    """Shares of the rows: all tokens right in order; and all tokens among those of the answer, in any order."""

    in_order: float
    retrieved: float


def shortcuts(batch: Batch, possible: int) -> dict[str, Share]:
    """Of rows with one answer at their end. Its tokens are below `possible`, as are those mistaken for them."""
    counted = batch.targets[0] != IGNORE
    answer = batch.targets[:, counted]
    prompt = batch.tokens[:, : int(counted.nonzero()[0]) + 1]
    count = torch.zeros(len(prompt), possible).scatter_add_(1, prompt.clamp(max=possible - 1), (prompt < possible).float())
    in_order, among, left = (*torch.ones(2, len(prompt)).unbind(), count.clone())
    right = count.gather(1, answer).where(_first_of_its_kind(answer), 0.0).sum(1)  # occurrences of the answer's tokens
    for n in range(answer.shape[1]):
        in_order = in_order * left.gather(1, answer[:, n : n + 1])[:, 0] / left.sum(1)
        left.scatter_add_(1, answer[:, n : n + 1], -torch.ones(len(prompt), 1))
        among = among * (right - n).clamp(min=0) / (count.sum(1) - n)
    size = answer.shape[1]
    frequent = (count - torch.arange(possible) / possible).argsort(dim=1, descending=True)[:, :size]
    place = torch.arange(prompt.shape[1]).where(prompt < possible, -1)
    last = prompt.gather(1, place.sort(dim=1).values[:, -size:].clamp(min=0))
    place = torch.arange(prompt.shape[1]).where(prompt < possible, prompt.shape[1])
    first = prompt.gather(1, place.sort(dim=1).values[:, :size].clamp(max=prompt.shape[1] - 1))
    found = {"those that occur": Share(in_order.mean().item(), among.mean().item())}
    for name, said in (("most frequent", frequent), ("nearest", last), ("first", first)):
        found[name] = Share(
            (said == answer).all(1).float().mean().item(), is_among(said, answer).all(1).float().mean().item()
        )
    return found


def given_away(task: Task) -> str:
    """What an answer without positions gets, where it is above AT_MOST at the trained or a longer length; otherwise ""."""
    for length in (length for length in task.lengths if length >= task.length):
        found = task.shortcuts(length) or {}
        for name in WITHOUT_POSITION:
            if name in found and (share := found[name].in_order) > AT_MOST:
                return (
                    f"{task.name}: at length {length} {share:.0%} of the rows are right without positions ({name}); "
                    f"expected at most {AT_MOST:.0%}: more distractors (loose, needles), or more values"
                )
    return ""


def is_among(said: Int[Tensor, "b a"], answer: Int[Tensor, "b a"]) -> Tensor:
    """Whether each token is one of the row's answer."""
    return (said[:, :, None] == answer[:, None, :]).any(2)


def _first_of_its_kind(answer: Int[Tensor, "b a"]) -> Tensor:
    """False for a token that stands in the answer before."""
    same = answer[:, :, None] == answer[:, None, :]
    return ~same.tril(-1).any(2)
