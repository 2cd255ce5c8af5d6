"""posenc.check catches planted bugs and passes correct implementations: a sample in make test, all in make acceptance."""

import pytest

import posenc
from conformance.correct import CORRECT, sizes
from conformance.mutants import MUTANTS
from conformance.table import PAGE, failures, written

SAMPLED_CORRECT = {
    "rope",
    "partial in float32",
    "float32 softmax",
    "numpy",
    "sinusoid",
    "key alibi",
    "t5 both ways",
    "fused attention",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SAMPLED_CORRECT else pytest.mark.acceptance) for name in CORRECT]
)
def test_correct_implementations_pass(name):
    seam, make, expect = CORRECT[name]
    report = posenc.check(**{seam: make()}, expect=expect, name=name, **sizes(seam))
    assert report.passed, report
    assert report.seconds < 20


@pytest.mark.parametrize("name", list(MUTANTS)[::10])
def test_a_sample_of_mutants_is_caught(name):
    assert failures(name)


@pytest.mark.acceptance
def test_all_mutants_are_judged_as_the_table_says():
    found = {name: failures(name) for name in MUTANTS}
    assert len(found) >= 40
    assert {seam for seam, _, _ in MUTANTS.values()} == {"rotate", "embed", "table", "bias", "attention"}
    assert sum(bool(laws) for laws in found.values()) >= 0.95 * len(found)
    assert written(found) == PAGE.read_text(encoding="utf-8")
