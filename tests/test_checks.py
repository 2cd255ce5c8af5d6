"""The shared checks of arguments: what they take, what they refuse, and that they go by value, not by name."""

import math

import numpy as np
import pytest
import torch

from posenc import PositionalEncoding
from posenc.support import checks, tensors
from posenc.support.checked import checked

HUGE = 10**400


@pytest.mark.parametrize("wrong", [0, -1, 2.0, True, "8", None, torch.tensor(3), math.nan], ids=repr)
def test_whole_refuses(wrong):
    with pytest.raises(ValueError, match=r"^n_heads: expected a whole number from 1, got "):
        checks.whole(n_heads=wrong)


def test_whole_takes_integers_from_its_least():
    checks.whole(a=1, b=HUGE, c=np.int64(3))
    checks.whole(0, a=0)
    with pytest.raises(ValueError, match=r"^b: expected a whole number from 0, got -1"):
        checks.whole(0, a=0, b=-1)


@pytest.mark.parametrize("wrong", [0, 3, 2.0, True, "8", None], ids=repr)
def test_even_refuses(wrong):
    checks.even(width=2)
    with pytest.raises(ValueError, match=r"^width: expected an even number from 2, got "):
        checks.even(width=wrong)


@pytest.mark.parametrize("wrong", [0, -1.0, math.nan, math.inf, True, "1", None, HUGE], ids=lambda value: repr(value)[:9])
def test_positive_refuses(wrong):
    checks.positive(base=1, step=0.5)
    with pytest.raises(ValueError, match=r"^base: expected a positive number, got "):
        checks.positive(base=wrong)


@pytest.mark.parametrize("wrong", [math.nan, -math.inf, True, "1", None, HUGE], ids=lambda value: repr(value)[:9])
def test_finite_refuses(wrong):
    checks.finite(offset=-3, alpha=0.0)
    with pytest.raises(ValueError, match=r"^offset: expected a finite number, got "):
        checks.finite(offset=wrong)


@pytest.mark.parametrize("wrong", ["halves", None, ["half"], torch.zeros(2)], ids=str)
def test_one_of_refuses(wrong):
    checks.one_of(("half", "interleaved"), layout="half")
    with pytest.raises(ValueError, match=r"^layout: expected one of 'half', 'interleaved', got "):
        checks.one_of(("half", "interleaved"), layout=wrong)


def test_messages_stay_on_one_short_line():
    for value in (torch.zeros(64, 64), np.zeros((64, 64)), "a\nb", list(range(1000))):
        shown = checks.shown(value)
        assert "\n" not in shown
        assert len(shown) < 150
    assert checks.shown(torch.zeros(2, 3)) == "Tensor torch.float32 [2, 3]"
    assert checks.shown("x" * 118) == f"'{'x' * 118}'"  # 120 characters with the quotes: whole
    assert checks.shown("x" * 119) == f"'{'x' * 99}… (str)"


def test_tensors_with_values():
    tensors.with_values(lags=torch.arange(3))
    for wrong in (torch.zeros(0), torch.zeros(3, device="meta")):
        with pytest.raises(
            ValueError, match=r"^lags: expected at least one number, got Tensor torch.float32 \[[03]\] on (cpu|meta)$"
        ):
            tensors.with_values(lags=wrong)


def test_an_encoding_of_ones_own_may_use_any_name_for_its_arguments():
    """The base class knows no argument by its name, so it refuses none."""
    mine = PositionalEncoding(scale=-1, step="left", base=None, axes="xy", max_distance=-5, n_heads=0.5, offset=math.inf)
    assert mine.configuration["scale"] == -1
    assert "step='left'" in repr(mine)


def test_every_one_of_a_variable_number_of_arguments_is_checked():
    @checked
    def joined(first: int, *parts: int) -> int:
        return first + sum(parts)

    assert joined(1) == 1
    assert joined(1, 2, 3) == 6
    for wrong in [("a",), (2, "a"), (2, 3, None)]:
        with pytest.raises(ValueError, match=r"^parts: expected a whole number"):
            joined(1, *wrong)
