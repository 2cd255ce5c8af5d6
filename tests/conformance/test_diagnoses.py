"""posenc check names the bug that people have: each case of the table, and how a report opens."""

import json

import pytest
import torch

import in_process
import posenc
from conformance.correct import Causal, Partial, Rope, Sinusoid
from conformance.diagnosed import CASES, FIELD, PAGE, report, written
from conformance.habits import HABITS, HalfOfTheHead, HalfTableNeighbours, ScaleIsNan, TrailingPartial
from conformance.mutants import MUTANTS
from field_bugs.entries import NUMBERS
from posenc.checking import adapters
from posenc.checking.bugs import BUGS

pytestmark = pytest.mark.usefixtures("foreign_code_here")

SAMPLED = (
    set(list(HABITS)[::3])
    | {"FirstDtypeInAGlobal", "KeysTurnedAgain", "SixSlopes"}
    | {"HalfTableNeighbours", "takes_no_positions", "HalfOfTheHead", "TrailingPartial"}
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SAMPLED else pytest.mark.acceptance) for name in CASES]
)
def test_the_diagnosis_names_the_bug(name):
    found = report(name)
    *_, verdict, diagnosis = CASES[name]
    assert (found.verdict, found.diagnosis.name) == (verdict, diagnosis), found
    assert found.identity.convention is None or found.failures  # "matches X" is said of nothing that is unusual
    assert found.passed is False


def test_every_bug_is_in_the_table():
    assert set(FIELD) == set(NUMBERS)
    assert {f"mutant {name}" for name in MUTANTS} <= set(CASES)
    assert len(HABITS) >= 28
    assert sum(case in CASES for case in FIELD.values()) >= 50


@pytest.mark.acceptance
def test_the_page_is_what_the_checks_say():
    assert written() == PAGE.read_text(encoding="utf-8")


def test_a_report_opens_with_the_diagnosis_and_the_fix():
    lines = str(posenc.check(rotate=HalfTableNeighbours(), name="mine")).splitlines()
    assert lines[0].startswith("mine is wrong: the table of one layout is applied to the pairs of the other")
    assert lines[1].startswith("Fix: with cat(f, f) pair c with c + d/2 (rotate_half)")
    assert lines[2].startswith("mine · rotate · ")
    assert any(line.startswith("✗ shift_invariance") for line in lines[4:])


def test_what_is_right_has_no_diagnosis():
    found = posenc.check(rotate=Rope(), name="mine")
    assert (found.verdict, found.diagnosis) == ("passed", None)
    assert str(found).startswith("mine · rotate · ")


def test_unusual_says_what_it_is_nearest_to_and_what_differs():
    found = posenc.check(rotate=TrailingPartial())
    assert found.verdict == "unusual"
    assert found.identity.nearest == "Phi-1, Persimmon"
    assert "nearest to Phi-1, Persimmon, but the last channels turn, not the first" in str(found).splitlines()[0]
    assert found.diagnosis.sentence.zh != found.diagnosis.sentence.en
    told = found.to_dict()
    assert told["verdict"] == "unusual"
    assert told["identity"]["differences"]["trailing"]["zh"] == "转动的是最后的通道，而不是最前的"


@pytest.mark.parametrize(("base", "nearest", "told"), [
    (1_000.0, None, "it keeps every law and is nothing known; no known model has base 1000"),
    (40_000_000.0, None, "no known model has base 4e+07"),
    (8_000_000.0, "Yi", "nearest to Yi, but base 8e+06 instead of 5e+06"),
    (20_000.0, "Llama 1 and 2", "nearest to Llama 1 and 2, but base 20000 instead of 10000"),
    (100_000_000.0, "Llama 1 and 2", "the same as an exponent twice as large"),
    (500_000.0**0.5, "Llama 3", "the same as half of the exponent"),
])  # fmt: skip
def test_an_unknown_base_is_nearest_to_none_unless_it_is_near(base, nearest, told):
    found = posenc.check(rotate=type("Other", (Rope,), {"base": base})(), laws=["neighbours_stay_distinct"])
    assert found.identity.nearest == nearest
    assert told in str(found).splitlines()[0]
    assert ("nearest" in found.identity.sentence) == (nearest is not None)


