"""A folder of trials: each whole or absent, found under what decides it alone, shared by processes, never another's."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lab_results
import lab_sweeps
from posenc.lab.experiment import Trial, read_experiment
from posenc.lab.experiment.key import NUMERICS_VERSION, key_of
from posenc.lab.findings import findings_cache
from posenc.lab.records import files, provenance
from posenc.lab.records.record import Record
from posenc.lab.records.results import Folder, Unwritable
from posenc.lab.trial.training import Hardware

ORIGIN = {"fingerprint": "f1f1", "revision": "c0de", "torch": "2", "device": "none"}
TEXT = "7e47" * 16
WHO = ("language_model", "rope", 0)
TRIALS = lab_sweeps.experiment().trials()


def manifest(**changes: Any) -> dict[str, Any]:
    """An experiment.json without its format, which `put_experiment` adds."""
    experiment = lab_sweeps.experiment().model_dump(mode="json")
    whole = {"experiment": experiment, "keys": [], "tuning": [], "chosen": [], "failures": {}, "text": None}
    return {**whole, "command": "posenc lab run tiny.yaml", "cost": None, **changes}


def record(trial: Trial) -> Record:
    return lab_sweeps.made_up(trial, None, Hardware(), lambda share: None)


def put(folder: Folder, trial: Trial) -> str:
    folder.put(key := trial.key(TEXT), record(trial), trial.text(TEXT), ORIGIN)
    return key


def listing(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_trial_is_found_under_everything_that_decides_it(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "new")
    assert not folder.has(TRIALS[0].key(TEXT))
    assert not (tmp_path / "new").exists()  # nobody has written yet
    key = put(folder, TRIALS[0])
    found = folder.get(key)
    assert found is not None
    assert found.rows.equals(record(TRIALS[0]).rows)
    assert found.about["key"] == key
    assert folder.keys() == [key]
    others = [trial.key(TEXT) for trial in TRIALS[1:]]
    changes: list[dict[str, Any]] = [{"oracle": True}, {"seed": 9}, {"precision": "bf16-mixed"}, {"source": "text"}]
    others += [TRIALS[0].model_copy(update=change).key(TEXT) for change in changes]
    others += [key_of(TRIALS[0].model_dump(mode="json"), "", NUMERICS_VERSION + 1)]
    assert len({key, *others}) == len(others) + 1
    assert not any(folder.has(other) for other in others)


def test_only_a_task_that_reads_the_text_depends_on_it() -> None:
    (reads,) = (
        trial for trial in read_experiment("quick").trials() if (trial.task.name, trial.encoding, trial.seed) == WHO
    )
    assert reads.task.reads_text
    assert reads.key(TEXT) != reads.key("other")
    assert TRIALS[0].key(TEXT) == TRIALS[0].key("other") == TRIALS[0].key("")


def test_where_a_result_comes_from_is_kept_and_not_part_of_its_key(tmp_path: Path) -> None:
    folder, trial = Folder(tmp_path), TRIALS[0]
    origins = [ORIGIN, dict.fromkeys(ORIGIN, "other")]
    for origin in origins:
        folder.put(trial.key(TEXT), record(trial), trial.text(TEXT), origin)
        found = folder.get(trial.key(TEXT))
        assert found is not None
        assert found.about["provenance"] == origin
    assert len(folder.keys()) == 1


def test_a_folder_of_the_first_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text('{"format": 1, "keys": []}')
    with pytest.raises(ValueError, match=r"was written by posenc 0.1.*choose another folder"):
        Folder(tmp_path)


def test_a_record_under_anothers_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not that of copy-nope-s0 on this text"):
        Folder(tmp_path).put(TRIALS[1].key(TEXT), record(TRIALS[0]), "", ORIGIN)


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def foreign(_: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"value": [1.0]}), sink)
    return bytes(sink.getvalue())


DAMAGE = {
    "a flipped bit": flipped,
    "cut short": lambda content: content[:-100],
    "empty": lambda _: b"",
    "foreign": foreign,
    "text": lambda _: b"results",
    "another trial": lambda _: record(TRIALS[1]).to_parquet(),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_is_not_whole_is_named_kept_and_not_taken(tmp_path: Path, damage: Any) -> None:
    folder = Folder(tmp_path)
    folder.prepare()
    keys = [put(folder, trial) for trial in TRIALS[:2]]
    folder.put_experiment(manifest(keys=keys))
    path = next((tmp_path / "trials").glob(f"*{keys[0][:16]}*"))
    path.write_bytes(damaged := damage(path.read_bytes()))
    found, lines = folder.look(keys[0])
    assert found is None
    assert len(lines) == 1
    assert lines[0].startswith(f"trials/copy-nope-s0-{keys[0][:16]}.parquet: ")
    assert folder.keys() == [keys[1]]
    with folder.connect() as database:
        assert database.execute("SELECT key FROM trials").fetchall() == [(keys[1],)]
        assert database.execute("SELECT DISTINCT key FROM rows").fetchall() == [(keys[1],)]
    assert path.read_bytes() == damaged
    assert folder.damage() == f"{tmp_path / lines[0]}; posenc lab run --resume --out {tmp_path} makes it again"
    put(folder, TRIALS[0])
    assert folder.has(keys[0])
    assert folder.damage() is None


def test_every_changed_bit_is_seen() -> None:
    content = record(TRIALS[0]).to_parquet()
    for place in range(len(content)):
        with pytest.raises(ValueError, match="not a record"):
            Record.from_parquet(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])


def test_a_trial_under_anothers_name_is_not_taken(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    keys = [put(folder, trial) for trial in TRIALS[:2]]
    first, second = (next((tmp_path / "trials").glob(f"*{key[:16]}*")) for key in keys)
    first.replace(second)
    assert folder.look(keys[1]) == (None, [f"trials/{second.name}: the trial that it names is another one"])


# Writing -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_leaves_the_folder_whole_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    folder = Folder(tmp_path)
    put(folder, TRIALS[0])
    before = listing(tmp_path)

    def full(_: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(Unwritable) as caught:
            put(folder, TRIALS[1])
    assert str(caught.value).startswith(f"--out: cannot write {tmp_path}/trials/copy-alibi-s0-")
    assert f": {os.strerror(number)}. Everything finished is kept" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert listing(tmp_path) == before


@pytest.mark.acceptance
def test_a_limit_of_the_system_is_met_like_a_full_disk(tmp_path: Path) -> None:
    """Really, not by a stand-in: a process that may not write as many bytes as a record has."""
    script = f"""
