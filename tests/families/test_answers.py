"""What is read of every model type is what was read before: answers.py says how to see a change and how to record it."""

import pytest

from families import answers

STORED = answers.stored()


def test_every_type_has_a_line():
    assert sorted(STORED) == answers.types()


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=() if at % 24 == 0 else pytest.mark.acceptance) for at, name in enumerate(STORED)
])  # fmt: skip
def test_the_answers_are_the_recorded_ones(name):
    assert answers.answers(name) == STORED[name], f"see: python tests/families/answers.py {name}"
