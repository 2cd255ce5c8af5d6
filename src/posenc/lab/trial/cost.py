"""Time on this machine relative to no encoding. All encodings take turns in one process, so load affects them equally.

    ratio of a round = its time / NoPE's time in the same round;   reported: median and quartiles over the rounds

The row of NoPE compares a second copy with the first; its spread is the noise of the measurement.
"""

from __future__ import annotations

import gc
import platform
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch

from posenc.attention.module import Attention
from posenc.encoding import PositionalEncoding
from posenc.lab.experiment import Trial
from posenc.lab.text.corpus import Corpus
from posenc.lab.trial.fp64_properties import table_bytes_per_token
from posenc.lab.trial.training import Run, new_model
from posenc.positions import Positions

KINDS = ("prefill", "decode", "training")
FEWEST, MOST = 5, 25  # rounds
MANY_STEPS = 10**6  # length of a training run of which only a few steps are taken

Calls = dict[str, Callable[[], object]]


@dataclass(frozen=True)
class Sizes:
    """Sizes: one attention layer for prefill and decode, float32, one thread. Training uses the lab's model."""

    d_model: int = 512
    n_heads: int = 8
    prompt: int = 512
    tokens: int = 8  # tokens decoded per turn, each from the same cache


def cost(
    trials: Sequence[Trial], text: Corpus | None, seconds: float, report: Callable[[float], None], sizes: Sizes = Sizes()
) -> dict[str, Any]:
    """The cost of each encoding, as plain JSON.

    `trials` are one for each encoding, of one task and size. 5 to 25 rounds take about `seconds`. An encoding that fails
    is left out, and `failures` says why.
    """
    plain = {"encoding": "nope", "source": None, "settings": (), "options": (), "draws": 0, "after": ()}
    nope = trials[0].model_copy(update=plain)
    failures: dict[str, str] = {}
    with single_threaded():
        contenders: dict[tuple[str, str], Callable[[], object]] = {
            (kind, ""): call for kind, call in _calls(nope, text, sizes).items()
        }
        for trial in trials:
            try:
                calls = _calls(trial, text, sizes)
                for call in calls.values():
                    call()
            except Exception as error:  # the other encodings are measured nevertheless
                failures[trial.encoding] = f"{type(error).__name__}: {error}".splitlines()[0]
            else:
                contenders |= {(kind, trial.encoding): call for kind, call in calls.items()}
        times, rounds = _take_turns(contenders, seconds, report)
    able = [trial for trial in trials if trial.encoding not in failures]
    trained = {"batch": nope.training.rows, "length": nope.task.length, **nope.size.model_dump()}
    return {
        "rounds": rounds,
        "sizes": {**asdict(sizes), "training": trained},
        "ratios": {
            trial.encoding: {kind: spread(times[kind, trial.encoding], times[kind, ""]) for kind in KINDS} | memory(trial)
            for trial in able
        },
        "failures": failures,
        "nope_seconds": {kind: statistics.median(times[kind, ""]) for kind in KINDS},
        "device": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}, one thread",
    }


def memory(trial: Trial) -> dict[str, float]:
    """Parameters of the encoding in the trial's model, and bytes of prepared tables per token."""
    model = new_model(trial)
    return {"parameters": model.encoding_parameters(), "table_bytes_per_token": table_bytes_per_token(model.encoding(0))}


def spread(times: list[float], base: list[float]) -> dict[str, float]:
    """Median and quartiles of the pairwise ratios, not the ratio of medians."""
    low, median, high = statistics.quantiles(
        [ours / theirs for ours, theirs in zip(times, base, strict=True)], n=4, method="inclusive"
    )
    return {"median": median, "low": low, "high": high}


def _take_turns(
    contenders: dict[tuple[str, str], Callable[[], object]], seconds: float, report: Callable[[float], None]
) -> tuple[dict[tuple[str, str], list[float]], int]:
    """Seconds of every contender in every round, and the number of rounds. The first round warms up and is dropped."""
    times: dict[tuple[str, str], list[float]] = {contender: [] for contender in contenders}
    order, shuffle = list(contenders), random.Random(0)
    begun, rounds = time.perf_counter(), 0
    while rounds < FEWEST + 1 or (rounds < MOST + 1 and time.perf_counter() - begun < seconds):
        shuffle.shuffle(order)
        for contender in order:
            start = time.perf_counter()
            contenders[contender]()
            if rounds:
                times[contender].append(time.perf_counter() - start)
        rounds += 1
        report(max(min(rounds / (FEWEST + 1), (time.perf_counter() - begun) / max(seconds, 1e-9)), rounds / (MOST + 1)))
    return times, rounds - 1


def _calls(trial: Trial, text: Corpus | None, sizes: Sizes) -> Calls:
    arm = trial.arm
    encoding = arm.create(d_model=sizes.d_model, n_heads=sizes.n_heads, n_layers=1, positions=sizes.prompt + 1)[0].eval()
    assert isinstance(encoding, PositionalEncoding)
    attention = Attention(sizes.d_model, sizes.n_heads, encoding).requires_grad_(False)
    x = torch.randn(1, sizes.prompt, sizes.d_model, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        _, cache = attention.decode(x, encoding.prepare(Positions.arange(1, sizes.prompt)))
    steps = Run(trial.with_steps(MANY_STEPS), text).losses()

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
