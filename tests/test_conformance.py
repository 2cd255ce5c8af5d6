"""posenc.check on implementations by others: correct ones pass, each planted bug is named."""

import json
import os
import subprocess
import sys

import pytest
import torch

import in_process
import posenc
from posenc.checking import Report, Result
from posenc.checking.engine import LAWS
from posenc.checking.table import SENTENCES, rows
from sampling import one_in

pytestmark = pytest.mark.usefixtures("foreign_code_here")

CORRECT = {
    "rope": {"d_head": 32},
    "sinusoidal": {"d_model": 32},
    "alibi": {"n_heads": 6},
    "t5": {"n_heads": 2},
    "nope": {},
    "xpos": {"d_head": 16},
}


def half_split(x, positions, base=10000.0):
    """A rotation as most libraries write it, in float32."""
    d = x.shape[-1]
    frequencies = 1.0 / base ** (torch.arange(0, d, 2, dtype=torch.float32) / d)
    with torch.autocast("cpu", enabled=False):
        angles = (positions[:, None, :, None].float() * frequencies).repeat(1, 1, 1, 2)
    first, second = x.chunk(2, -1)
    return (x * angles.cos() + torch.cat([-second, first], -1) * angles.sin()).to(x.dtype)


@pytest.mark.parametrize("name", one_in(2, CORRECT))
def test_posenc_passes(name):
    report = posenc.check(posenc.create(name, **CORRECT[name]))
    assert report.passed, report
    assert report.seconds < 20


def test_a_plain_rotation_passes_and_is_identified():
    report = posenc.check(rotate=half_split, expect={"layout": "half", "base": 10000.0, "sign": "positive"})
    assert report.passed, report
    assert report["is_what_is_expected"].verdict == "passed"
    assert report.identity.convention == "Llama 1 and 2"
    assert report.identity.facts["arithmetic"] == "float32"


def test_a_report_of_which_nothing_was_tried_has_not_passed():
    report = posenc.check(rotate=half_split, laws=["shift_invariance"], without=["shift_invariant"])
    assert {result.verdict for result in report.results} == {"not declared"}
    assert not report.passed


def test_what_is_not_tried_is_not_passed_unless_it_is_allowed():
    results = (Result("first", "passed"), Result("second", "not tried", "it returns nothing"))
    assert Report("one", "model", results[:1]).passed
    report = Report("one", "model", results)
    assert report.untried == results[1:]
    assert not report.failures
    assert not report.passed
    assert str(report).splitlines()[0] == "one · model · 1 passed, 1 not tried"
    assert str(report).splitlines()[-1] == "? second: not tried, because it returns nothing"
    assert Report("one", "model", results, allow_untried=True).passed
    assert not Report("one", "model", (*results, Result("third", "failed")), allow_untried=True).passed


def test_a_failure_says_what_where_and_how_to_mend_it():
    report = posenc.check(rotate=lambda x, positions: half_split(x, torch.arange(x.shape[2])[None].expand(len(x), -1)))
    result = report["gaps_are_kept"]
    assert not report.passed
    assert result.verdict == "failed"
    assert dict(result.example) == {"length": 2, "gap": 1}  # two tokens: the second, alone, is given the first position
    assert result.figure > result.allowed > 0
    assert "huggingface/transformers" in result.bug.threads[1]
    assert "remedy" in str(result)
    assert report.to_dict()["passed"] is False


def test_the_same_seed_gives_the_same_report():
    first, second = (
        posenc.check(rotate=lambda x, at: half_split(x, at.to(torch.bfloat16)), seed=3).to_dict() for _ in range(2)
    )
    assert {**first, "seconds": 0} == {**second, "seconds": 0}
    assert not first["passed"]
    assert first["identity"]["facts"]["arithmetic"] == "bfloat16 positions"


def test_a_callable_that_fails_at_once_is_unusable():
    with pytest.raises(posenc.checking.Unusable, match=r"rotate: .* KeyError"):
        posenc.check(rotate=lambda x, positions: {}["missing"])


