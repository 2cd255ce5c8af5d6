"""Tables from the stored reports: docs/results.md, and results/chains with the predictors that are known.

gained   `gained.csv`: what context beyond the trained length gives, on the same targets, against the same model cut to the
         trained length; with the optimum known, as a share of what it gains. Intervals are over seeds and rows
found    of a passkey and of recall the share of rows that are right where the answer stands in the farthest quarter of the
         longest input
kept     the score at the longest length as a share of the score at the trained length, for tasks scored by exact match

The last two are the mean over seeds with its 95 % interval over these (t), which ends at 0 and 100 %.
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
from posenc.lab.findings.answer import bounded
from posenc.lab.findings.criteria import ENOUGH
from posenc.lab.findings.statistics import Paired, bootstrap, interval
from posenc.lab.findings.titles import change_title, title
from posenc.lab.report.beyond import PREDICTORS
from posenc.lab.report.markdown import grid
from posenc.lab.tasks.task import OPTIMUM
from posenc.support.languages import Language, Words

RESULTS = Path(__file__).parent.parent / "results"
FOLDERS = ("chains", "study-tasks")
SAME, FARTHEST, WINDOW = "same targets", "farthest quarter", "last window"
RANDOM = "random positions"
ENCODING, SEEDS_OF = Words("encoding", "编码"), Words("seeds", "种子")
KEPT = Words("score kept", "保留的得分")
FOUND = Words("right, farthest quarter", "最远四分之一处正确")
GAINED, SHARE = Words("gained, bits", "多得的比特"), Words("share of the optimum's gain", "占最优预测收益的比例")
CUT = Words("last window, bits", "最后一个窗口，比特")
BITS = Words("{length} symbols, bits", "{length} 个符号，比特")
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
        self.gained = {
            Row(line["encoding"], line["setting"]): line
            for line in _lines(folder, "gained.csv")
            if line["task"] == self.name and int(line["length"]) == self.long
        }
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

    def columns(self) -> list[Words]:
        """What is told of the task."""
        if self.gained:
            return [GAINED, SHARE]
        return [*[FOUND] * any(mode == FARTHEST for _, mode, _ in self.scores), KEPT]

    def cell(self, row: Row, what: Words, language: Language) -> str:
        if row.encoding not in self.about:
            return NOTHING.en
        if self.about[row.encoding]["learnt"] != "True":
            return NOT_LEARNT.in_language(language)
        if what in (GAINED, SHARE):
            if (line := self.gained.get(row)) is None:
                return NOTHING.en
            return (_gained(line) if what is GAINED else _share(line)) + self.mark(row)
        ends = self._ends(row)
        if isinstance(ends, Words):
            return ends.in_language(language)
        near, far = ends
        shares = list(self.scores.get((row, FARTHEST, self.long), {}).values())
        if what is KEPT:
            shares = [far[seed] / near[seed] for seed in far]
        return _written(shares) + self.mark(row) if shares else NOTHING.en

    def _ends(self, row: Row) -> tuple[Scores, Scores] | Words:
        """The scores at both lengths, of the same seeds; or why there are none."""
        mode = next((mode for mode in (RANDOM, SAME) if (row, mode, self.long) in self.scores), None)
        if mode is None:
            return ENDS if row.setting == "trained" else NOTHING
        near = self.scores.get((row, mode, self.home)) or self.scores[Row(row.encoding, "trained"), mode, self.home]
        far = self.scores[row, mode, self.long]
        return {seed: near[seed] for seed in far}, far

    def mark(self, row: Row) -> str:
        return IMPROVING if self.about[row.encoding]["converged"] == "False" else ""


def results_table(language: Language) -> str:
    found = [task for folder in FOLDERS for task in of_folder(folder)]
    rows = dict.fromkeys(row for task in found for row in task.rows())
    columns = [(task, what) for task in found for what in task.columns()]
    head = [task.heading(what, language) for task, what in columns]
    lines = [[row.name.in_language(language), *(task.cell(row, what, language) for task, what in columns)] for row in rows]
    return grid([ENCODING.in_language(language), *head], lines)


def chains_table(language: Language) -> str:
    """The known predictors, then every row of the chains: bits in the last window, at the longest length, and the gain."""
    (chains,) = of_folder("chains")
    near, far = chains.task.controls(None), chains.task.controls(chains.long)
    assert near is not None
    assert far is not None
    offered = (near[OPTIMUM] - far[OPTIMUM]).mean().item()
    lines = []
    for name, words in PREDICTORS.items():
        cut, whole = near[name].mean().item(), far[name].mean().item()
        gain = cut - whole
        share = f"{100 * gain / offered:z.0f} %"
        told = f"{gain:+z.3f}"
        if name == OPTIMUM:
            each = (near[name] - far[name]).numpy()[None, None]
            low, high = interval(bootstrap(each, np.ones_like(each))[:, 0])
            told += f" ({low:+.3f} – {high:+.3f})"
        lines.append([words.in_language(language), "–", f"{cut:.2f}", f"{whole:.2f}", told, share])
    rows = sorted(chains.gained, key=lambda row: -float(chains.gained[row]["gained"]))
    for row in rows:
        if chains.about[row.encoding]["learnt"] == "True":
            whole = chains.scores[row, SAME, chains.long]
            unchanged = Row(row.encoding, "trained"), WINDOW, chains.home
            cut = chains.scores.get((row, WINDOW, chains.home)) or chains.scores[unchanged]
            name = row.name.in_language(language) + chains.mark(row)
            ends = [f"{np.mean([scores[seed] for seed in whole]):.2f}" for scores in (cut, whole)]
            line = chains.gained[row]
            lines.append([name, line["seeds"], *ends, _gained(line), _share(line)])
    head = [ENCODING, SEEDS_OF, CUT, BITS.filled(length=chains.long), GAINED, SHARE]
    return grid([words.in_language(language) for words in head], lines)


def of_folder(folder: str) -> list[Task]:
    plans = json.loads((RESULTS / folder / "experiment.json").read_text("utf-8"))["experiment"]["tasks"]
    return [Task(folder, plan["task"]) for plan in plans]


def _gained(line: Mapping[str, str]) -> str:
    """+0.24 (+0.23 – +0.25)."""
    mean, low, high = (f"{float(line[name]):+z.3f}" for name in ("gained", "low", "high"))
    return f"{mean} ({low} – {high})"


def _share(line: Mapping[str, str]) -> str:
    """85 % (83 – 87)."""
    mean, low, high = (f"{100 * float(line[name]):z.0f}" for name in ("share", "share_low", "share_high"))
    return f"{mean} % ({low} – {high})"


def _written(shares: list[float]) -> str:
    """54 % (51 – 57)."""
    low, high = bounded("exact", Paired(shares)) or (np.nan, np.nan)
    return f"{100 * np.mean(shares):.0f} % ({100 * low:.0f} – {100 * high:.0f})"


def _lines(folder: str, name: str) -> Iterator[dict[str, str]]:
    path = RESULTS / folder / "report" / name
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)
