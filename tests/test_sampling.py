"""What make test leaves to make acceptance, and cases that are one test."""

import inspect
import itertools

import pytest

from cases import cases
from sampling import every_second


def test_of_every_second_combination_all_pairs_of_values_remain():
    axes = ("abc", (1, 2, 3), "xyz")
    cases = every_second(*axes, slow="c")
    assert [case.values for case in cases] == list(itertools.product(*axes))
    kept = [case.values for case in cases if not case.marks]
    assert not any("c" in values for values in kept)
    for one, other in itertools.combinations(range(3), 2):
        left = [tuple(value for value in axis if value != "c") for axis in axes]
        pairs = set(itertools.product(left[one], left[other]))
        assert {(values[one], values[other]) for values in kept} == pairs
    assert len(kept) == 9


def test_cases_in_one_test_name_those_that_fail():
    tried = []

    @cases("a, b", [(1, 2), (3, 3), (4, 5), (6, 6)])
    def unequal(tmp_path, a, b):
        tried.append((tmp_path, a, b))
        assert a != b

    assert list(inspect.signature(unequal).parameters) == ["tmp_path"]
    with pytest.raises(ExceptionGroup, match="2 of 4 cases") as failed:
        unequal(tmp_path="here")
    assert tried == [("here", 1, 2), ("here", 3, 3), ("here", 4, 5), ("here", 6, 6)]
    assert [one.__notes__ for one in failed.value.exceptions] == [
        ["the case {'a': 3, 'b': 3}"],
        ["the case {'a': 6, 'b': 6}"],
    ]
    with pytest.raises(AssertionError, match="no case of a"):
        cases("a", [])(lambda a: None)()
    with pytest.raises(BaseExceptionGroup, match="1 of 1 cases"):
        cases("a", [1])(lambda a: pytest.fail("that is no Exception"))()
