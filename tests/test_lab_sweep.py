"""Sweeps that are killed, shared, starved and repeated end in exactly the table of an unbroken one."""

from __future__ import annotations

import errno
import json
import math
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lab_sweeps import TRIALS, Here, experiment, made_up, made_up_sweep, names, start, table, workers_of
from posenc.lab import experiment as lab_experiment
from posenc.lab.engines.local import Local
from posenc.lab.records import results
from posenc.lab.records.results import Folder, Unwritable
from posenc.lab.run import budget, measurements
from posenc.lab.run import sweep as sweep_module
from posenc.lab.run.sweep import Update, sweep
from posenc.lab.run.time_left import TimeLeft
from posenc.lab.text import corpus
from posenc.lab.trial.training import Hardware

needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every trial run really, one after another."""
    path = tmp_path_factory.mktemp("unbroken")
    outcome = made_up_sweep(path, train=None)
    assert (outcome.ran, outcome.reused, outcome.failed, outcome.missing, outcome.others) == (TRIALS, 0, (), (), 0)
    return path


def same_table(path: Path, other: Path) -> bool:
    assert len(table(path)) > 12 * TRIALS
    return names(path) == names(other) and same_rows(path, other)


def same_rows(path: Path, other: Path) -> bool:
    return table(path) == table(other)


def snapshot(path: Path) -> dict[str, tuple[int, bytes]]:
    return {str(file): (file.stat().st_mtime_ns, file.read_bytes()) for file in path.rglob("*") if file.is_file()}


def test_a_finished_sweep_is_found_and_nothing_is_written(unbroken: Path) -> None:
    before = snapshot(unbroken)
    outcome = made_up_sweep(unbroken)
    assert (outcome.ran, outcome.reused, outcome.failed) == (0, TRIALS, ())
    assert outcome.seconds < 2
    assert snapshot(unbroken) == before
    manifest = json.loads((unbroken / "experiment.json").read_text())
    assert manifest["experiment"] == experiment().model_dump(mode="json")
    assert len(set(manifest["keys"])) == TRIALS
    assert not (unbroken / "claims").exists() or not list((unbroken / "claims").iterdir())


@pytest.mark.acceptance
@needs_proc
def test_a_sweep_leaves_no_thread_that_could_wake_while_python_exits(tmp_path: Path) -> None:
    """One of Arrow's that frees Python's bytes then aborts the process: SIGABRT after everything is done."""
    script = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from lab_sweeps import *
before = os.listdir("/proc/self/task")
print([made_up_sweep(Path({str(tmp_path)!r}))[:2] for _ in range(2)], os.listdir("/proc/self/task") == before)
"""
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert out == f"[({TRIALS}, 0), (0, {TRIALS})] True\n"


# Killed --------------------------------------------------------------------------------------------------------------


def kill(path: Path, chance: random.Random, where: str) -> str:
    """Starts a sweep and kills it, or one of its workers, at a random moment; returns what it had said until then."""
    arguments = ("--die-in-write", str(chance.randint(1, 9))) if where == "write" else ()
    process = start(path, *arguments)
    assert process.stdout is not None
    said = list[str]()
    for _ in range(chance.randint(1, 2 * TRIALS)):
        said.append(process.stdout.readline())
    time.sleep(chance.random() * 0.1)
    if where == "driver":
        process.kill()
    elif where == "worker":
        for pid in workers_of(process.pid)[:1]:
            os.kill(pid, signal.SIGKILL)
    said += process.stdout.read().splitlines(keepends=True)
    process.wait()
    return "".join(said)


def killed_sweep(path: Path, places: list[str], seed: int) -> str:
    chance = random.Random(seed)
    said = "".join(kill(path, chance, where) for where in places)
    last = start(path)
    out, _ = last.communicate()
    assert last.returncode == 0, said + out
    assert out.splitlines()[-1].split()[0::3] == ["end", "0"], said + out
    return said + out


