"""Results of other code: a sample is run again, equality is recorded, and a difference is told and changes nothing."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from lab_sweeps import TRIALS, Here, experiment, made_up, made_up_sweep, table
from posenc.lab.commands import verify as lab_verify
from posenc.lab.experiment import Trial, read_experiment
from posenc.lab.records import files, provenance, verified
from posenc.lab.records.fingerprint import fingerprint
from posenc.lab.records.record import Record
from posenc.lab.records.results import Folder
from posenc.lab.run import verify
from posenc.lab.run.verify import Kept, Rerun
from posenc.lab.trial.training import Hardware

OLD = "0ld" * 5 + "0"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Twelve trials that were made by other code."""
    with monkeypatch.context() as patch:
        patch.setattr(provenance, "fingerprint", lambda trial: OLD)
        made_up_sweep(tmp_path)
    return Folder(tmp_path)


def rerun(folder: Folder, chosen: list[Kept], train: Any = made_up) -> list[Rerun]:
    return verify.run_again(chosen, folder, Here(), None, Hardware(), lambda *_: None, lambda _: None, train)


def other_numbers(*given: Any) -> Record:
    return made_up(*given, bits=2.5, exact=0.5)


def listing(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_results_of_this_code_need_no_check(tmp_path: Path) -> None:
    made_up_sweep(tmp_path)
    kept = verify.kept_trials(Folder(tmp_path))
    assert len(kept) == TRIALS
    assert verify.touched(Folder(tmp_path), kept) == []


def test_a_sweep_says_what_is_of_other_code_and_does_not_run_it_again(folder: Folder) -> None:
    before = table(folder.path)
    outcome = made_up_sweep(folder.path, train=other_numbers)
    assert (outcome.ran, outcome.reused, outcome.others, outcome.unverified) == (0, TRIALS, 0, TRIALS)
    assert table(folder.path) == before


def test_equal_numbers_are_recorded_and_the_results_stay(folder: Folder) -> None:
    before = listing(folder.path)
    touched = verify.touched(folder, verify.kept_trials(folder))
    assert len(touched) == TRIALS
    reruns = rerun(folder, verify.sample(touched, 4))
    assert [one.differences for one in reruns] == [()] * 4
    pairs = verify.record_equal(folder, touched, reruns, Hardware())
    assert pairs == len({one.today for one in touched})
    after = listing(folder.path)
    (entry,) = verified.entries(folder.path)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == {"verified.jsonl"}
    assert entry["equal"] == sorted([OLD, today] for today in {fingerprint(one.trial) for one in touched})
    assert entry["trials"] == sorted(one.kept.key[:16] for one in reruns)
    assert {"date", "revision", "torch", "device"} <= entry.keys()
    assert verify.touched(folder, verify.kept_trials(folder)) == []
    assert made_up_sweep(folder.path).unverified == 0


def test_lines_are_only_added(folder: Folder) -> None:
    touched = verify.touched(folder, verify.kept_trials(folder))
    verify.record_equal(folder, touched[:1], [], Hardware())
    first = (folder.path / verified.NAME).read_bytes()
    verify.record_equal(folder, touched, [], Hardware())
    assert (folder.path / verified.NAME).read_bytes().startswith(first)
    assert len(verified.entries(folder.path)) == 2


def test_what_cannot_be_written_leaves_the_record_as_it_was(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    touched = verify.touched(folder, verify.kept_trials(folder))
    verify.record_equal(folder, touched[:1], [], Hardware())
    before = listing(folder.path)

    def broken(*_: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr(files.os, "replace", broken)
    with pytest.raises(OSError, match="no room"):
        verify.record_equal(folder, touched, [], Hardware())
    assert listing(folder.path) == before


def test_a_difference_is_told_with_its_size(folder: Folder) -> None:
    (chosen,) = verify.sample(verify.touched(folder, verify.kept_trials(folder))[:1], 1)
    (one,) = rerun(folder, [chosen], other_numbers)
    assert not one.equal
    assert one.differences == ("bits: 1 of 1 numbers differ, by up to 0.5",)

    def breaks(*_: Any) -> Record:
        raise MemoryError("all gone")

    (one,) = rerun(folder, [chosen], breaks)
    assert one.differences == ("it could not be run: MemoryError: all gone",)


def test_one_bit_is_a_difference() -> None:
    trial = experiment().trials()[0]
    one, other = (made_up(trial, None, Hardware(), lambda _: None, bits=bits) for bits in (2.0, 2.0000002))
    assert verify.differences(one, one) == ()
    assert len(verify.differences(one, other)) == 1
    longer = made_up(trial, None, Hardware(), lambda _: None, bits=2.0, exact=0.5)
    assert verify.differences(longer, one) == ("other rows: 2 instead of 1",)
    failed = Record({**one.about, "failed": "the loss became NaN or infinite at step 3"}, one.rows)
    assert verify.differences(failed, one) == ("failed: 'the loss became NaN or infinite at step 3' instead of None",)


def test_a_reference_of_this_machine_counts_like_the_record(folder: Folder) -> None:
    """A processor that rounds differently cannot repeat the record; it can repeat what known code gave here."""
    (chosen,) = verify.sample(verify.touched(folder, verify.kept_trials(folder))[:1], 1)
    (here,) = rerun(folder, [chosen], other_numbers)
    assert here.record is not None
    verified.add_references(folder.path, [here.record])
    assert [one.equal for one in rerun(folder, [chosen], other_numbers)] == [True]
    assert [one.equal for one in rerun(folder, [chosen])] == [True]

    def third(*given: Any) -> Record:
        return made_up(*given, bits=2.75, exact=0.5)

    assert [one.equal for one in rerun(folder, [chosen], third)] == [False]


# The sample -----------------------------------------------------------------------------------------------------------


def kept_of(trained: set[str] | None = None) -> list[Kept]:
    """The trials of the standard preset, without numbers; only the encodings in `trained` were really trained."""

    def tokens(trial: Trial) -> int:
        return int(trained is None or trial.encoding in trained)

    trials = read_experiment("standard").trials()
    return [Kept(trial, Record({"key": trial.key(""), "trained_tokens": tokens(trial)}, None), "f") for trial in trials]


def test_a_sample_covers_every_task_and_every_encoding() -> None:
    kept = kept_of()
    chosen = verify.sample(kept, 12)
    assert {one.trial.task.name for one in chosen} == {one.trial.task.name for one in kept}
    assert {one.trial.encoding for one in chosen} == {one.trial.encoding for one in kept}
    assert len(chosen) == len({one.key for one in chosen}) == 12
    assert [one.key for one in verify.sample(kept[::-1], 12)] == [one.key for one in chosen]
    assert len(verify.sample(kept, 1)) >= 12
    assert len(verify.sample(kept, 30)) == 30
    assert len(verify.sample(kept, 10**6)) == len(kept)
    assert verify.sample([], 12) == []


def test_another_code_draws_another_sample() -> None:
    kept = kept_of()
    changed = [one._replace(today="g") for one in kept]
    assert [one.key for one in verify.sample(kept, 12)] != [one.key for one in verify.sample(changed, 12)]


def test_trained_trials_and_those_with_references_come_first() -> None:
    kept = kept_of(trained={"rope", "alibi"})
    chosen = verify.sample(kept, 12)
    assert [bool(one.record.about["trained_tokens"]) for one in chosen[:7]] == [True] * 7
    wanted = frozenset(one.key for one in kept[:40])
    chosen = verify.sample(kept_of(), 12, wanted)
    assert {one.key for one in chosen[:6]} <= wanted


# The command ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The command trains with made-up numbers, in this process."""
    using: dict[str, Any] = {"train": made_up}
    real = verify.run_again

    def here(chosen: Any, folder: Any, engine: Any, *rest: Any) -> Any:
        return real(chosen, folder, Here(), *rest, using["train"])

    monkeypatch.setattr(verify, "run_again", here)
    monkeypatch.setattr(lab_verify, "interruptible", lambda left: contextlib.nullcontext())
    return using


def called(folder: Folder, **options: Any) -> int:
    from typer import Exit

    given = {"sample": 3, "all_": False, "keep_references": False, "text": None, "workers": 1, "as_json": False}
    try:
        lab_verify.command(folder.path, **{**given, **options})
    except Exit as end:
        return end.exit_code
    return 0


def test_the_command_records_equality_and_then_has_nothing_to_do(
    folder: Folder, train: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    folder.put_experiment({**(folder.experiment() or {}), "command": "posenc lab run tiny.yaml"})
    assert called(folder) == 0
    said = capsys.readouterr().err
    assert "12 trials to check: 2 tasks, 3 encodings. Running 3 of them again" in said.replace("\n", " ")
    assert said.count("equal bit for bit") == 4
    assert called(folder) == 0
    assert "all 12 trials are of this code, or of code known to be equal" in capsys.readouterr().err
    train["train"] = other_numbers
    assert called(folder, all_=True) == 1


def test_the_command_ends_with_1_where_numbers_differ(
    folder: Folder, train: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    folder.put_experiment({**(folder.experiment() or {}), "command": "posenc lab run tiny.yaml"})
    before = listing(folder.path)
    train["train"] = other_numbers
    assert called(folder, as_json=True) == 1
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert (found["trials"], found["of_other_code"], found["equal"], found["recorded"]) == (12, 12, False, 0)
    assert [one["differences"] for one in found["sample"]] == [["bits: 1 of 1 numbers differ, by up to 0.5"]] * 3
    assert "raise NUMERICS_VERSION in posenc/lab/experiment/key.py" in told.err
    assert listing(folder.path) == before


def test_references_are_kept_only_with_code_that_is_known(folder: Folder, train: dict[str, Any]) -> None:
    folder.put_experiment({**(folder.experiment() or {}), "command": "posenc lab run tiny.yaml"})
    with pytest.raises(ValueError, match="12 of 12 trials are of code that is not known to be equal to this"):
        called(folder, keep_references=True)
    assert called(folder) == 0
    train["train"] = other_numbers
    assert called(folder, keep_references=True) == 0
    assert sum(map(len, verified.references(folder.path).values())) == 3
    assert called(folder, keep_references=True) == 0
    assert sum(map(len, verified.references(folder.path).values())) == 3
