"""Every model family of transformers: read by posenc, and compared with its own code."""

from __future__ import annotations

import importlib
import json
import re
from typing import Any

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from families import table
from families.harness import PROOFS
from sampling import first_only, only, thinned

table.load_proofs()
PAGE = table.OUT.read_text(encoding="utf-8") if table.OUT.exists() else ""
ROWS = {table.without_parity(line) for line in PAGE.splitlines() if line.startswith("|")}


def one_of_each_comparison() -> list[Any]:
    """Of the model types that one comparison serves, the first belongs to make test, of every fourth comparison."""
    first: dict[object, str] = {}
    for model_type in sorted(PROOFS):
        first.setdefault(PROOFS[model_type], model_type)
    return thinned(7, only(sorted(PROOFS), *first.values()))


@pytest.mark.parametrize("model_type", one_of_each_comparison())
def test_posenc_does_what_the_family_does(model_type: str):
    found = PROOFS[model_type](model_type)
    assert found.compared or found.exact, f"{model_type}: the proof compared nothing"
    if PAGE:  # that there is one, with a row for each, is a test of its own
        assert table.without_parity(table.row(model_type, found)) in ROWS, "run: python tests/families/table.py"


def test_the_page_has_a_row_for_every_model_type_and_no_other():
    on_page = [line.split("|")[2].strip() for line in PAGE.splitlines() if line.startswith("|")][2:]
    assert sorted(on_page) == table.model_types()


def test_every_model_type_is_proven_or_says_why_not():
    known = {**PROOFS, **table.without_positions(), **table.not_proven()}
    missing = sorted(set(table.model_types()) - set(known))
    assert not missing, f"{len(missing)} model types: {missing}"


def test_at_least_ninety_five_of_a_hundred_are_proven():
    assert len(PROOFS) >= 0.95 * (len(PROOFS) + len(table.not_proven()))


@pytest.mark.parametrize("part", first_only([(8,), (1,)]))
def test_the_defaults_are_those_of_the_installed_classes(part: int):
    from families import make_defaults

    stored = json.loads(make_defaults.OUT.read_text())
    assert sorted(stored) == sorted(CONFIG_MAPPING_NAMES)
    found = make_defaults.facts([*stored][::part])
    assert make_defaults.written({name: stored[name] for name in found}) == make_defaults.written(found)
    assert make_defaults.OUT.read_text() == make_defaults.written(stored)


def test_every_model_type_has_a_reader():
    from posenc.configs.family import READERS, load_readers

    load_readers()
    assert not sorted(set(table.model_types()) - set(READERS))


def test_a_reader_carries_the_name_of_a_model_type_that_it_reads():
    from posenc.configs.family import READERS, load_readers

    load_readers()
    types: dict[object, set[str]] = {}
    for model_type, reader in READERS.items():
        types.setdefault(reader, set()).add(re.sub(r"\W", "_", model_type))
    tables = {"composite", "diffusion_transformer", "no_positions"}  # readers of a table of many model types
    assert not [reader for reader, names in types.items() if reader.__name__ not in names | tables]


def test_inspect_prints_where_each_reader_is():
    from typer.testing import CliRunner

    from posenc.cli import app

    printed = CliRunner().invoke(app, ["inspect", "--families", "--json"])
    paths = json.loads(printed.stdout)
    assert set(table.model_types()) <= set(paths)
    assert paths["mixtral"] == "posenc.configs.families.mistral:mistral"
    for path in paths.values():
        module, _, name = path.partition(":")
        assert callable(getattr(importlib.import_module(module), name))
    lines = CliRunner().invoke(app, ["inspect", "--families"]).stdout.splitlines()
    assert [line.split() for line in lines] == [list(pair) for pair in paths.items()]
