"""One trial: train at one length, score at several on the same target bytes.

    held-out window   ………………………………………………………………………………│ targets │
    context 1×                                    ├────────┼─────────┤
    context 2×                          ├──────────────────┼─────────┤
    context 8×  ├──────────────────────────────────────────┼─────────┤

Legend: n windows, w bytes of a window, t tokens.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import PositionalEncoding
from posenc.encodings.learned import Learned
from posenc.encodings.xpos import XPos
from posenc.lab.arm import Arm
from posenc.lab.corpus import Windows
from posenc.lab.model import BYTES, Shape, Transformer, seed_of
from posenc.positions import Positions

if TYPE_CHECKING:
    from jaxtyping import Float, Int

TRAINING = 0.9  # of a trial, for the progress; the rest is scoring
TABLE_ENDS = "table ends at"
Report = Callable[[float], None]
"""Called with the share of a trial that is done."""


@dataclass(frozen=True)
class Recipe:
    """What every arm shares. Tried on NoPE, RoPE, ALiBi and sinusoidal: widths 64, 96 and 128, 4 to 32 rows a step, 2 to 8
    heads, learning rates from 4e-3 to 1.5e-2. At equal time the smallest and quickest model learnt most.
    """

    length: int = 64
    multiples: tuple[int, ...] = (1, 2, 4, 8)
    targets: int = 32  # the last half of the trained length: each sees half of it or more at every length
    windows: int = 96
    batch: int = 8
    learning_rate: float = 1e-2
    warmup: float = 0.1  # of the steps; then straight down to 0
    weight_decay: float = 0.1  # of the shared matrices
    betas: tuple[float, float] = (0.9, 0.95)
    clip: float = 1.0
    shape: Shape = field(default_factory=Shape)

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(self.length * multiple for multiple in self.multiples)

    @property
    def longest(self) -> int:
        return max(self.lengths)


def new_model(arm: Arm, recipe: Recipe, seed: int) -> Transformer:
    """Learned tables end where training ends: at the trained length, at the longest one with randomised positions."""
    positions = recipe.longest if arm.randomized else recipe.length
    return Transformer(arm, recipe.shape, vocabulary=BYTES, causal=True, positions=positions, seed=seed)


def trial(
    arm: Arm, seed: int, steps: int, recipe: Recipe, train: Windows, held_out: Int[Tensor, "n w"], report: Report
) -> dict[str, Any]:
    """Everything that depends on configuration and seed alone, and apart from it the seconds it took."""
    model = new_model(arm, recipe, seed)
    begun = time.perf_counter()
    result: dict[str, Any] = {"parameters": model.encoding_parameters(), "failed": None}
    result |= fit(model, arm, seed, steps, recipe, train, report)
    trained = time.perf_counter()
    if result["failed"] is None:
        scored = score(model, recipe, held_out, lambda share: report(TRAINING + (1 - TRAINING) * share))
        result |= scored if _all_numbers(scored) else {"failed": "the score was no number"}
    report(1.0)
    return {"result": result, "seconds": {"training": trained - begun, "scoring": time.perf_counter() - trained}}


def fit(
    model: Transformer, arm: Arm, seed: int, steps: int, recipe: Recipe, train: Windows, report: Report
) -> dict[str, Any]:
    """Trains in place; a loss that is no number ends it."""
    curve, since, every = list[tuple[int, float]](), list[float](), max(1, steps // 20)
    for step, loss in enumerate(training(model, arm, seed, steps, recipe, train), start=1):
        if not math.isfinite(loss):
            return {"curve": curve, "failed": f"the loss was no number at step {step}"}
        since.append(loss)
        if step % every == 0:
            curve.append((step, sum(since) / len(since)))
            since.clear()
        report(TRAINING * step / steps)
    return {"curve": curve}


def training(model: Transformer, arm: Arm, seed: int, steps: int, recipe: Recipe, train: Windows) -> Iterator[float]:
    """Takes a step whenever asked and yields its loss in bits per byte; the data are the seed's, for every arm."""
    data = torch.Generator().manual_seed(seed_of("data", seed))
    places = torch.Generator().manual_seed(seed_of("positions", seed))
    optimizer = torch.optim.AdamW(groups(model, recipe.weight_decay), betas=recipe.betas, fused=True)
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * schedule(step, steps, recipe.warmup)
        windows = train.take(torch.randint(train.count, (recipe.batch,), generator=data))
        at = model.prepare(arm.training_positions(recipe.length, recipe.longest, places))
        logits = model(windows[:, :-1], at)
        loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        yield loss.item() / math.log(2)