import resource, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_lab_results import *
folder = Folder(Path({str(tmp_path)!r}))
put(folder, TRIALS[0])
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    put(folder, TRIALS[1])
except Unwritable as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "File too large. Everything finished is kept" in done.stdout, done.stderr
    assert Folder(tmp_path).keys() == [TRIALS[0].key(TEXT)]
    assert len(listing(tmp_path)) == 1
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_what_a_killed_writer_left_goes_and_what_a_living_one_writes_stays(tmp_path: Path) -> None:
    script = f"""
import os, sys
from pathlib import Path
from posenc.lab.records import files, provenance
files.os.replace = lambda *names: (print("writing", flush=True), sys.stdin.read())
files.write(Path({str(tmp_path / "trials" / "x.parquet")!r}), "half")
"""
    folder = Folder(tmp_path)
    folder.prepare()
    writer = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.readline()
    (tmp_path / "trials" / ".copy-rope-s0.parquet.1234.tmp").write_text("of one that is gone")
    folder.prepare()
    left = [path for path in listing(tmp_path) if path.endswith(".tmp")]
    assert len(left) == 1
    assert left[0].startswith("trials/.x.parquet.")
    writer.kill()
    writer.wait()
    folder.prepare()
    assert listing(tmp_path) == {}


# Claims --------------------------------------------------------------------------------------------------------------

HOLDS = """
import sys
from pathlib import Path
from posenc.lab.records.results import Folder
claim = Folder(Path(sys.argv[1])).reserve(sys.argv[2])
print("held" if claim else "taken", flush=True)
sys.stdin.read()
"""