@needs_proc
@pytest.mark.acceptance
def test_three_kills_change_nothing(tmp_path: Path, unbroken: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    said = killed_sweep(tmp_path, ["write", "worker", "driver"], seed)
    assert same_table(tmp_path, unbroken), (seed, said)
    assert not list(tmp_path.rglob("*.tmp"))
    assert not list((tmp_path / "claims").iterdir())


@needs_proc
@pytest.mark.acceptance
def test_twenty_kills_change_nothing(tmp_path: Path, unbroken: Path) -> None:
    """Spread over folders, since a tiny sweep is soon at its end."""
    seed = random.SystemRandom().randrange(10**6)
    for number, places in enumerate([["driver", "write", "driver", "worker", "driver"]] * 4):
        said = killed_sweep(tmp_path / str(number), places, seed + number)
        assert same_table(tmp_path / str(number), unbroken), (seed, number, said)


@pytest.mark.acceptance
def test_an_interrupt_keeps_what_is_finished_and_ends_the_workers(tmp_path: Path, unbroken: Path) -> None:
    process = start(tmp_path)
    assert process.stdout is not None
    while not process.stdout.readline().startswith("done"):
        pass
    workers = workers_of(process.pid)
    process.send_signal(signal.SIGINT)
    process.stdout.read()
    assert process.wait(30) != 0
    kept = names(tmp_path)
    assert 0 < len(kept) < TRIALS
    assert set(kept) < set(names(unbroken))
    assert workers
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    assert not list((tmp_path / "claims").iterdir())
    outcome = made_up_sweep(tmp_path, train=None)
    assert (outcome.ran, outcome.reused) == (TRIALS - len(kept), len(kept))
    assert same_table(tmp_path, unbroken)


# Shared --------------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance
def test_two_sweeps_in_one_folder_run_each_trial_once(tmp_path: Path, unbroken: Path) -> None:
    both = [start(tmp_path, "--workers", "1") for _ in range(2)]
    ends = [process.communicate()[0].splitlines()[-1].split() for process in both]
    ran, found, failed = (sum(int(end[n]) for end in ends) for n in (1, 2, 3))
    assert (ran, found, failed) == (TRIALS, TRIALS, 0)
    assert same_table(tmp_path, unbroken)


HOST = ("unshare", "--uts", "--pid", "--fork", "--mount-proc", "sh", "-c", 'hostname "$0" && exec "$@"')


@pytest.mark.acceptance
def test_runs_on_two_hosts_that_share_a_folder_run_each_trial_once(tmp_path: Path, unbroken: Path) -> None:
    """Two hosts have other names and the same numbers of processes: only the locks of the files tell them apart."""
    if shutil.which("unshare") is None or subprocess.run([*HOST, "a", "true"], capture_output=True).returncode:
        pytest.skip("unshare makes no host here; it needs root")
    both = [start(tmp_path, "--workers", "1", host=(*HOST, name)) for name in ("first", "second")]
    ends = [process.communicate()[0].splitlines()[-1].split() for process in both]
    assert sum(int(end[1]) for end in ends) == TRIALS
    assert all(int(end[1]) > 0 for end in ends)
    assert same_table(tmp_path, unbroken)


@pytest.mark.acceptance
def test_what_another_sweep_holds_is_awaited_and_taken_over_when_that_dies(tmp_path: Path) -> None:
    made_up_sweep(tmp_path)
    key = (Folder(tmp_path).experiment() or {})["keys"][3]
    next((tmp_path / "trials").glob(f"*{key[:16]}*")).unlink()
    holds = f"""
from pathlib import Path
from posenc.lab.records.results import Folder
claim = Folder(Path({str(tmp_path)!r})).reserve({key!r})
print("held", flush=True)
input()
"""
    holder = subprocess.Popen([sys.executable, "-c", holds], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    waited = list[Update]()

    def progress(update: Update) -> None:
        if update.what == "elsewhere":
            waited.append(update)
            holder.kill()
            holder.wait()

    outcome = made_up_sweep(tmp_path, progress=progress)
    assert waited
    assert (outcome.ran, outcome.reused) == (1, TRIALS - 1)


def test_a_trial_that_another_sweep_has_finished_meanwhile_is_not_run(tmp_path: Path, unbroken: Path) -> None:
    class Late(Here):
        def run(self, trials: Any, context: Any) -> Any:
            shutil.copytree(unbroken / "trials", tmp_path / "trials", dirs_exist_ok=True)
            yield from super().run(trials, context)

    outcome = made_up_sweep(tmp_path, engine=Late())
    assert (outcome.ran, outcome.reused) == (0, TRIALS)
    assert same_table(tmp_path, unbroken)


# Starved and broken --------------------------------------------------------------------------------------------------


def test_a_full_disk_ends_the_sweep_and_the_next_one_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up_sweep(tmp_path / "whole")
    fsync, files = os.fsync, []

    def fills_up(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            files.append(descriptor)
            if len(files) > 4:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fills_up)
        with pytest.raises(Unwritable, match=r"^--out: cannot write .*: No space left on device\. Everything finished"):
            made_up_sweep(tmp_path / "full")
    assert len(names(tmp_path / "full")) == 3  # and the manifest
    assert not list((tmp_path / "full").rglob("*.tmp"))
    assert not list((tmp_path / "full" / "claims").iterdir())
    outcome = made_up_sweep(tmp_path / "full")
    assert (outcome.ran, outcome.reused) == (TRIALS - 3, 3)
    assert same_rows(tmp_path / "full", tmp_path / "whole")


def test_a_damaged_file_is_named_and_its_trial_run_again(tmp_path: Path) -> None:
    made_up_sweep(tmp_path)
    before = table(tmp_path)
    damaged = tmp_path / "trials" / names(tmp_path)[5]
    damaged.write_bytes(damaged.read_bytes()[:-7])
    notes = list[str]()
    outcome = made_up_sweep(tmp_path, progress=lambda update: notes.append(update.line) if update.line else None)
    assert (outcome.ran, outcome.reused) == (1, TRIALS - 1)
    assert len(notes) == 1
    assert notes[0].startswith(f"trials/{damaged.name}: not a record")
    assert table(tmp_path) == before


def test_what_fails_is_named_stops_nothing_and_is_tried_again(tmp_path: Path) -> None:
    def train(trial: Any, *rest: Any) -> Any:
        if trial.encoding == "alibi":
            raise MemoryError("no more\nat all")
        return made_up(trial, *rest)

    outcome = made_up_sweep(tmp_path, train=train)
    assert outcome.ran == TRIALS - 4
    assert [line for _, line in outcome.failed] == ["MemoryError: no more"] * 4
    assert {trial.encoding for trial, _ in outcome.failed} == {"alibi"}
    failures = (Folder(tmp_path).experiment() or {})["failures"]
    assert list(failures.values()) == ["MemoryError: no more"] * 4
    again = made_up_sweep(tmp_path)
    assert (again.ran, again.reused, again.failed) == (4, TRIALS - 4, ())
    assert (Folder(tmp_path).experiment() or {})["failures"] == {}


def test_a_trial_that_diverged_is_kept_named_and_not_run_again(tmp_path: Path) -> None:
    """Its record holds the reason, so that the next sweep names it too."""

    def diverging(trial: Any, *given: Any) -> Any:
        record = made_up(trial, *given)
        failed = "the loss became NaN or infinite at step 1" if trial.encoding == "alibi" else None
        return type(record)({**record.about, "failed": failed}, record.rows)

    for ran, found in ((TRIALS, 0), (0, TRIALS)):
        outcome = made_up_sweep(tmp_path, train=diverging)
        assert (outcome.ran, outcome.reused, outcome.failed) == (ran, found, ())
        assert sorted((one.trial.task.name, one.trial.encoding, one.line) for one in outcome.diverged) == [
            (task, "alibi", "the loss became NaN or infinite at step 1") for task in ("copy", "copy", "recall", "recall")
        ]


def test_other_numerics_mix_with_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up_sweep(tmp_path)
    old = table(tmp_path)

    def train(*given: Any) -> Any:
        return made_up(*given, bits=3.0, exact=0.25)

    with monkeypatch.context() as patch:
        for module in (lab_experiment, results):
            patch.setattr(module, "NUMERICS_VERSION", module.NUMERICS_VERSION + 1)
        half = experiment(seeds=1)
        outcome = made_up_sweep(tmp_path, train=train, experiment=half)
        assert (outcome.ran, outcome.reused, outcome.others) == (TRIALS // 2, 0, TRIALS)
        assert len(table(tmp_path)) == len(old) // 2
        assert {row[-2] for row in table(tmp_path)} == {3.0, 0.25}
    back = made_up_sweep(tmp_path)
    assert (back.ran, back.reused, back.others) == (0, TRIALS, TRIALS // 2)
    assert table(tmp_path) == old


def test_more_seeds_run_only_what_is_new(tmp_path: Path) -> None:
    made_up_sweep(tmp_path)
    outcome = made_up_sweep(tmp_path, experiment=experiment(seeds=3))
    assert (outcome.ran, outcome.reused, outcome.others) == (TRIALS // 2, TRIALS, 0)


def test_what_another_process_adds_while_a_sweep_runs_stays(tmp_path: Path) -> None:
    """`posenc lab add` while `posenc lab run` trains: the end of the run must not undo it."""
    grown, begun = experiment(seeds=3).model_dump(mode="json"), []

    def train(trial: Any, *rest: Any) -> Any:
        if not begun:
            begun.append(trial)
            folder = Folder(tmp_path)
            kept = folder.experiment()
            assert kept is not None
            folder.put_experiment({**kept, "experiment": grown, "keys": [*kept["keys"], kept["keys"][0][::-1]]})
        return made_up(trial, *rest)

    made_up_sweep(tmp_path, train=train)
    kept = Folder(tmp_path).experiment()
    assert kept is not None
    assert (kept["experiment"], kept["keys"][-1]) == (grown, kept["keys"][0][::-1])


def test_two_experiments_begun_at_once_in_an_empty_folder_do_not_mix(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.was_empty = True  # as `posenc lab run` found it
    made_up_sweep(tmp_path)  # another run is quicker
    longer = experiment(seeds=3)
    with pytest.raises(ValueError, match=r"--out: another run has begun the experiment '.*' in .*; give another --out"):
        sweep(longer, folder, Here(), train=made_up, hardware=Hardware())


# Choosing a learning rate --------------------------------------------------------------------------------------------

RATES = (1e-3, 3e-3, 9e-3)


def tuned(**changed: Any) -> Any:
    whole = experiment()
    plans = [plan.model_copy(update={"learning_rates": RATES}) for plan in whole.tasks]
    return whole.model_copy(update={"tasks": tuple(plans), **changed})


def test_the_rate_that_is_best_at_the_trained_length_is_taken(tmp_path: Path) -> None:
    """Exact match decides for these tasks, bits where that is the same; a model that broke is never the best."""

    def train(trial: Any, *rest: Any) -> Any:
        rate, exact, bits = trial.training.learning_rate, 0.5, 2.0
        if trial.task.name == "copy":
            exact = {1e-3: 0.2, 3e-3: 0.9, 9e-3: 0.1}[rate]
            bits = {1e-3: 1.0, 3e-3: 3.0, 9e-3: 0.5}[rate]
        elif trial.encoding == "rope":
            bits = {1e-3: 1.0, 3e-3: 0.9, 9e-3: 0.8}[rate]
        record = made_up(trial, *rest, exact=exact, bits=bits)
        if trial.task.name == "recall" and rate == 9e-3:
            record.about["failed"] = "the loss became NaN or infinite at step 2"
        return record

    outcome = made_up_sweep(tmp_path, train=train, experiment=tuned())
    assert (outcome.ran, outcome.missing) == (6 * 3 + TRIALS, ())
    manifest = Folder(tmp_path).experiment() or {}
    chosen = {(one["task"], one["encoding"]): one["learning_rate"] for one in manifest["chosen"]}
    best = {
        (task, word): 3e-3 if task == "copy" or word == "rope" else 1e-3
        for task in ("copy", "recall")
        for word in ("nope", "alibi", "rope")
    }
    assert chosen == best
    with Folder(tmp_path).connect() as database:
        rates = database.execute("SELECT DISTINCT task, encoding, learning_rate FROM trials").fetchall()
        assert {(task, word): rate for task, word, rate in rates} == best
        assert database.execute("SELECT max(seed) FROM trials").fetchall() == [(1,)]
    again = made_up_sweep(tmp_path, experiment=tuned())
    assert (again.ran, again.reused, again.others) == (0, 6 * 3 + TRIALS, 0)


def test_without_all_its_tuning_models_an_encoding_is_missing_not_guessed(tmp_path: Path) -> None:
    def train(trial: Any, *rest: Any) -> Any:
        if trial.encoding == "rope" and trial.training.learning_rate == 3e-3:
            raise RuntimeError("planted")
        return made_up(trial, *rest)

    outcome = made_up_sweep(tmp_path, train=train, experiment=tuned())
    assert len(outcome.failed) == 2
    assert {(trial.encoding, line) for trial, line in outcome.missing} == {
        ("rope", "no learning rate was chosen: at 0.003, RuntimeError: planted")
    }
    assert len(outcome.missing) == 4
    assert reasons(tmp_path) == {"no learning rate was chosen: at 0.003, RuntimeError: planted"}
    assert made_up_sweep(tmp_path, experiment=tuned()).missing == ()
    assert reasons(tmp_path) == set()


def test_where_every_try_stopped_early_no_learning_rate_is_chosen(tmp_path: Path) -> None:
    def train(trial: Any, *rest: Any) -> Any:
        record = made_up(trial, *rest)
        if trial.encoding == "rope" and trial.task.name == "copy":
            record.about["failed"] = "the loss became NaN or infinite at step 2"
        return record

    outcome = made_up_sweep(tmp_path, train=train, experiment=tuned())
    why = "no learning rate was chosen: every one of 3 tries stopped early; try lower learning_rates"
    assert {(trial.task.name, trial.encoding, line) for trial, line in outcome.missing} == {("copy", "rope", why)}
    chosen = {(one["task"], one["encoding"]) for one in (Folder(tmp_path).experiment() or {})["chosen"]}
    assert len(chosen) == 5
    assert ("copy", "rope") not in chosen
    assert reasons(tmp_path) == {why}


def test_a_missing_package_is_the_reason_of_the_models_too(tmp_path: Path) -> None:
    def train(trial: Any, *rest: Any) -> Any:
        if trial.encoding == "rope":
            raise ModuleNotFoundError("a package is not installed")
        return made_up(trial, *rest)

    outcome = made_up_sweep(tmp_path, train=train, experiment=tuned())
    assert len(outcome.missing) == 4
    assert all(problem.not_installed for problem in (*outcome.failed, *outcome.missing))
    assert reasons(tmp_path) == {"ModuleNotFoundError: a package is not installed"}


def reasons(folder: Path) -> set[str]:
    """Why trials have no record, as the report reads it, without the tries themselves."""
    kept = Folder(folder)
    manifest = kept.experiment() or {}
    models = results.expected(tuned(), manifest)
    return {line for key, line in manifest["failures"].items() if key in models}


# Cost and time -------------------------------------------------------------------------------------------------------


def test_cost_is_measured_once_and_only_where_there_is_a_language_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurements, "COST_SECONDS", 0.0)
    (tmp_path / "text").mkdir()
    for number in range(12):
        (tmp_path / "text" / f"{number}.txt").write_text(f"line {number} of a text\n" * 200)
    plan = {
        "task": {"name": "language_model", "length": 16, "lengths": (16, 32), "held_out": 8, "targets": 8},
        "training": {"steps": 4, "rows": 4},
    }
    wanted = experiment(tasks=(plan,), encodings=("nope", "rope"), seeds=1)
    given = {"experiment": wanted, "text": tmp_path / "text"}
    updates = list[Update]()
    outcome = made_up_sweep(tmp_path / "out", train=None, progress=updates.append, **given)
    assert (outcome.ran, outcome.failed) == (2, ())
    manifest = Folder(tmp_path / "out").experiment() or {}
    assert manifest["text"]["sha256"] == corpus.read_corpus(tmp_path / "text", 33).sha256
    cost = Folder(tmp_path / "out").cost()
    assert cost is not None
    assert cost["ratios"].keys() == {"nope", "rope"}
    assert cost["ratios"]["rope"]["parameters"] == 0
    assert {"training", "prefill", "decode", "table_bytes_per_token"} <= cost["ratios"]["rope"].keys()
    assert max(n for n, update in enumerate(updates) if update.what == "done") < min(
        n for n, update in enumerate(updates) if update.what == "measuring"
    )
    before = snapshot(tmp_path / "out")
    assert made_up_sweep(tmp_path / "out", **given).reused == 2
    assert snapshot(tmp_path / "out") == before
    (tmp_path / "text" / "12.txt").write_text("more of it\n" * 300)
    assert made_up_sweep(tmp_path / "out", **given).others == 2  # another text, other trials
    made_up_sweep(tmp_path / "without")
    assert (Folder(tmp_path / "without").experiment() or {})["cost"] is None


def test_the_time_left_by_hand() -> None:
    now, trials = [100.0], experiment().trials()
    left = TimeLeft(2, lambda: now[0])
    assert left.left() == 0
    for number, trial in enumerate(trials[:4]):  # copy: nope, alibi, rope; recall: nope
        left.waits(str(number), trial)
    assert left.left() is None
    left.runs("0", 0.0)
    now[0] = 110.0
    left.runs("0", 0.5)
    assert left.left() == pytest.approx((10 + 20 + 20 + 20) / 2)  # the one that runs says what others may take
    left.ends("0")
    left.took(trials[0], 30.0)
    assert left.left() == pytest.approx((30 + 30 + 30) / 2)
    left.took(trials[1], 60.0)  # alibi took 60, copy 45 on average, all 45
    assert left.left() == pytest.approx((60 + 45 + 45) / 2)
    left.runs("1", 0.0)
    now[0] = 115.0
    assert left.left() == pytest.approx((55 + 45 + 45) / 2)
    left.ends("2")
    left.ends("3")
    assert left.left() == pytest.approx(55)  # one cannot be shared


@pytest.mark.acceptance
def test_a_finished_sweep_with_text_is_found_soon(tmp_path: Path) -> None:
    """Of processor time, the whole process: imports, eleven megabytes of text hashed, as many trials as `standard` has."""
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from lab_sweeps import *
plan = {{"task": {{"name": "language_model", "length": 16, "lengths": (16, 32), "targets": 8}}, "training": {{"steps": 4}}}}
wanted = experiment(tasks=(plan, *experiment().model_dump()["tasks"]), encodings=("nope",), seeds=100)
print(made_up_sweep(Path({str(tmp_path)!r}), experiment=wanted)[:2])
"""
    for expected in ("(300, 0)", "(0, 300)"):
        begun = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        assert out == f"{expected}\n"
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime < 8


@pytest.mark.acceptance
def test_a_killed_worker_fails_one_trial(tmp_path: Path) -> None:
    outcome = made_up_sweep(tmp_path, engine=Local(2), train=dies_once, experiment=experiment(seeds=1))
    assert outcome.ran == TRIALS // 2 - 1
    assert [(str(trial), line) for trial, line in outcome.failed] == [
        ("copy alibi seed 0", "its process ended: signal SIGKILL")
    ]
    assert made_up_sweep(tmp_path, experiment=experiment(seeds=1)).ran == 1


def dies_once(trial: Any, *rest: Any) -> Any:
    if (trial.task.name, trial.encoding) == ("copy", "alibi"):
        os.kill(os.getpid(), signal.SIGKILL)
    return made_up(trial, *rest)


# A budget -------------------------------------------------------------------------------------------------------------


def test_what_does_not_end_in_time_is_left_to_a_later_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still but for ten seconds a trial; each is taken to take as long as the one before."""
    now = [0.0]

    def trained(trial: Any, *rest: Any) -> Any:
        now[0] += 10.0
        record = made_up(trial, *rest)
        record.about["seconds"] = {"training": 9.5, "scoring": 0.5}
        return record

    monkeypatch.setattr(sweep_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sweep_module, "with_steps", lambda asked, *_: budget.Plan(asked, 35.0))
    outcome = made_up_sweep(tmp_path, train=trained)
    assert (outcome.ran, len(outcome.late)) == (3, TRIALS - 3)
    assert {problem.line for problem in outcome.late} == {"not trained: the budget was over"}
    assert outcome.failed == outcome.missing == ()
    monkeypatch.setattr(sweep_module, "with_steps", lambda asked, *_: budget.Plan(asked, math.inf))
    outcome = made_up_sweep(tmp_path)
    assert (outcome.ran, outcome.reused, outcome.late) == (TRIALS - 3, 3, ())
