"""The SQL queries over the results of a sweep, each run once and grouped by task."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from posenc.lab.findings import statistics

if TYPE_CHECKING:
    import duckdb

Json = dict[str, Any]
DIGITS = 5  # of the score of a row: a hundredth of what counts as a difference, or less

CELLS = """
    SELECT task, encoding, oracle, change, mode, kind, length, seed,
           sum(value * weight) / sum(weight) AS mean, count(*) AS items, sum(value) AS total
    FROM (SELECT * REPLACE (coalesce(change, '') AS change, CASE WHEN kind = 'bits' THEN weight ELSE 1 END AS weight)
          FROM rows WHERE kind IN ('bits', 'exact', 'retrieved'))
    GROUP BY ALL ORDER BY ALL
"""
ROWS = """
    SELECT task, encoding, change, mode, kind, length, list(value ORDER BY item), list(weight ORDER BY item)
    FROM (SELECT task, encoding, coalesce(change, '') AS change, mode, kind, length, item, avg(value) AS value,
                 avg(CASE WHEN kind = 'bits' THEN weight ELSE 1 END) AS weight, count(*) AS seeds
          FROM rows WHERE kind IN ('bits', 'exact') AND NOT oracle GROUP BY ALL)
    GROUP BY ALL HAVING bool_and(isfinite(value)) AND min(seeds) = max(seeds) AND count(*) > 1
"""
FIRST_SEED = "(SELECT task, encoding, min(seed) AS seed FROM trials WHERE NOT oracle GROUP BY ALL)"
ATTENTION = f"""
    SELECT task, encoding AS arm, seed, step, layer, head, list(position ORDER BY position) AS distance,
           list(value ORDER BY position) AS probability
    FROM rows JOIN {FIRST_SEED} USING (task, encoding, seed) WHERE kind = 'attention' AND NOT oracle AND isfinite(value)
    GROUP BY ALL ORDER BY ALL
"""
LINKS = """
    SELECT task, encoding AS arm, seed, step, layer, head, note AS link, avg(value) AS probability, avg(weight) AS even
    FROM rows WHERE kind = 'link' AND NOT oracle AND isfinite(value)
    GROUP BY ALL ORDER BY ALL
"""
SIMILARITY = f"""
    SELECT task, encoding, step, position, list(value ORDER BY other) AS line
    FROM rows JOIN {FIRST_SEED} USING (task, encoding, seed) WHERE kind = 'similarity' AND NOT oracle AND isfinite(value)
    GROUP BY ALL ORDER BY ALL
"""
TRAINING_CURVES = """
    SELECT task, encoding, seed, step, value AS bits
    FROM rows WHERE kind = 'curve' AND NOT oracle AND isfinite(value) ORDER BY ALL
"""
FAR_CURVES = TRAINING_CURVES.replace("'curve'", "'far'")
BY_POSITION = """
    SELECT task, encoding, length, position, avg(value) AS bits
    FROM rows WHERE kind = 'position' AND NOT oracle AND isfinite(value) AND coalesce(change, '') = ''
    GROUP BY ALL ORDER BY ALL
"""
WINDOWS = """
    SELECT wanted.width AS width, seed, sum(value * weight) / sum(weight) AS bits
    FROM rows, (SELECT unnest(?::INTEGER[]) AS width) AS wanted
    WHERE task = ? AND encoding = ? AND length = ? AND kind = 'position' AND NOT oracle AND isfinite(value)
          AND coalesce(change, '') = '' AND position < wanted.width
    GROUP BY ALL HAVING count(*) = wanted.width ORDER BY ALL
"""
ITEMS = """
    SELECT encoding, coalesce(change, '') AS change, mode, length, seed, item, value,
           CASE WHEN kind = 'bits' THEN weight ELSE 1 END AS weight
    FROM rows WHERE task = ? AND kind = ? AND NOT oracle AND isfinite(value)
    ORDER BY ALL
"""


class Results:
    """What the database holds, by task. `about` is by task, encoding, seed and whether it is an oracle."""

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self._database = database
        self._items = dict[tuple[str, str], Mapping[str, np.ndarray]]()
        lines = database.execute("SELECT task, encoding, seed, oracle, about FROM trials ORDER BY ALL").fetchall()
        self.about: dict[tuple[str, str, int, bool], Json] = {tuple(who): json.loads(text) for *who, text in lines}
        self.cells = self._by_task(CELLS)
        self.attention, self.links, self.similarity = map(self._by_task, (ATTENTION, LINKS, SIMILARITY))
        self.training_curves, self.far_curves = map(self._by_task, (TRAINING_CURVES, FAR_CURVES))
        self.by_position = self._by_task(BY_POSITION)
        self.rows = {tuple(which): scores for *which, scores in self._rows()}

    def _by_task(self, query: str) -> dict[str, list[Json]]:
        result = self._database.execute(query)
        names = [about[0] for about in result.description]
        tasks: dict[str, list[Json]] = defaultdict(list)
        for line in result.fetchall():
            row = dict(zip(names, line, strict=True))
            tasks[row.pop("task")].append(row)
        return tasks

    def _rows(self) -> Iterator[list[Any]]:
        """Task, encoding, change, mode, kind and length, and a number for each scored row: mean over seeds."""
        for *which, values, weights in self._database.execute(ROWS).fetchall():
            numbers = statistics.pseudo_values(np.array(values), np.array(weights))
            yield [*which, [round(float(number), DIGITS) for number in numbers]]

    def items(self, task: str, measure: str) -> Mapping[str, np.ndarray]:
        """Every scored item of a task, column by column."""
        if (task, measure) not in self._items:
            self._items[task, measure] = self._database.execute(ITEMS, [task, measure]).fetchnumpy()
        return self._items[task, measure]

    def windows(self, task: str, encoding: str, longest: int, widths: Sequence[int]) -> dict[int, dict[str, float]]:
        """Bits of the first bytes of the longest window, by how many they are and by seed."""
        windows = dict[int, dict[str, float]]()
        for width, seed, bits in self._database.execute(WINDOWS, [list(widths), task, encoding, longest]).fetchall():
            windows.setdefault(width, {})[str(seed)] = bits
        return windows

    def mean_curve(self, task: str, encoding: str) -> Json:
        """The training loss by step, mean over seeds."""
        losses = dict[int, list[float]]()
        for row in self.training_curves[task]:
            if row["encoding"] == encoding:
                losses.setdefault(row["step"], []).append(row["bits"])
        return {"step": sorted(losses), "bits": [sum(losses[step]) / len(losses[step]) for step in sorted(losses)]}
