"""The folder is complete: every entry has its tests and its planted bug, and the page says so."""

from __future__ import annotations

import re

from field_bugs import planting
from field_bugs.entries import ENTRIES, NUMBERS, RULES
from field_bugs.table import PAGE, written


def test_every_entry_of_the_catalogue_is_listed():
    assert tuple(entry.number for entry in ENTRIES) == NUMBERS
    for entry in ENTRIES:
        assert entry.rule in RULES
        assert entry.threads
        assert all(re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", one) for one in entry.threads)


def test_every_entry_has_a_test_in_the_file_of_its_class():
    tests = planting.tests()
    assert set(tests) == set(NUMBERS)
    for number, several in tests.items():
        assert any(not planting.marked(test, "cuda") for test in several), number
        for test in several:
            assert test.__module__.startswith(f"field_bugs.test_{number[0].lower()}_"), test.__name__


def test_what_is_left_for_a_device_is_a_test_or_has_its_reason():
    for entry in ENTRIES:
        named = re.findall(r"test_\w+", entry.left)
        known = {test.__name__: test for test in planting.tests()[entry.number]}
        assert all(planting.marked(known[name], "cuda") for name in named), entry.number
        assert {name for name, test in known.items() if planting.marked(test, "cuda")} == set(named), entry.number


def test_the_page_is_the_one_of_the_entries():
    assert PAGE.read_text(encoding="utf-8") == written()
