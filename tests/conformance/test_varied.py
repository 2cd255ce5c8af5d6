"""posenc.check raises no false alarm: correct implementations of unusual shapes and scalings, each with a true sentence."""

import pytest

import posenc
from conformance.correct import CausalAlibi, Rope
from conformance.habits import slopes_without_dtype
from conformance.scaled import RIGHT, SLIPS
from conformance.varied import VARIED
from sampling import one_in

CASES = VARIED | {f"scaled: {name}": ("rotate", *case) for name, case in RIGHT.items()}


@pytest.mark.parametrize("name", one_in(9, CASES))
def test_what_is_correct_is_no_false_alarm(name):
    seam, make, options, verdict, told = CASES[name]
    found = posenc.check(**{seam: make()}, name=name, **options)
    assert (found.verdict, found.failures) == (verdict, ()), found
    assert told in found.identity.sentence


@pytest.mark.parametrize("name", one_in(6, SLIPS))
def test_a_slip_in_a_scaling_is_told(name):
    make, options, _, told = SLIPS[name]
    found = posenc.check(rotate=make(), name=name, laws=["neighbours_stay_distinct"], **options)
    assert told in str(found).splitlines()[0]
    assert found.diagnosis.sentence.zh != found.diagnosis.sentence.en


class SixSlopes(CausalAlibi):
    """Slopes of no power of two, and no dtype."""

    def bias(self, q_at, k_at, n):
        return -slopes_without_dtype(n) * (q_at[:, None, :, None] - k_at[:, None, None]).abs()


def test_a_missing_dtype_does_not_hide_slopes_of_six_heads():
    found = posenc.check(attention=SixSlopes(), n_heads=6, name="mine")
    assert [result.law for result in found.failures] == ["default_dtype_does_not_matter"]
    first, fix, *_ = str(found).splitlines()
    assert first.startswith("mine is wrong: nearest to ALiBi, Press et al. 2021, but slopes 0.3969, 0.1575")
    assert first.endswith("besides, a tensor made without a dtype follows torch.set_default_dtype.")
    assert "name it in expect: slopes; give every arange, linspace and tensor" in fix
    assert "此外，" in found.diagnosis.sentence.zh


def test_a_scaling_that_is_expected_is_not_unusual():
    make, options, *_ = RIGHT["longrope, no longer"]
    expect = {"scaling": "longrope, factors 1.08 to 64.84", "magnitude": 1.0}
    assert posenc.check(rotate=make(), expect=expect, **options).verdict == "passed"


def test_a_class_is_no_callable_of_a_seam():
    with pytest.raises(
        TypeError, match=r"rotate: expected a function or an object that is called, got a class; .* Rope\(…\)"
    ):
        posenc.check(rotate=Rope)
