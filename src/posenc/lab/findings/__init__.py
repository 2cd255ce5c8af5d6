"""From a folder of results to what was found: plain JSON that every table, chart and sentence is made of.

    trials ─► the trained length learnt? ─no─► "not learnt at this budget", and no word about longer ones
                        │ yes
                        ▼
              rise, valid length factor, area, rank, behaviour

learnt   bits: within 0.6 of the best encoding at the trained length, and below what needs no context
         exact match: at least 0.95; both of the mean over seeds
rise     what is lost against the trained length, seed by seed: bits, or a share of the examples

A number that is missing says why: it cannot be, it failed, it was not learnt, or it was not run. It is never 0 or NaN.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import posenc
from posenc.bilingual import Words
from posenc.lab import tasks
from posenc.lab.experiment import Experiment
from posenc.lab.findings import answer, published, statistics
from posenc.lab.records.record import NON_OVERLAPPING, SAME_TARGETS
from posenc.lab.records.results import Folder, expected
from posenc.lab.trial.scoring import NO_NUMBER
from posenc.lab.verdict import GATE, NOT_LEARNT

if TYPE_CHECKING:
    import duckdb

FORMAT = 1
LEARNT = 0.95  # exact match at the trained length
MISSING = "missing"
Json = dict[str, Any]
CELL: Json = {"mean": None, "seeds": {}, "interval": None}
Numbers = Mapping[int, float]  # by seed

RULES = {
    "bits": Words(
        f"within {GATE:g} bits of the best encoding at the trained length, mean over seeds",
        f"在训练长度上，各种子平均与最好的编码相差不超过 {GATE:g} 比特",
    ),
    "baseline": Words(
        ", and better than {baseline:.2f} bits, which needs no context", "，并优于无需上文即可达到的 {baseline:.2f} 比特"
    ),
    "exact": Words(
        f"at least {LEARNT:g} of the examples all right at the trained length, mean over seeds",
        f"在训练长度上，各种子平均至少 {LEARNT:g} 的样例完全正确",
    ),
}

CELLS = """
    SELECT task, encoding, oracle, change, mode, kind, length, seed,
           sum(value * weight) / sum(weight) AS mean, count(*) AS items, sum(value) AS total
    FROM (SELECT * REPLACE (coalesce(change, '') AS change, CASE WHEN kind = 'bits' THEN weight ELSE 1 END AS weight)
          FROM rows WHERE kind IN ('bits', 'exact'))
    GROUP BY ALL
"""
FIRST_SEED = "(SELECT task, encoding, min(seed) AS seed FROM trials WHERE NOT oracle GROUP BY ALL)"
ATTENTION = f"""
    SELECT task, encoding AS arm, seed, step, layer, head, list(position ORDER BY position) AS distance,
           list(value ORDER BY position) AS probability
    FROM rows JOIN {FIRST_SEED} USING (task, encoding, seed) WHERE kind = 'attention' AND NOT oracle AND isfinite(value)
    GROUP BY ALL ORDER BY ALL
"""
LINKS = f"""
    SELECT task, encoding AS arm, step, layer, head, note AS link, avg(value) AS probability, avg(weight) AS even
    FROM rows JOIN {FIRST_SEED} USING (task, encoding, seed) WHERE kind = 'link' AND NOT oracle AND isfinite(value)
    GROUP BY ALL ORDER BY ALL
"""
SIMILARITY = f"""
    SELECT task, encoding, step, position, list(value ORDER BY other) AS line
    FROM rows JOIN {FIRST_SEED} USING (task, encoding, seed) WHERE kind = 'similarity' AND NOT oracle AND isfinite(value)
    GROUP BY ALL ORDER BY ALL
"""
CURVES = """
    SELECT task, encoding, step, avg(value) AS bits
    FROM rows WHERE kind = 'curve' AND NOT oracle AND isfinite(value) GROUP BY ALL ORDER BY ALL
"""
PLACES = """
    SELECT task, encoding, length, position, avg(value) AS bits
    FROM rows WHERE kind = 'position' AND NOT oracle AND isfinite(value) AND coalesce(change, '') = ''
    GROUP BY ALL ORDER BY ALL
"""
ITEMS = """
    SELECT encoding, length, seed, item, value, CASE WHEN kind = 'bits' THEN weight ELSE 1 END AS weight
    FROM rows WHERE task = ? AND kind = ? AND mode = ? AND NOT oracle AND coalesce(change, '') = '' AND isfinite(value)
"""


def findings(folder: Path) -> Json:
    """Raises ValueError for a folder that no sweep has begun in."""
    kept = Folder(folder)
    manifest = kept.experiment()
    if manifest is None:
        raise ValueError(f"{folder}: no results of posenc lab; `posenc lab run PRESET --out {folder}` makes some")
    experiment, surroundings = manifest["experiment"], manifest["surroundings"]
    with kept.connect() as database:
        results = Results(database)
        reports = [_Task(plan, experiment, results).report() for plan in experiment["tasks"]]
    crashed = _crashed(manifest)
    wanted = [
        (plan["task"]["name"], word, seed, oracle)
        for plan in experiment["tasks"]
        for word in words_of(plan, experiment)
        for seed in range(experiment["seeds"])
        for oracle in (False, True)[: 1 + plan["oracle"]]
    ]
    found = {
        "format": FORMAT,
        "name": experiment["name"],
        "about": experiment["about"],
        "seeds": list(range(experiment["seeds"])),
        "exploratory": experiment["seeds"] < statistics.ENOUGH,
        "posenc": surroundings.get("posenc", posenc.__version__),
        "surroundings": surroundings,
        "machine": next((about["machine"] for about in results.about.values() if about.get("machine")), {}),
        "text": manifest["text"],
        "command": manifest["command"],
        "trials": {
            "expected": len(wanted),
            "found": len(results.about.keys() & set(wanted)),
            "failed": sum(results.about[trial]["failed"] is not None for trial in results.about.keys() & set(wanted)),
        },
        "size": experiment["size"],
        "tasks": reports,
        "cost": _cost(kept.cost(), results, surroundings),
        "missing": [
            {"task": trial[0], "arm": trial[1], "seed": trial[2], "why": why}
            for trial in wanted
            if (why := _why_missing(results.about.get(trial), crashed.get(trial, "not run"), trial[3]))
        ],
    }
    found["published"] = published.table(found)
    found["summary"] = [words._asdict() for words in answer.sentences(found)]
    return found


def words_of(plan: Json, experiment: Json) -> list[str]:
    """The encodings of a task, as its plan or else the experiment names them."""
    words: list[str] = experiment["encodings"] if plan["encodings"] is None else plan["encodings"]
    return words


def _crashed(manifest: Json) -> dict[tuple[str, str, int, bool], str]:
    """Trials of which the sweep got no record, and the line that says why."""
    if not manifest["failures"]:
        return {}
    trials = expected(Experiment.model_validate(manifest["experiment"]), manifest)
    return {
        (trial.task.name, trial.encoding, trial.seed, trial.oracle): f"failed: {why}"
        for key, trial in trials.items()
        if (why := manifest["failures"].get(key))
    }


def _why_missing(about: Json | None, crashed: str, oracle: bool) -> str:
    why = crashed if about is None else f"failed: {about['failed']}" if about["failed"] is not None else ""
    return why and why + " (trained at the longest length)" * oracle


def _cost(measured: Json | None, results: Results, surroundings: Json) -> Json | None:
    if measured is None:
        return None
    size = {about["trial"]["encoding"]: about["encoding_parameters"] for about in results.about.values()}
    rows = {
        arm: {
            **times,
            "parameters": times.get("parameters", size.get(arm)),
            "table_bytes_per_token": times.get("table_bytes_per_token"),
        }
        for arm, times in measured["ratios"].items()
    }
    device = measured.get("device", surroundings.get("device", "cpu"))
    return {"rounds": measured["rounds"], "sizes": measured["sizes"], "rows": rows, "device": device}


class Results:
    """What is asked of the database once, by task."""

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self._database = database
        lines = database.execute("SELECT task, encoding, seed, oracle, about FROM trials ORDER BY ALL").fetchall()
        self.about: dict[tuple[str, str, int, bool], Json] = {tuple(who): json.loads(text) for *who, text in lines}
        self.cells = self._by_task(CELLS)
        self.attention, self.links, self.similarity = map(self._by_task, (ATTENTION, LINKS, SIMILARITY))
        self.curves, self.places = map(self._by_task, (CURVES, PLACES))

    def _by_task(self, query: str) -> dict[str, list[Json]]:
        found = self._database.execute(query)
        names = [about[0] for about in found.description]
        tasks: dict[str, list[Json]] = defaultdict(list)
        for line in found.fetchall():
            row = dict(zip(names, line, strict=True))
            tasks[row.pop("task")].append(row)
        return tasks

    def items(self, task: str, measure: str) -> Mapping[str, np.ndarray]:
        return self._database.execute(ITEMS, [task, measure, SAME_TARGETS]).fetchnumpy()


class _Task:
    """One task of the experiment; `report` is its part of the findings."""

    def __init__(self, plan: Json, experiment: Json, results: Results) -> None:
        self.plan, self.name, self.results = plan, plan["task"]["name"], results
        self.about = tasks.load(self.name)
        self.measure: statistics.Measure = self.about.measure
        self.length: int = plan["task"]["length"]
        self.lengths: list[int] = list(plan["task"]["lengths"])
        self.from_home = [length for length in self.lengths if length >= self.length]
        self.words = words_of(plan, experiment)
        self.trials = {
            word: {
                seed: about
                for (task, name, seed, oracle), about in results.about.items()
                if (task, name, oracle) == (self.name, word, False)
            }
            for word in self.words
        }
        self.any = next((about for trials in self.trials.values() for about in trials.values()), {})
        self.baseline: float | None = self.any.get("baseline")

    def report(self) -> Json:
        arms = [self._arm(word) for word in self.words]
        gate = self._gate(arms)
        draws = self._draws([arm["name"] for arm in arms if arm["learnt"]])
        for arm in arms:
            if arm["learnt"]:
                self._beyond(arm, draws.get(arm["name"]))
            else:
                _silence(arm, self.length)
        self._rank(arms)
        rope = next((arm for arm in arms if arm["name"] == "rope"), None)
        return {
            "name": self.name,
            "title": self.about.title._asdict(),
            "unit": self.about.unit._asdict(),
            "measure": self.measure,
            "causal": self.about.causal,
            "length": self.length,
            "lengths": self.lengths,
            "chance": self.any.get("chance", {}),
            "baseline": self.baseline,
            "training": self.plan["training"],
            "learning_rates": list(self.plan["learning_rates"]),
            "trained_tokens": self.any.get("trained_tokens"),
            "gate": gate,
            "arms": arms,
            "after": [] if rope is None else self._after(rope),
            "attention": self.results.attention[self.name],
            "similarity": self._similarity(),
            "links": self.results.links[self.name],
        }

    # One arm --------------------------------------------------------------------------------------------------------

    def _arm(self, word: str) -> Json:
        trials = self.trials[word]
        oracle = self._cells(word, oracle=True)
        return {
            "name": word,
            "learnt": False,
            "state": self._state(trials),
            "cells": self._cells(word),
            "non_overlapping": {
                length: {"mean": cell["mean"], "seeds": cell["seeds"]}
                for length, cell in self._cells(word, mode=NON_OVERLAPPING).items()
                if cell["state"] is None
            },
            "rise": {},
            "factor": None,
            "area": None,
            "rank": None,
            "behaviour": None,
            "by_position": self._by_position(word),
            "curve": _columns([row for row in self.results.curves[self.name] if row["encoding"] == word], "step", "bits"),
            "oracle": oracle if any(cell["seeds"] for cell in oracle.values()) else None,
            "learning_rate": next((about["trial"]["training"]["learning_rate"] for about in trials.values()), None),
            "seconds": _mean([about["seconds"]["training"] for about in trials.values()]),
        }

    def _state(self, trials: Mapping[int, Json]) -> str | None:
        """Why nothing can be said of an arm. One seed that failed is enough: the mean of the others would flatter it."""
        if not trials:
            return MISSING
        if broken := [about["failed"] for about in trials.values() if about["failed"] is not None]:
            return f"failed: {broken[0]} ({len(broken)} of {len(trials)} seeds)"
        cannot = next(iter(trials.values()))["cannot"]
        if set(cannot) >= set(map(str, self.lengths)):
            return f"cannot: {cannot[str(self.length)]}"
        return None

    def _cells(self, word: str, *, oracle: bool = False, change: str = "", mode: str = SAME_TARGETS) -> Json:
        """One for every length; `state` is why it has no mean."""
        asked = {"encoding": word, "oracle": oracle, "change": change, "mode": mode, "kind": self.measure}
        rows = [row for row in self.results.cells[self.name] if asked.items() <= row.items()]
        abouts = [
            about
            for (task, name, _, at_end), about in self.results.about.items()
            if (task, name, at_end) == (self.name, word, oracle)
        ]
        return {
            str(length): self._cell(str(length), [row for row in rows if row["length"] == length], abouts)
            for length in self.lengths
        }

    def _cell(self, length: str, rows: list[Json], abouts: list[Json]) -> Json:
        rows = sorted(rows, key=lambda row: row["seed"])
        seeds = {str(row["seed"]): row["mean"] for row in rows if math.isfinite(row["mean"])}
        state = _cell_state(length, abouts, len(seeds) < len(rows), bool(rows))
        if state is not None:
            return {**CELL, "seeds": seeds, "state": state}
        pooled = None
        if self.measure == "exact":
            pooled = list(statistics.wilson(sum(row["total"] for row in rows), sum(row["items"] for row in rows)))
        return {"mean": _mean(list(seeds.values())), "seeds": seeds, "interval": pooled, "state": None}

    def _by_position(self, word: str) -> Json | None:
        rows = [row for row in self.results.places[self.name] if row["encoding"] == word]
        if not rows:
            return None
        longest = max(row["length"] for row in rows)
        return {"length": longest, **_columns([row for row in rows if row["length"] == longest], "position", "bits")}

    # All arms -------------------------------------------------------------------------------------------------------

    def _gate(self, arms: list[Json]) -> Json:
        """Marks what was learnt, and says by which rule."""
        home = {arm["name"]: arm["cells"][str(self.length)]["mean"] for arm in arms if arm["state"] is None}
        home = {name: mean for name, mean in home.items() if mean is not None}
        less = self.measure == "bits"
        best = min(home, key=lambda name: home[name] if less else -home[name], default=None)
        rule, limit = RULES[self.measure], None if less else LEARNT
        if less and best is not None:
            limit = home[best] + GATE
            if self.baseline is not None:
                limit = min(limit, self.baseline)
        if less and self.baseline is not None:
            more = (words.format(baseline=self.baseline) for words in RULES["baseline"])
            rule = Words(*(base + end for base, end in zip(rule, more, strict=True)))
        for arm in arms:
            if limit is not None and arm["name"] in home:
                above = home[arm["name"]] - limit
                arm["learnt"] = above * (1 if less else -1) <= statistics.ROUNDING
            if not arm["learnt"]:
                arm["state"] = arm["state"] or (NOT_LEARNT if arm["name"] in home else MISSING)
        return {"rule": rule._asdict(), "best": best, "limit": limit}

    def _beyond(self, arm: Json, drawn: np.ndarray | None) -> None:
        """What became of an arm that learnt the trained length; `drawn` are bootstrapped means at its lengths."""
        cells = {length: arm["cells"][str(length)] for length in self.from_home}
        there = [length for length in self.from_home if cells[length]["mean"] is not None]
        home = cells[self.length]["seeds"]
        less = self.measure == "bits"
        for column, length in enumerate(there):
            far = cells[length]["seeds"]
            lost = {seed: (far[seed] - home[seed]) * (1 if less else -1) for seed in home if seed in far}
            if drawn is not None and less:
                arm["cells"][str(length)]["interval"] = list(statistics.interval(drawn[:, column]))
            if length > self.length and lost:
                between = None
                if drawn is not None:
                    between = list(statistics.interval((drawn[:, column] - drawn[:, 0]) * (1 if less else -1)))
                arm["rise"][str(length)] = {"mean": _mean(list(lost.values())), "seeds": lost, "interval": between}
        arm["factor"] = self._factor(cells, drawn)
        if there == self.from_home:
            arm["area"] = statistics.area(there, [cells[length]["mean"] for length in there])
            if len(there) > 1:
                arm["behaviour"] = statistics.behaviour(self.measure, cells[self.length]["mean"], cells[there[-1]]["mean"])

    def _factor(self, cells: Mapping[int, Json], drawn: np.ndarray | None) -> Json | None:
        """Up to the first length without a number; of few seeds, low and high are those of single seeds."""
        if len(self.from_home) == 1:
            return None
        there = self.from_home[
            : next((n for n, length in enumerate(self.from_home) if cells[length]["mean"] is None), None)
        ]
        seeds = [seed for seed in cells[self.length]["seeds"] if all(seed in cells[length]["seeds"] for length in there)]
        of_seeds = np.array([[cells[length]["seeds"][seed] for length in there] for seed in seeds])
        value = float(statistics.factors(self.measure, np.array([cells[length]["mean"] for length in there]), there))
        if drawn is not None:
            low, high = statistics.factor_interval(statistics.factors(self.measure, drawn[:, : len(there)], there))
        elif len(seeds):
            each = statistics.factors(self.measure, of_seeds, there)
            low, high = float(each.min()), float(each.max())
        else:
            low = high = value
        return {"value": value, "low": low, "high": high, "censored": value == self.lengths[-1] / self.length}

    def _draws(self, words: Sequence[str]) -> dict[str, np.ndarray]:
        """Bootstrapped means of arms with enough seeds, [draws, lengths that it has], the trained length first."""
        enough = [word for word in words if len(self.trials[word]) >= statistics.ENOUGH]
        if not enough:
            return {}
        items = self.results.items(self.name, self.measure)
        drawn = {}
        for word in enough:
            mine = (items["encoding"] == word) & (items["length"] >= self.length)
            lengths, at = np.unique(items["length"][mine], return_inverse=True)
            seeds, of = np.unique(items["seed"][mine], return_inverse=True)
            numbers, which = np.unique(items["item"][mine], return_inverse=True)
            values, weights = np.zeros((2, len(lengths), len(seeds), len(numbers)))
            values[at, of, which] = items["value"][mine]
            weights[at, of, which] = items["weight"][mine]
            drawn[word] = statistics.bootstrap(values, weights)
        return drawn

    def _rank(self, arms: list[Json]) -> None:
        """Over the seeds and lengths beyond the trained one where every arm that reaches them has a number."""
        beyond = [str(length) for length in self.from_home[1:]]
        whole = {arm["name"]: arm for arm in arms if arm["learnt"] and beyond}
        cells = {name: [arm["cells"][length] for length in beyond] for name, arm in whole.items()}
        cells = {name: mine for name, mine in cells.items() if all(cell["mean"] is not None for cell in mine)}
        seeds = {seed for mine in cells.values() for cell in mine for seed in cell["seeds"]}
        blocks = [
            {name: mine[column]["seeds"][seed] for name, mine in cells.items() if seed in mine[column]["seeds"]}
            for column in range(len(beyond))
            for seed in sorted(seeds)
        ]
        for name, rank in (statistics.mean_ranks(self.measure, blocks, list(cells)) or {}).items():
            whole[name]["rank"] = rank

    def _after(self, rope: Json) -> list[Json]:
        changes = sorted({row["change"] for row in self.results.cells[self.name] if row["encoding"] == "rope"})
        if changes in ([], [""]):
            return []
        found = [{"change": "", "cells": rope["cells"]}]
        for change in self.plan["after"]:
            cells = self._cells("rope", change=change)
            for length, cell in cells.items():
                if int(length) <= self.length:  # the factor is 1: nothing was changed
                    cells[length] = rope["cells"][length]
                elif cell["state"] == MISSING and rope["cells"][length]["mean"] is not None:
                    cells[length] = {**cell, "state": f"failed: {NO_NUMBER}"}
            if not rope["learnt"]:
                _silence({"cells": cells, "non_overlapping": {}}, self.length)
            found.append({"change": change, "cells": cells})
        return found

    def _similarity(self) -> Json | None:
        rows = self.results.similarity[self.name]
        if not rows:
            return None
        arm = rows[0]["encoding"]
        steps = sorted({row["step"] for row in rows if row["encoding"] == arm})
        matrices = [[row["line"] for row in rows if (row["encoding"], row["step"]) == (arm, step)] for step in steps]
        return {"arm": arm, "steps": steps, "matrices": matrices}


def _cell_state(length: str, abouts: Iterable[Json], no_number: bool, any_rows: bool) -> str | None:
    if why := next((about["cannot"][length] for about in abouts if length in about["cannot"]), None):
        return f"failed: {why}" if why == NO_NUMBER else f"cannot: {why}"
    if why := next((about["failed"] for about in abouts if about["failed"] is not None), None):
        return f"failed: {why}"
    if no_number:
        return f"failed: {NO_NUMBER}"
    return None if any_rows else MISSING


def _silence(arm: Json, trained: int) -> None:
    """What was not learnt is not judged beyond the trained length."""
    for length, cell in arm["cells"].items():
        if int(length) > trained and cell["state"] is None:
            arm["cells"][length] = {**CELL, "seeds": {}, "state": NOT_LEARNT}
    arm["non_overlapping"] = {length: cell for length, cell in arm["non_overlapping"].items() if int(length) <= trained}
    arm["by_position"] = None


def _columns(rows: Sequence[Json], *names: str) -> Json:
    return {name: [row[name] for row in rows] for name in names}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
