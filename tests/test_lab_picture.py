"""The two-dimensional encodings of the examples, which the lab numbers one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from posenc import Positions
from posenc.lab.experiment import Size, read_experiment, user_encoding
from posenc.lab.run.admission import examine
from posenc.lab.tasks.picture import Picture

EXAMPLES = Path(__file__).parent.parent / "examples"
WORDS = ("in_a_picture.py:AxialRoPE", "in_a_picture.py:Sinusoidal2D")


def test_a_product_depends_on_rows_and_columns_alone() -> None:
    """Cells (1, 2) and (3, 5) of an 8-wide picture, and (2, 1) and (4, 4): the same step of two lines and three columns."""
    source = (EXAMPLES / "in_a_picture.py").read_text("utf-8")
    rope = user_encoding.create(WORDS[0], source, {"d_model": 32, "n_heads": 4, "n_layers": 1, "max_positions": 64})
    q, k = torch.randn(2, 1, 1, 2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def product(first: tuple[int, int], second: tuple[int, int]) -> float:
        at = Positions.at(torch.tensor([[8 * row + column for row, column in (first, second)]]))
        turned_q, turned_k = rope.rotate(q, at, "query"), rope.rotate(k, at, "key")
        return float(turned_q[0, 0, 0] @ turned_k[0, 0, 1])

    assert abs(product((1, 2), (3, 5)) - product((2, 1), (4, 4))) < 1e-12
    assert abs(product((1, 2), (3, 5)) - product((2, 1), (4, 3))) > 1e-3


def test_the_experiment_of_the_examples_is_one() -> None:
    assert set(WORDS) < set(read_experiment(str(EXAMPLES / "picture.yaml")).encodings)


@pytest.mark.acceptance
@pytest.mark.parametrize("word", WORDS)
def test_the_encodings_of_the_examples_keep_the_laws(word: str) -> None:
    source = (EXAMPLES / "in_a_picture.py").read_text("utf-8")
    task, size = Picture(length=2, lengths=(2, 3)), Size(d_model=16, n_heads=2, n_layers=1)
    assert [one for one in examine(word, source, size, (task,)) if not one.held] == []