def command(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "posenc", "check", *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


IMPLEMENTATION = """
import torch

def rotate(x, positions):
    frequencies = 10000.0 ** (-torch.arange(0, x.shape[-1], 2).float() / x.shape[-1])
    angles = (positions.to(x.dtype)[..., None] * frequencies)[:, None]
    first, second = x.chunk(2, -1)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
"""


def test_the_command_says_what_fails_by_its_exit_code(tmp_path):
    (tmp_path / "mine.py").write_text(IMPLEMENTATION)
    wrong = command("mine.py", "--json", cwd=tmp_path)
    assert wrong.returncode == 1, wrong.stderr
    found = json.loads(wrong.stdout)
    failed = [result["law"] for result in found["results"] if result["verdict"] == "failed"]
    assert failed == ["tokens_of_16_bits_lose_16_bits_only"]
    assert found["identity"]["convention"] == "Llama 1 and 2"
    (tmp_path / "mine.py").write_text(IMPLEMENTATION.replace("positions.to(x.dtype)", "positions.float()"))
    right = in_process.posenc("check", "mine.py:rotate", "--expect", "layout=half,base=10000", cwd=tmp_path)
    assert right.returncode == 0, right.stdout + right.stderr
    assert "matches Llama 1 and 2" in right.stdout
    wrong = in_process.posenc("check", "mine.py:rotate", "--expect", "layout=interleaved", cwd=tmp_path)
    assert wrong.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["absent.py"], "no such file"),
        pytest.param(["mine.py:absent"], "has no absent", marks=pytest.mark.acceptance),
        (["mine.py", "--expect", "buckets=32"], "rotate has no fact 'buckets'; it has d_head, rotary_dim"),
        pytest.param(["mine.py", "--as", "turn"], "expected one of rotate", marks=pytest.mark.acceptance),
        pytest.param(["mine.py", "--expect", "half"], "expected NAME=VALUE", marks=pytest.mark.acceptance),
        pytest.param(["math:sin"], "which seam is sin", marks=pytest.mark.acceptance),
        pytest.param(["mine.py", "--without", "grace"], "expected some of", marks=pytest.mark.acceptance),
    ],
)
def test_wrong_usage_has_exit_code_2(tmp_path, arguments, said):
    (tmp_path / "mine.py").write_text(IMPLEMENTATION)
    done = in_process.posenc("check", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.acceptance
def test_lists_can_be_expected(tmp_path):
    bias = "import torch\ndef bias(q, k):\n    slopes = torch.tensor([0.0625, 0.00390625])[:, None, None]\n"
    bias += "    return -slopes * (q[:, None, :, None] - k[:, None, None]).abs()\n"
    (tmp_path / "mine.py").write_text(bias)
    right = in_process.posenc("check", "mine.py", "--expect", "slopes=[0.0625,0.0039062],kind=linear", cwd=tmp_path)
    assert right.returncode == 0, right.stdout + right.stderr
    wrong = in_process.posenc("check", "mine.py", "--expect", "slopes=[0.0039062,0.0625]", cwd=tmp_path)
    assert wrong.returncode == 1


def test_a_state_that_no_copy_leaves_behind_is_seen():
    """Dynamic NTK in a global that grows with the farthest position, and never shrinks: all is driven far before a law."""
    farthest = [16]

    def rotate(x, positions):
        farthest[0] = max(farthest[0], int(positions.max()) + 1)
        d = x.shape[-1]
        base = 10000.0 * (farthest[0] / 16) ** (d / (d - 2))
        angle = positions[:, None, :, None].double() * base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        first, second = x.chunk(2, -1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)

    report = posenc.check(rotate=lambda x, positions: rotate(x, positions))
    assert not report.passed
    assert report["earlier_calls_do_not_matter"].verdict == "failed"


def test_what_fails_once_and_not_again_is_a_failure():
    calls = [0]

    def rotate(x, positions):
        calls[0] += 1
        return x + (calls[0] == 40)

    report = posenc.check(rotate=lambda x, positions: rotate(x, positions))
    assert not report.passed
    assert any("once and not again" in result.detail for result in report.results)


def test_every_law_has_one_sentence_and_every_sentence_a_law():
    pytest.importorskip("transformers")
    import posenc.checking.checking
    import posenc.checking.laws
    import posenc.transformers.model_laws  # noqa: F401 (each adds its laws)

    assert {name for kind in LAWS.values() for name in kind} == set(SENTENCES)
    assert set(LAWS) == {"rotate", "embed", "table", "bias", "attention", "cache", "encoding", "model"}
    everywhere = {name for name, kinds, _ in rows() if {"attention", "encoding", "model"} <= set(kinds)}
    assert everywhere == {"decode_equals_prefill", "packed_equals_separate", "batch_mates_do_not_matter"}


def test_the_command_prints_the_table_of_laws():
    done = in_process.posenc("check", "--laws")
    assert done.returncode == 0, done.stderr
    name, kinds, sentence = next(row for row in rows() if row[0] == "packed_equals_separate")
    assert {"attention", "encoding"} <= set(kinds)
    assert f"{name} ({', '.join(kinds)})\n    {sentence.en}\n" in done.stdout


PLUGGED = (
    IMPLEMENTATION
    + """
import pytest

@pytest.mark.posenc(rotate=rotate, expect={"layout": "half"}, laws=["decode_equals_prefill",
    "tokens_of_16_bits_lose_16_bits_only", "tables_survive_to_empty"])
def test_mine(law):
    law()
"""
)


def test_the_plugin_makes_a_test_of_each_law(tmp_path):
    (tmp_path / "test_mine.py").write_text(PLUGGED)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-v",
            "-p",
            "posenc.checking.pytest_plugin",
            "-p",
            "no:cacheprovider",
            "test_mine.py",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
    )
    assert "test_mine[decode_equals_prefill] PASSED" in done.stdout
    assert "test_mine[tokens_of_16_bits_lose_16_bits_only] FAILED" in done.stdout
    assert "test_mine[tables_survive_to_empty] SKIPPED" in done.stdout
    assert "test_mine[is_what_is_expected] PASSED" in done.stdout
    assert "flash-attention/issues/823" in done.stdout


def test_what_breaks_a_law_seems_to_be_something():
    """A rotation that counts from 0 is measured as if it read its positions, and nothing turns. It is not said to be so."""

    def counts_itself(x, positions):
        return half_split(x, torch.arange(x.shape[2]).expand(x.shape[0], -1))

    report = posenc.check(rotate=counts_itself)
    assert "seems to be: nothing turns: no positions" in report.head()
    assert report.diagnosis is not None