def schedule(step: int, steps: int, warmup: float) -> float:
    """Up in a straight line, then down to 0 in another."""
    return min(1.0, (step + 1) / max(1.0, warmup * steps)) * (1 - step / steps)


def groups(model: Transformer, weight_decay: float) -> list[dict[str, Any]]:
    """Weight decay for the shared matrices only: neither for gains nor for what belongs to the encoding."""
    own = {id(parameter) for parameter in model.encodings.parameters()}
    decayed = [p for p in model.parameters() if p.ndim > 1 and id(p) not in own]
    rest = [p for p in model.parameters() if p.ndim < 2 or id(p) in own]
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]


def _all_numbers(scored: dict[str, Any]) -> bool:
    numbers = [*scored["bits"].values(), *(scored["by_position"] or ())]
    return all(number is None or math.isfinite(number) for number in numbers)


@torch.no_grad()
def score(
    model: Transformer, recipe: Recipe, held_out: Int[Tensor, "n w"], report: Report = lambda share: None
) -> dict[str, Any]:
    """Bits per byte over the same last bytes of every window, for each length of context; every byte weighs the same.

    `by_position` are the bits at the longest context, over stretches of `targets` bytes from the beginning of the window.
    A length that the encoding cannot represent has no number; `cannot` says why.
    """
    model.eval()
    bits, by_position, cannot = dict[str, float | None](), None, None
    limit = position_limit(model.encoding(0))
    for length in recipe.lengths:
        if limit is not None and length > limit:
            bits[str(length)], cannot = None, f"{TABLE_ENDS} {limit}"
            continue
        last = length if length == recipe.longest else recipe.targets
        losses = losses_of(model, held_out, length, last)
        report(length / sum(recipe.lengths))
        bits[str(length)] = losses[:, -recipe.targets :].mean().item()
        if length == recipe.longest:
            by_position = losses.unflatten(1, (-1, recipe.targets)).mean(dim=(0, 2)).tolist()
    return {"bits": bits, "by_position": by_position, "cannot": cannot}


def losses_of(model: Transformer, held_out: Int[Tensor, "n w"], length: int, last: int) -> Float[Tensor, "n last"]:
    """Bits of the last bytes of every window, given the `length` bytes before the last one."""
    at = model.prepare(Positions.arange(1, length))
    rows = []
    for windows in held_out.split(max(1, 1024 // length)):  # small enough for the cache and for malloc's free lists
        logits = model(windows[:, -length - 1 : -1], at, last=last)
        rows.append(F.cross_entropy(logits.transpose(1, 2), windows[:, -last:], reduction="none") / math.log(2))
    return torch.cat(rows).double()


def byte_pairs(train: Sequence[bytes], held_out: Int[Tensor, "n w"], recipe: Recipe) -> float:
    """Bits of the same target bytes by a table of byte pairs: what is known from the byte before alone."""
    counts = torch.ones(BYTES, BYTES, dtype=torch.float64)
    for document in train:
        text = torch.frombuffer(bytearray(document), dtype=torch.uint8).long()
        counts += torch.bincount(text[:-1] * BYTES + text[1:], minlength=BYTES**2).view(BYTES, BYTES)
    bits = -(counts / counts.sum(dim=1, keepdim=True)).log2()
    last = held_out[:, -recipe.targets - 1 :]
    return bits[last[:, :-1], last[:, 1:]].mean().item()


def position_limit(encoding: PositionalEncoding) -> int | None:
    """How many positions from 0 it can represent, where that is limited."""
    if isinstance(encoding, Learned):
        return encoding.max_positions
    if isinstance(encoding, XPos):
        return encoding.largest_position() + 1
    return None