def test_what_is_expected_is_not_unusual():
    """A base that no model has passes where it is named; a fact beside it does not."""
    quarter = type("Quarter", (Partial,), {"base": 30_000.0})
    assert posenc.check(rotate=quarter()).verdict == "unusual"
    assert posenc.check(rotate=quarter(), expect={"base": 30_000.0}).verdict == "passed"
    assert posenc.check(rotate=TrailingPartial(), expect={"base": 10_000.0}).verdict == "unusual"


def test_a_softmax_scale_of_nan_fails():
    found = posenc.check(attention=ScaleIsNan(), width=64)
    assert (found.verdict, found.diagnosis.name) == ("failed", "not finite")
    assert found["no_number_is_nan"].verdict == "failed"


@pytest.mark.parametrize("seam", ["rotate", "embed", "bias", "attention"])
def test_a_nan_anywhere_fails(seam):
    """Beyond position 3000 every result is NaN, alike in all calls: nothing differs from itself but by its NaN."""
    plain = {"rotate": Rope(), "embed": Sinusoid(), "attention": Causal()}
    far = lambda out, at: out.masked_fill(at.max() > 3000, float("nan"))  # noqa: E731
    functions = {
        "rotate": lambda x, positions: far(plain["rotate"](x, positions), positions),
        "embed": lambda x, positions: far(plain["embed"](x, positions), positions),
        "bias": lambda q_positions, k_positions: far(
            -(q_positions[:, None, :, None] - k_positions[:, None, None]).abs().float(), k_positions
        ),
        "attention": lambda q, k, v, q_positions, k_positions: far(
            plain["attention"](q, k, v, q_positions, k_positions), k_positions
        ),
    }
    found = posenc.check(**{seam: functions[seam]}, laws=["no_number_is_nan"], width=None if seam == "bias" else 64)
    assert found.verdict == "failed"
    assert found.diagnosis.name == "not finite"


def test_part_of_the_head_is_a_report_and_another_shape_is_not():
    found = posenc.check(rotate=HalfOfTheHead(), name="mine")
    assert str(found).startswith("mine is wrong: it gives back fewer channels than it gets")
    with pytest.raises(posenc.checking.Unusable, match="got the shape"):
        posenc.check(rotate=lambda x, positions: x.transpose(1, 2))


def no_positions(x):
    return x


def at_offset(x, offset=0):
    return Rope()(x, (offset + torch.arange(x.shape[2]))[None].expand(len(x), -1))


def test_what_counts_by_itself_is_tried_by_prefix_and_what_takes_an_offset_by_offset():
    assert adapters.of_positions(no_positions, "rotate")[1] == "none"
    assert adapters.of_positions(lambda x, positions: x, "rotate")[1] == "positions"
    assert adapters.of_positions(at_offset, "rotate")[1] == "offset"
    found = posenc.check(rotate=at_offset)
    assert found.verdict == "passed", found
    assert found.identity.convention == "Llama 1 and 2"
    assert found["rows_have_their_own_positions"].verdict == "not declared"
    counts = posenc.check(rotate=lambda x: at_offset(x))
    assert counts["positions_are_taken"].verdict == "failed"
    assert counts.identity.facts["base"] == 10_000.0


UNUSUAL = """
import torch

def rotate(x, positions):
    frequencies = 20000.0 ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float32) / x.shape[-1])
    with torch.autocast("cpu", enabled=False):
        angles = (positions.float()[..., None] * frequencies)[:, None]
    first, second = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1).to(x.dtype)
"""


def test_unusual_has_exit_code_0_and_1_with_strict(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(UNUSUAL)
    done = in_process.posenc("check", "mine.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0].startswith("mine.py is unusual: it keeps every law and is nothing known")
    assert done.stdout.splitlines()[1].startswith("Fix: ")
    strict = in_process.posenc("check", "mine.py", "--strict", "--json", cwd=tmp_path)
    assert strict.returncode == 1
    told = json.loads(strict.stdout)
    assert (told["verdict"], told["diagnosis"]["name"]) == ("unusual", "base")
    assert told["diagnosis"]["sentence"]["zh"] != told["diagnosis"]["sentence"]["en"]


def test_every_bug_is_said_in_chinese():
    assert [key for key, bug in BUGS.items() if bug.title.zh == bug.title.en or bug.remedy.zh == bug.remedy.en] == []
