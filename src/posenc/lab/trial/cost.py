"""Time on this machine relative to no encoding: contenders take turns in one process, so that all meet the same weather.

    ratio of a round = its time / NoPE's time in the same round;   reported: median and quartiles over the rounds

The row of NoPE is a second copy of it against the first: its spread is the noise of the measurement.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from posenc.attention_module import Attention
from posenc.encoding import PositionalEncoding
from posenc.lab.experiment.arm import Arm
from posenc.lab.experiment.corpus import Corpus
from posenc.lab.experiment.recipe import MANY, Recipe
from posenc.lab.trial.training import Run
from posenc.positions import Positions

KINDS = ("prefill", "decode", "training")
FEWEST, MOST = 5, 25  # rounds


@dataclass(frozen=True)
class Sizes:
    """One attention layer of ordinary size for prefill and decode, float32, one thread; training is the lab's own model."""

    d_model: int = 512
    n_heads: int = 8
    prompt: int = 512
    tokens: int = 8  # decoded one after another per turn, each from the same cache


def cost(
    arms: list[Arm], recipe: Recipe, text: Corpus, seconds: float, report: Callable[[float], None], sizes: Sizes = Sizes()
) -> dict[str, Any]:
    """Rounds for about `seconds`, 5 at least and 25 at most."""
    nope = Arm("nope")
    with single_threaded():
        contenders: dict[tuple[str, str], Callable[[], object]] = {}
        for name, arm in (("", nope), *((str(arm), arm) for arm in arms)):
            calls = _calls(arm, recipe, text, sizes)
            contenders |= {(kind, name): call for kind, call in calls.items()}
        times: dict[tuple[str, str], list[float]] = {contender: [] for contender in contenders}
        order, shuffle = list(contenders), random.Random(0)
        begun, rounds = time.perf_counter(), 0
        while rounds < FEWEST + 1 or (rounds < MOST + 1 and time.perf_counter() - begun < seconds):
            shuffle.shuffle(order)
            for contender in order:
                start = time.perf_counter()
                contenders[contender]()
                if rounds:  # the first warms up
                    times[contender].append(time.perf_counter() - start)
            rounds += 1
            report(max(min(rounds / (FEWEST + 1), (time.perf_counter() - begun) / max(seconds, 1e-9)), rounds / (MOST + 1)))
    trained = {"batch": recipe.training.rows, "length": recipe.task.length, **recipe.size.model_dump()}
    return {
        "rounds": rounds - 1,
        "sizes": {**sizes.__dict__, "training": trained},
        "ratios": {str(arm): {kind: spread(times[kind, str(arm)], times[kind, ""]) for kind in KINDS} for arm in arms},
        "nope_seconds": {kind: statistics.median(times[kind, ""]) for kind in KINDS},
    }


def spread(times: list[float], base: list[float]) -> dict[str, float]:
    """Median and quartiles of the pairwise ratios, not the ratio of medians."""
    low, median, high = statistics.quantiles(
        [ours / theirs for ours, theirs in zip(times, base, strict=True)], n=4, method="inclusive"
    )
    return {"median": median, "low": low, "high": high}


def _calls(arm: Arm, recipe: Recipe, text: Corpus, sizes: Sizes) -> dict[str, Callable[[], object]]:
    encoding = arm.create(d_model=sizes.d_model, n_heads=sizes.n_heads, n_layers=1, positions=sizes.prompt + 1)[0].eval()
    assert isinstance(encoding, PositionalEncoding)
    attention = Attention(sizes.d_model, sizes.n_heads, encoding).requires_grad_(False)
    x = torch.randn(1, sizes.prompt, sizes.d_model, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        _, cache = attention.decode(x, encoding.prepare(Positions.arange(1, sizes.prompt)))
    steps = Run(recipe.trial(arm, seed=0, steps=MANY), text).losses()

    @torch.no_grad()
    def prefill() -> object:
        return attention(x, encoding.prepare(Positions.arange(1, sizes.prompt)))

    @torch.no_grad()
    def decode() -> None:
        for _ in range(sizes.tokens):
            attention.decode(x[:, :1], encoding.prepare(Positions.decode([sizes.prompt])), cache)

    return {"prefill": prefill, "decode": decode, "training": lambda: next(steps)}


@contextmanager
def single_threaded() -> Iterator[None]:
    threads, collecting = torch.get_num_threads(), gc.isenabled()
    torch.set_num_threads(1)
    gc.disable()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        if collecting:
            gc.enable()
