"""Every model family of transformers: read by posenc, and compared with its own code."""

from __future__ import annotations

import pytest

from families import table
from families.harness import PROOFS

table.load_proofs()


@pytest.mark.parametrize("model_type", sorted(PROOFS))
def test_posenc_does_what_the_family_does(model_type: str):
    found = PROOFS[model_type](model_type)
    assert found.compared or found.exact, f"{model_type}: the proof compared nothing"


def test_the_defaults_are_those_of_the_installed_classes():
    from families import make_defaults

    assert make_defaults.OUT.read_text() == make_defaults.written()


def test_every_model_type_is_proven_or_says_why_not():
    missing = sorted(set(table.model_types()) - set(PROOFS) - set(table.without_positions()) - set(table.not_proven()))
    assert not missing, f"{len(missing)} model types: {missing}"
