"""Changes after training with a factor that follows the length, and with one factor at every length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab_results import write
from posenc.attention.backends import BACKENDS
from posenc.attention.call import Call
from posenc.encodings.self_extend import SelfExtend
from posenc.lab.experiment import Trial
from posenc.lab.experiment.change import METHODS, Change
from posenc.lab.findings.assemble import findings
from posenc.lab.report.markdown import markdown
from posenc.lab.report.page import page
from posenc.lab.text.corpus import Corpus
from posenc.lab.trial.training import run_trial

TEXT = Corpus("a mat", "", (b"the cat sat on a mat; " * 90,), (b"a cat sat on the mat; " * 20,))
TRIAL = {
    "task": {"name": "language_model", "length": 8, "lengths": [4, 8, 16], "targets": 4, "held_out": 6},
    "encoding": "rope", "seed": 0, "size": {"d_model": 16, "n_heads": 2, "n_layers": 1},
    "training": {"steps": 2, "rows": 2}, "after": ("yarn", "yarn@2", "ntk@4"),
}  # fmt: skip


def test_a_fixed_factor_holds_at_every_length() -> None:
    record = run_trial(Trial.model_validate(TRIAL), TEXT)
    assert record is not None
    scored: dict[tuple[str, int], list[float]] = {}
    for row in record.rows.to_pylist():
        if row["kind"] == "bits" and row["mode"] == "same targets":
            scored.setdefault((row["change"], row["length"]), []).append(row["value"])
    lengths = {change: [length for name, length in scored if name == change] for change in ("", "yarn", "yarn@2", "ntk@4")}
    assert lengths == {"": [4, 8, 16], "yarn": [16], "yarn@2": [4, 8, 16], "ntk@4": [4, 8, 16]}
    assert scored["yarn", 16] == scored["yarn@2", 16]  # the length asks for a factor of 2 there
    assert scored["", 8] != scored["yarn@2", 8]


def test_self_extend_is_scored_by_the_backend_of_the_stored_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """`regions`, which "auto" would take, rounds differently: stored scores would no longer be reproduced bit for bit."""
    used: list[str] = []
    for name in ("sdpa", "regions"):
        backend = BACKENDS[name]

        def seen(call: Call, name: str = name, attend: Any = backend.attend) -> Any:
            if isinstance(call.encoding, SelfExtend):
                used.append(name)
            return attend(call)

        monkeypatch.setattr(backend, "attend", seen)
    record = run_trial(Trial.model_validate({**TRIAL, "after": ("self_extend",)}), TEXT)
    assert record is not None
    assert {row["length"] for row in record.rows.to_pylist() if row["change"] == "self_extend"} == {16}
    assert set(used) == {"sdpa"}


@pytest.mark.parametrize("word", ["yarn@", "yarn@1", "yarn@0.5", "yarn@nan", "yarn@inf", "ntk@two", "@2", "yarn@2@3", "pi"])
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"such as (yarn|ntk)@2, got"):
        Trial.model_validate({**TRIAL, "after": [word]})


@pytest.mark.parametrize("method", METHODS)
def test_the_factor(method: str) -> None:
    assert [Change.parse(method).factor_at(ratio) for ratio in (0.5, 1, 2.5)] == [1, 1, 2.5]
    assert [Change.parse(f"{method}@2").factor_at(ratio) for ratio in (0.5, 1, 2.5)] == [2, 2, 2]


def test_the_report_names_every_change(tmp_path: Path) -> None:
    after = ("self_extend", "yarn", "yarn@2")

    def value(asked: Any) -> float:
        return 2.0 + 0.1 * after.index(asked.change) if asked.change else 3.0

    write(tmp_path, tasks=["language_model"], after=after, value=value)
    found = findings(tmp_path)
    told = {language: markdown(found, language) for language in ("en", "zh")}  # type: ignore[arg-type]
    for name in ("Self-Extend", "YaRN (factor 2)"):
        assert f"| {name} |" in told["en"]
        assert name in page(found)
    assert "| YaRN（倍数 2） |" in told["zh"]
    assert "Self-Extend 2.00 bits, YaRN 2.10 bits, YaRN (factor 2) 2.20 bits" in told["en"]
