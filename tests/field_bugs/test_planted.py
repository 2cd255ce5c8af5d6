"""Every planted bug is noticed by a test of its entry, and every class and entry that can have one has one."""

import pytest

from field_bugs import planting
from field_bugs.entries import ENTRIES
from sampling import a_third

PLANTS = [(entry, plant) for entry, several in planting.plants().items() for plant in several]


@pytest.mark.parametrize(("entry", "plant"), a_third(PLANTS), ids=[plant.__name__ for _, plant in PLANTS])
def test_a_planted_bug_is_noticed(entry, plant, monkeypatch):
    assert planting.noticing(entry, plant, monkeypatch), (
        f"{entry}: {plant.__name__} is in, and every test of {entry} passes"
    )


def test_every_entry_has_a_plant():
    assert {entry for entry, _ in PLANTS} == {entry.number for entry in ENTRIES}
