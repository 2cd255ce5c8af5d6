"""Results folders of experiments that nobody ran: made-up numbers in the real format.

write(folder)                                       six encodings, four tasks, three seeds, every kind of row
write(folder, value=lambda asked: 2.0)              what every item scores
write(folder, left_out={("copy", "rope", 1)}, failed={("copy", "t5", 0): "why"}, cannot={"learned": "table ends at"})
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from posenc.lab.experiment import Experiment
from posenc.lab.records.record import NON_OVERLAPPING, RANDOM_POSITIONS, SAME_TARGETS, Record, Rows
from posenc.lab.records.results import Folder

ENCODINGS = ("nope", "sinusoidal", "learned", "rope", "alibi", "t5")
COST = "c057" * 16
SIZES = {"d_model": 512, "n_heads": 8, "prompt": 512, "tokens": 8,
         "training": {"batch": 8, "length": 64, "d_model": 64, "n_heads": 4, "n_layers": 2, "widening": 4}}  # fmt: skip
TEXT = "7e47" * 16
PROVENANCE = {"fingerprint": "f1f1" * 4, "revision": "c0de" * 10, "torch": "2.13.0", "device": "cpu"}
TASKS: dict[str, dict[str, Any]] = {
    "language_model": {"length": 64, "lengths": [64, 96, 128, 256, 512], "measure": "bits", "chance": 8.0, "baseline": 3.9},
    "masked_language_model": {"length": 64, "lengths": [64, 128], "measure": "bits", "chance": 8.0, "baseline": 3.9},
    "copy": {"length": 16, "lengths": [8, 16, 24, 32, 64], "measure": "exact", "chance": 0.0, "baseline": None},
    "recall": {"length": 8, "lengths": [8, 16, 32], "measure": "exact", "chance": 0.03, "baseline": None},
    "word_order": {"length": 16, "lengths": [16], "measure": "exact", "chance": 0.5, "baseline": None},
}
DEFAULT_TASKS = tuple(TASKS)

# Bits at the trained length and lost with every doubling; exact match there and kept with every doubling.
BITS = {"nope": (2.8, 0.1), "sinusoidal": (2.6, 0.6), "learned": (2.6, 0.0), "rope": (2.3, 0.55), "alibi": (2.35, 0.005),
        "t5": (2.4, 0.12)}  # fmt: skip
EXACT = {"nope": (0.97, 0.9), "sinusoidal": (0.96, 0.2), "learned": (0.97, 0.0), "rope": (0.99, 0.4), "alibi": (1.0, 0.95),
         "t5": (0.6, 0.5)}  # fmt: skip


class Asked(NamedTuple):
    """One number that is wanted; `change` is a change after training, `oracle` a model trained at the longest length."""

    task: str
    encoding: str
    seed: int
    length: int
    item: int
    times: float  # length over trained length
    change: str = ""
    oracle: bool = False
    mode: str = SAME_TARGETS


def plausible(asked: Asked) -> float:
    """Near what such models do; seeds and items differ a little."""
    doublings = 0.0 if asked.oracle else math.log2(max(asked.times, 1.0))
    wobble = 0.02 * asked.seed + 0.3 * math.sin(12.9898 * asked.item + 4.1 * asked.seed)
    if TASKS[asked.task]["measure"] == "bits":
        home, lost = BITS.get(asked.encoding, (2.7, 0.2))
        if asked.task == "masked_language_model" and asked.encoding == "nope":
            home = 4.1
        lost *= {"": 1.0, "interpolation": 0.8, "ntk": 0.4, "yarn": 0.25}[asked.change]
        return home + lost * doublings + wobble
    home, kept = EXACT.get(asked.encoding, (0.97, 0.5))
    if asked.task == "word_order" and asked.encoding == "nope":
        home = 0.5
    share = home * kept**doublings
    return float((asked.item * 0.618034 + 0.37 * asked.seed) % 1 < share)


def experiment_of(
    names: Sequence[str], encodings: Sequence[str], seeds: int, *, oracle: bool = False, after: Sequence[str] = ()
) -> Experiment:
    plans = [
        {"task": {"name": name, "length": TASKS[name]["length"], "lengths": TASKS[name]["lengths"], "held_out": 24},
         "training": {"steps": 500}, "oracle": oracle,
         "after": after if TASKS[name]["measure"] == "bits" and "rope" in encodings else ()}
        for name in names
    ]  # fmt: skip
    about = {"en": "Made-up numbers.", "zh": "虚构的数字。"}
    return Experiment.model_validate(
        {"name": "claims-made-up", "about": about, "encodings": encodings, "tasks": plans, "seeds": seeds}
    )


def write(
    folder: Path,
    *,
    tasks: Sequence[str] = DEFAULT_TASKS,
    encodings: Sequence[str] = ENCODINGS,
    seeds: int = 3,
    items: int = 24,
    value: Callable[[Asked], float] = plausible,
    left_out: Collection[tuple[str, str, int]] = (),
    failed: Mapping[tuple[str, str, int], str] | None = None,  # a record that says so
    crashed: Mapping[tuple[str, str, int], str] | None = None,  # no record, but a reason
    cannot: Mapping[str, str] | None = None,  # encoding -> why, beyond the trained length
    causal_only: Collection[tuple[str, str]] = (),  # (task, encoding)
    oracle: bool = False,
    after: Sequence[str] = ("interpolation", "ntk", "yarn"),
    curve: Callable[[str, int], list[tuple[int, float]]] | None = None,  # of encoding and seed; it converges if left out
    looks: bool = True,  # attention, links, similarity
    cost: bool = True,
) -> Path:
    """Writes the folder and returns it."""
    failed, crashed = failed or {}, crashed or {}
    cannot = {"learned": "table ends at {length}"} if cannot is None else cannot
    results = Folder(folder)
    results.prepare()
    keys, failures = list[str](), dict[str, str]()
    experiment = experiment_of(tasks, encodings, seeds, oracle=oracle, after=after)
    for trial in experiment.trials():
        key = trial.key(TEXT)
        who = (trial.task.name, trial.encoding, trial.seed)
        keys.append(key)
        if who in crashed:
            failures[key] = crashed[who]
        elif who not in left_out:
            record = _record(trial.model_dump(mode="json"), items, value, failed.get(who), cannot,
                             who[:2] in causal_only, looks, curve)  # fmt: skip
            results.put(key, record, trial.text(TEXT), PROVENANCE)
    manifest = {
        "name": "claims-made-up", "experiment": experiment.model_dump(mode="json"), "keys": keys,
        "tuning": [], "chosen": [], "failures": failures, "cost": COST, "command": "posenc lab run made-up",
        "text": {"source": "made up", "sha256": TEXT, "train": {"documents": 9, "bytes": 90000},
                 "held_out": {"documents": 1, "bytes": 10000}, "notes": []},
    }  # fmt: skip
    results.put_experiment(manifest)
    if cost:
        results.put_measurement("cost", COST, cost_of(encodings))
    return folder


def _record(
    trial: dict[str, Any], items: int, value: Callable[[Asked], float], failed: str | None, cannot: Mapping[str, str],
    causal_only: bool, looks: bool, curve: Callable[[str, int], list[tuple[int, float]]] | None,
) -> Record:  # fmt: skip
    task, encoding, seed = trial["task"]["name"], trial["encoding"], trial["seed"]
    length, lengths, about = trial["task"]["length"], trial["task"]["lengths"], TASKS[task]
    end = max(lengths) if trial["oracle"] else length
    why = {str(far): cannot[encoding].format(length=end) for far in lengths if encoding in cannot and far > end}
    if causal_only:
        why = {str(far): "causal only" for far in lengths}
    rows = Rows()
    if failed is None and not causal_only:
        for far in lengths:
            if str(far) not in why:
                for change in ("", *(word for word in trial["after"] if far > length or "@" in word)):
                    _score(rows, trial, far, items, value, change)
        _along(rows, trial, looks, curve or converging)
    return Record(
        {
            "format": 1, "trial": trial, "seconds": {"training": 20.0 + seed, "scoring": 2.0}, "trained_tokens": 512000,
            "parameters": 460000, "encoding_parameters": {"t5": 128, "learned": 8192}.get(encoding, 0), "failed": failed,
            "cannot": why, "chance": {str(far): about["chance"] for far in lengths}, "baseline": about["baseline"],
            "machine": {"system": "made up", "posenc": "0.0", "processor": "none", "cores": 2, "python": "3.12",
                        "torch": "2.13.0"},
            "finished": "2026-01-01T00:00:00+00:00",
        },
        rows.table(),
    )  # fmt: skip


def _score(rows: Rows, trial: dict[str, Any], far: int, items: int, value: Callable[[Asked], float], change: str) -> None:
    task, length = trial["task"]["name"], trial["task"]["length"]
    measure = TASKS[task]["measure"]
    modes = [SAME_TARGETS, *[NON_OVERLAPPING] * (task == "language_model"), *[RANDOM_POSITIONS] * ("draws" in trial)]
    for mode in modes:
        for item in range(items):
            asked = Asked(task, trial["encoding"], trial["seed"], far, item, far / length, change, trial["oracle"], mode)
            where = {"change": change, "mode": mode, "length": far, "item": item, "weight": 32.0 + item % 3}
            number = value(asked)
            rows.add(measure, number, **where)
            rows.add("right", number if measure == "exact" else 2.0**-number, **where)


def converging(encoding: str, seed: int) -> list[tuple[int, float]]:
    """The loss of a training that ends long before its last fifth begins."""
    home = BITS.get(encoding, (2.7, 0.2))[0]
    return [(step, home + 5 * math.exp(-step / 60) + 0.02 * seed) for step in range(25, 501, 25)]


def _along(rows: Rows, trial: dict[str, Any], looks: bool, curve: Callable[[str, int], list[tuple[int, float]]]) -> None:
    """What is seen along the way: the curve, loss by position, attention, similarity, links."""
    task, encoding, seed = trial["task"]["name"], trial["encoding"], trial["seed"]
    home = BITS.get(encoding, (2.7, 0.2))[0]
    for step, loss in curve(encoding, seed):
        rows.add("curve", loss, step=step)
    if task != "language_model":
        if task == "word_order" and looks:
            for head in range(4):
                for note, part in (("无聊→电影", 0.5), ("精彩→演员表演", 1.0), ("精彩→电影", 0.2)):
                    rows.add(
                        "link", part * (0.1 + 0.1 * head), step=500, layer=1, head=head, item=0, note=note, weight=0.06
                    )
        return
    for position in range(0, 512, 32):
        beyond = max(position - 64, 0) / 64
        rows.add(
            "position",
            home + BITS.get(encoding, (0, 0.2))[1] * math.log2(1 + beyond),
            length=512,
            position=position,
            weight=32.0,
        )
    if not looks:
        return
    for step in (0, 250, 500):
        for layer in range(2):
            for head in range(4):
                for distance in range(0, 64, 4):
                    fallen = math.exp(-distance * (head + 1) * step / 20000) / 16
                    rows.add("attention", fallen, step=step, layer=layer, head=head, position=distance)
        if encoding == "learned":
            for one in range(8):
                for other in range(8):
                    near = math.exp(-abs(one - other) * 0.5) * step / 500
                    rows.add("similarity", 1.0 if one == other else near, step=step, position=one * 8, other=other * 8)


def cost_of(encodings: Sequence[str]) -> dict[str, Any]:
    times = {"nope": 1.0, "sinusoidal": 1.01, "learned": 1.02, "rope": 1.3, "alibi": 1.05, "t5": 1.6}

    def spread(encoding: str) -> dict[str, float]:
        median = times.get(encoding, 1.2)
        return {"median": median, "low": median - 0.02, "high": median + 0.02}

    ratios = {encoding: {kind: spread(encoding) for kind in ("training", "prefill", "decode")} for encoding in encodings}
    return {"rounds": 9, "sizes": SIZES, "ratios": ratios,
            "nope_seconds": {"training": 0.02, "prefill": 0.01, "decode": 0.001}}  # fmt: skip
