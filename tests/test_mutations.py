"""Tests and laws notice when posenc is broken. All mutants are judged by make acceptance, one of them by make test."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from mutations import cpp_mutants, draw, nearest, python_mutants

ROOT = Path(__file__).resolve().parents[1]

PYTHON = """
def near(a, b):
    \"""Text that says < and 1.\"""
    if a < 0:
        raise ValueError("a: expected at least 0")
    return all(x <= y + 1 for x, y in zip(a.abs(), b))
"""
CPP = """
// a < b
template <class T> T first(const T *x, int n) { return n < 1 && true ? x[0] : static_cast<double>(x[1]); }
"""


def test_what_is_changed_in_python():
    found = {(one.kind, one.before, one.after) for one in python_mutants.mutants(PYTHON)}
    assert found == {
        ("comparison", "a < 0", "a <= 0"),
        ("off by one", "0", "1"),
        ("removed check", "if a < 0: raise", "pass"),
        ("swapped name", "all((x <= y + 1 for x, y in zip(a.abs(), b)))", "any((x <= y + 1 for x, y in zip(a.abs(), b)))"),
        ("comparison", "x <= y + 1", "x < y + 1"),
        ("arithmetic", "y + 1", "y - 1"),
        ("off by one", "1", "2"),
        ("dropped call", "a.abs()", "a"),
    }
    for mutant in python_mutants.mutants(PYTHON):
        changed = python_mutants.mutated(PYTHON, mutant)
        assert changed is not None
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(PYTHON))


def test_what_is_changed_in_cpp():
    made = {cpp_mutants.mutated(CPP, one) for one in cpp_mutants.mutants(CPP)}
    assert made == {
        CPP.replace("n < 1", "n <= 1"),
        CPP.replace("n < 1", "n < 2"),
        CPP.replace("&&", "||"),
        CPP.replace("true", "false"),
        CPP.replace("x[0]", "x[1]"),
        CPP.replace("x[1]", "x[2]"),
        CPP.replace("<double>", "<float>"),
    }


def test_formatting_changes_no_mutant():
    spread = PYTHON.replace("(a, b)", "(\n    a,\n    b,\n)").replace("\n    if", "\n\n    # why\n    if")
    assert [one.name for one in python_mutants.mutants(spread)] == [one.name for one in python_mutants.mutants(PYTHON)]
    spread = CPP.replace(" ", "\n ").replace("// a\n <\n b", "/* another */")
    assert [one.name for one in cpp_mutants.mutants(spread)] == [one.name for one in cpp_mutants.mutants(CPP)]


def test_every_named_one_applies():
    mutants = draw.named()
    assert len(mutants) > 10
    for one in mutants[::8]:  # make acceptance tries all, and that each has nearest tests
        assert one.source() != (draw.SOURCE / one.file).read_text(encoding="utf-8")


@pytest.mark.acceptance
def test_enough_are_drawn_of_every_language_and_every_one_applies():
    mutants = [*draw.named(), *draw.drawn()]
    assert len({one.key for one in mutants}) == len(mutants) >= 80
    count = {language: sum(one.language == language for one in mutants) for language in ("Python", "C++", "Triton")}
    assert count["Python"] >= 60
    assert count["C++"] >= 12
    assert count["Triton"] >= 8
    for one in mutants:
        assert nearest.nearest(one.file)
        assert one.source() != (draw.SOURCE / one.file).read_text(encoding="utf-8")


HARMLESS = """
import json, sys
from pathlib import Path
from tests.mutations import draw, judge
about = "encodings", "encodings/of_families/first_heads.py", "removed check"
same = draw.Mutant(*about, "a comment", 0, lambda text: text + "# nothing")
other = draw.Mutant(*about, "no class", 0, lambda text: text.replace("class FirstHeads", "class LastHeads"))
verdicts = judge.judged([same, other], judge.Record(Path(sys.argv[1])))
print(json.dumps([one.tests for one in verdicts]))
"""


@pytest.mark.acceptance
def test_a_harmless_change_survives_and_a_harmful_one_does_not(tmp_path):
    """The harness itself can fail."""
    survives, caught = json.loads(ran("-c", HARMLESS, str(tmp_path / "record")).splitlines()[-1])
    assert survives is None
    assert "cannot be imported" in caught


@pytest.mark.acceptance
def test_a_sample_is_caught():
    """One whose nearest tests fail soon."""
    assert "tests caught 1 of 1" in ran("-m", "tests.mutations", "--room", "hand", "--only", "forward ignores impl")


@pytest.mark.acceptance
def test_nearly_every_mutant_is_caught():
    """At least 95 % by the nearest tests, and by the laws at least 60 % of those that laws can see."""
    ran("-m", "tests.mutations", check=False)
    from mutations import judge, table

    record = judge.Record(judge.KEPT / "verdicts.jsonl")
    found = [record.find(one) for one in (*draw.named(), *draw.drawn())]
    verdicts = [one for one in found if one is not None]
    (by_tests, of), (by_laws, visible) = table.caught(verdicts), table.caught_by_laws(verdicts)
    assert of >= 80
    assert by_tests >= 0.95 * of
    assert by_laws >= 0.6 * visible
    assert {one.key for one in verdicts if one.room == "by hand" and one.tests is None} == set()


def ran(*arguments: str, check: bool = True) -> str:
    """Standard output, from a process of its own: this one has imported the unbroken package."""
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout
