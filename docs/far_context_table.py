"""The table of docs/results.md: which encodings stay flat and which use far context, from the stored scores of seven tasks.

flat   the score at the longest length against that at the trained one: bits lost, or the share of right rows that is kept
far    what context beyond the trained length gives: of `chains` the share of the best prediction's gain; of a passkey and
       of recall the share of rows that are right where the answer stands in the farthest quarter of the longest input

A cell is the mean over seeds ± half of its 95 % interval (t). The two are never made one number.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from posenc.lab import tasks
from posenc.lab.experiment.change import Change
from posenc.lab.findings.criteria import ENOUGH
from posenc.lab.findings.statistics import half_width
from posenc.lab.findings.titles import change_title, title
from posenc.lab.report.floor import used_of
from posenc.lab.report.markdown import grid
from posenc.support.languages import Language, Words

RESULTS = Path(__file__).parent.parent / "results"
FOLDERS = ("chains", "study-tasks")
SAME, FARTHEST = "same targets", "farthest quarter"
RANDOM = "random positions"
ENCODING = Words("encoding", "编码")
KEPT, LOST = Words("stays flat, share kept", "保持不变，保留的份额"), Words("stays flat, bits lost", "保持不变，多出的比特")
FAR = Words("uses far context", "用到远处上下文")
HEADING = Words("{what}: {task}, {home} → {long}; {seeds}", "{what}：{task}，{home} → {long}；{seeds}")
SEEDS = Words("{n} seeds", "{n} 个种子")
FEW = Words("{n} seeds, five are needed to rank", "{n} 个种子，排名需要五个")
NOT_LEARNT, ENDS, NOTHING = Words("not learnt", "未学会"), Words("table ends", "表已到头"), Words("–")
IMPROVING = " ↓"

Scores = Mapping[str, float]  # by seed


class Row(NamedTuple):
    """An encoding, or RoPE with a change after training."""

    encoding: str
    setting: str

    @property
    def name(self) -> Words:
        if self.setting == "trained":
            return title(self.encoding)
        change = change_title(self.setting)
        return Words(f"RoPE + {change.en}", f"RoPE + {change.zh}")


class Task:
    """A task's scores by row, length and seed, as the reports of its folder give them."""

    def __init__(self, folder: str, settings: Mapping[str, Any]) -> None:
        self.task = tasks.read(settings)
        self.name, self.home, self.long = self.task.name, self.task.length, self.task.lengths[-1]
        self.scores: dict[tuple[Row, str, int], dict[str, float]] = {}
        for line in _lines(folder, "cells.csv"):
            if line["task"] == self.name and line["seed"]:
                at = Row(line["encoding"], line["setting"]), line["mode"], int(line["length"])
                self.scores.setdefault(at, {})[line["seed"]] = float(line["value"])
        self.about = {line["encoding"]: line for line in _lines(folder, "summary.csv") if line["task"] == self.name}
        self.seeds = max(map(len, self.scores.values()))

    def rows(self) -> Iterator[Row]:
        """Every encoding, then each change whose factor follows the length."""
        yield from (Row(name, "trained") for name in self.about)
        changes = dict.fromkeys(row.setting for row, _, _ in self.scores if row.setting not in ("trained", "oracle"))
        yield from (Row("rope", one) for one in changes if one != "unchanged" and Change.parse(one).factor is None)

    def heading(self, what: Words, language: Language) -> str:
        seeds = (SEEDS if self.seeds >= ENOUGH else FEW).filled(n=self.seeds)
        said = HEADING.filled(what=what, task=self.task.title, home=self.home, long=self.long, seeds=seeds)
        return said.in_language(language)

    def flat(self, row: Row, language: Language) -> str:
        """+0.43 ± 0.05 in bits, or 86 ± 16 %."""
        ends = self._ends(row)
        if isinstance(ends, Words):
            return ends.in_language(language)
        near, far = ends
        if self.task.measure == "bits":
            return _written([far[seed] - near[seed] for seed in far], 1, "+z.2f") + self._mark(row)
        return _written([far[seed] / near[seed] for seed in far], 100, ".0f") + " %" + self._mark(row)

    @property
    def kept(self) -> Words:
        return LOST if self.task.measure == "bits" else KEPT

    @property
    def has_far(self) -> bool:
        return self.name == "chains" or any(mode == FARTHEST for _, mode, _ in self.scores)

    def far(self, row: Row, language: Language) -> str:
        ends = self._ends(row)
        if isinstance(ends, Words):
            return ends.in_language(language)
        if self.name == "chains":
            known = {"length": self.home, "lengths": self.task.lengths, "floor": {"lengths": self._best()}}
            shares = [
                used_of(known, {str(self.home): near, str(self.long): far})
                for near, far in zip(*(end.values() for end in ends), strict=True)
            ]
        else:
            shares = list(self.scores.get((row, FARTHEST, self.long), {}).values())
        return _written(shares, 100, "z.0f") + " %" + self._mark(row) if shares else NOTHING.en

    def _best(self) -> dict[str, float]:
        return {str(length): self.task.floor(length) for length in (self.home, self.long)}  # type: ignore[attr-defined]

    def _ends(self, row: Row) -> tuple[Scores, Scores] | Words:
        """The scores at both lengths, of the same seeds; or why there are none."""
        if row.encoding not in self.about:
            return NOTHING
        if self.about[row.encoding]["learnt"] != "True":
            return NOT_LEARNT
        mode = next((mode for mode in (RANDOM, SAME) if (row, mode, self.long) in self.scores), None)
        if mode is None:
            return ENDS if row.setting == "trained" else NOTHING
        near = self.scores.get((row, mode, self.home)) or self.scores[Row(row.encoding, "trained"), mode, self.home]
        far = self.scores[row, mode, self.long]
        return {seed: near[seed] for seed in far}, far

    def _mark(self, row: Row) -> str:
        return IMPROVING if self.about[row.encoding]["converged"] == "False" else ""


def far_context_table(language: Language) -> str:
    found = [
        Task(folder, plan["task"])
        for folder in FOLDERS
        for plan in json.loads((RESULTS / folder / "experiment.json").read_text("utf-8"))["experiment"]["tasks"]
    ]
    rows = dict.fromkeys(row for task in found for row in task.rows())
    far = [task for task in found if task.has_far]
    head = [task.heading(FAR, language) for task in far] + [task.heading(task.kept, language) for task in found]
    lines = [
        [row.name.in_language(language)]
        + [task.far(row, language) for task in far]
        + [task.flat(row, language) for task in found]
        for row in rows
    ]
    return grid([ENCODING.in_language(language), *head], lines)


def _written(numbers: list[float], scale: float, form: str) -> str:
    """54 ± 3."""
    half = half_width(numbers) or 0.0
    return f"{scale * np.mean(numbers):{form}} ± {scale * half:{form.strip('+z')}}"


def _lines(folder: str, name: str) -> Iterator[dict[str, str]]:
    with (RESULTS / folder / "report" / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
