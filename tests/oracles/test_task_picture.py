"""The task picture against loops over rows and columns."""

from collections import Counter
from itertools import permutations

import pytest
import torch

from posenc.lab.tasks.picture import Picture
from posenc.lab.tasks.task import IGNORE

FIRST, SECOND = 6, 7


def sign(a: int, b: int) -> int:
    return 0 if a < b else 1 if a == b else 2


def test_the_answers_by_loops_over_rows_and_columns():
    task, seen = Picture(length=6, lengths=(6, 12), held_out=64), set()
    for batch in (task.scored(6), task.scored(12), task.training_batch(64, torch.Generator().manual_seed(1))):
        for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
            lines = [tokens[n : n + 8] for n in range(0, len(tokens), 8)]
            found = {cell: (row, column) for row, line in enumerate(lines) for column, cell in enumerate(line)}
            (row, column), (other_row, other_column) = found[FIRST], found[SECOND]
            assert targets[:2] == [sign(column, other_column), sign(row, other_row)]
            assert set(targets[2:]) == {IGNORE}
            assert tokens[:8] == [3, 4, 5, 5, 5, 5, 5, 5]
            assert sum(cell in (FIRST, SECOND) for cell in tokens) == 2
            seen.add(tuple(targets[:2]))
    assert len(seen) == 8  # every pair of answers but the same cell


@pytest.mark.parametrize("rows", [1, 2, 6])
def test_chance_by_all_pairs_of_cells(rows):
    cells = [(row, column) for row in range(rows) for column in range(8)]
    counts = Counter((sign(a[1], b[1]), sign(a[0], b[0])) for a, b in permutations(cells, 2))
    assert Picture(length=6, lengths=(6,)).chance(rows) == pytest.approx(max(counts.values()) / counts.total())