@pytest.mark.acceptance
def test_a_claim_ends_with_its_process(tmp_path: Path) -> None:
    folder, key = Folder(tmp_path), TRIALS[0].key(TEXT)
    claim = folder.reserve(key)
    assert claim is not None
    assert folder.reserve(key) is None
    assert folder.is_reserved(key)
    assert folder.reserve(TRIALS[1].key(TEXT)) is not None
    other = subprocess.run([sys.executable, "-c", HOLDS, tmp_path, key], input="", capture_output=True, text=True)
    assert other.stdout == "taken\n"
    claim.release()
    claim.release()
    assert not folder.is_reserved(key)
    assert not (tmp_path / "claims" / f"{key}.lock").exists()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, tmp_path, key], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    folder.prepare()  # a second sweep begins: what is claimed stays claimed
    assert folder.is_reserved(key)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert not folder.is_reserved(key)
    last = folder.reserve(key)
    assert last is not None
    last.release()
    assert listing(tmp_path) == {}


def test_a_lock_on_a_deleted_file_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waited at the old file while its holder deleted it must not run beside who made the new one."""
    path, lock, calls = tmp_path / "key.lock", files._lock, []

    def deleted_meanwhile(file: Any) -> bool | None:
        if not calls:
            path.unlink()
        calls.append(file)
        return lock(file)

    monkeypatch.setattr(files, "_lock", deleted_meanwhile)
    held = files.locked(path)
    assert held is not None
    assert len(calls) == 2
    assert path.exists()
    assert files.locked(path) is None


def test_without_locks_of_the_system_work_goes_on_and_nothing_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    folder = Folder(tmp_path)
    assert folder.has(put(folder, TRIALS[0]))
    assert folder.reserve("a" * 64) is not None
    (tmp_path / "trials" / ".x.tmp").write_text("perhaps somebody is writing it")
    folder.prepare()
    assert (tmp_path / "trials" / ".x.tmp").exists()


# Whose folder --------------------------------------------------------------------------------------------------------


def test_other_peoples_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="is a file, a folder is expected"):
        Folder(tmp_path / "file")
    with pytest.raises(ValueError, match="holds files that posenc lab did not write"):
        Folder(tmp_path)
    for text in ('{"somebody": "else"}', "no JSON", "[]", '{"format": 3, "keys": []}'):
        (tmp_path / "experiment.json").write_text(text)
        with pytest.raises(ValueError, match=r"experiment\.json is not from this posenc lab"):
            Folder(tmp_path)
    assert listing(tmp_path).keys() == {"file", "experiment.json"}
    (tmp_path / "file").unlink()
    (tmp_path / "trials").mkdir()
    (tmp_path / "experiment.json").write_text("no JSON")
    with pytest.raises(
        ValueError, match=r"^DIR: .*experiment\.json: not JSON: .* damaged; delete it\. posenc lab run with the same"
    ):
        Folder(tmp_path, "DIR")
    (tmp_path / "experiment.json").unlink()
    (tmp_path / "report").mkdir()
    Folder(tmp_path)  # its experiment.json is lost


def test_a_folder_that_was_only_begun_is_ours(tmp_path: Path) -> None:
    Folder(tmp_path).prepare()
    (tmp_path / ".experiment.json.12.tmp").write_text("{")
    Folder(tmp_path).prepare()
    assert not (tmp_path / ".experiment.json.12.tmp").exists()


def test_the_database_has_the_last_sweep_and_nothing_else(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with folder.connect() as database:
        assert database.execute("SELECT count(*) FROM rows").fetchall() == [(0,)]
    old = [put(folder, trial.model_copy(update={"oracle": True})) for trial in TRIALS[:3]]
    new = [put(folder, trial) for trial in TRIALS[:2]]
    folder.put_experiment(manifest(keys=new))
    (tmp_path / "trials" / "junk.parquet").write_bytes(foreign(b""))
    assert folder.others() == 3  # what is no trial does not count
    with folder.connect() as database:
        found = database.execute(
            "SELECT key, task, encoding, seed, fingerprint, learning_rate FROM trials ORDER BY encoding"
        )
        assert found.fetchall() == [(new[1], "copy", "alibi", 0, "f1f1", 4e-3), (new[0], "copy", "nope", 0, "f1f1", 4e-3)]
        rows = database.execute("SELECT encoding, kind, length, value, weight FROM rows ORDER BY ALL").fetchall()
        assert rows == [
            (word, kind, 4, value, 4.0) for word in ("alibi", "nope") for kind, value in (("bits", 2.0), ("exact", 0.5))
        ]
    assert sorted(folder.keys()) == sorted(old + new)


def test_measurements_are_kept_under_their_keys(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.cost() is None
    folder.put_measurement("cost", "a" * 64, lab_results.cost_of(["rope"]))
    assert folder.measurement("cost", "a" * 64) == lab_results.cost_of(["rope"])
    assert folder.measurement("cost", "a" * 63 + "b") is None
    folder.put_experiment(manifest(cost="a" * 64))
    assert folder.cost() == lab_results.cost_of(["rope"])
    assert folder.damage() is None
    next((tmp_path / "measurements").iterdir()).write_text("half")
    assert folder.cost() is None
    assert (folder.damage() or "").startswith(f"{tmp_path}/measurements/cost-aaaaaaaaaaaaaaaa.json: not a record")


def test_findings_are_remembered_until_anything_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trials").mkdir()
    (tmp_path / "experiment.json").write_text("{}")
    assert findings_cache.recall(tmp_path) is None
    findings_cache.remember(tmp_path, {"name": "first"})
    assert findings_cache.recall(tmp_path) == {"name": "first"}
    (tmp_path / "trials" / "one.parquet").write_bytes(b"1")
    assert findings_cache.recall(tmp_path) is None
    findings_cache.remember(tmp_path, {"name": "second"})
    (tmp_path / "experiment.json").write_text("{} ")
    assert findings_cache.recall(tmp_path) is None
    findings_cache.remember(tmp_path, {"name": "third"})
    assert findings_cache.recall(tmp_path) == {"name": "third"}
    (tmp_path / findings_cache.NAME).write_text("{")
    assert findings_cache.recall(tmp_path) is None
    findings_cache.remember(tmp_path, {"name": "fourth"})
    made = tmp_path / "sentences.py"
    made.write_text("# one")
    monkeypatch.setattr(findings_cache, "made_with", lambda: [made])
    assert findings_cache.recall(tmp_path) is None
    findings_cache.remember(tmp_path, {"name": "fifth"})
    made.write_text("# two")
    assert findings_cache.recall(tmp_path) is None


def test_findings_are_made_with_every_source_that_says_something() -> None:
    made = {path.relative_to(findings_cache.SOURCES).as_posix() for path in findings_cache.made_with()}
    assert made >= {"lab/findings/assemble.py", "lab/report/sections.py", "lab/report/words.py", "lab/tasks/copy.py"}
    assert made >= {"support/languages.py", "catalogue/lookup.py", "encodings/rope.py"}
    assert made >= {"lab/zh.po", "lab/report/words.toml", "lab/report/publication.en.md"}


# The commit ------------------------------------------------------------------------------------------------------------


def test_results_in_the_repository_do_not_make_its_commit_dirty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    code, result = tmp_path / "src" / "__init__.py", tmp_path / "results" / "report.md"
    for path in (code, result):
        path.parent.mkdir()
        path.write_text("1")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "1")
    commit = git("rev-parse", "HEAD")
    monkeypatch.setattr(provenance, "SOURCES", code.parent)
    result.write_text("2")
    assert provenance.revision.__wrapped__() == commit
    code.write_text("2")
    assert provenance.revision.__wrapped__() == f"{commit}-dirty"
    monkeypatch.setattr(provenance, "SOURCES", Path(os.devnull).parent)
    assert provenance.revision.__wrapped__() == ""
