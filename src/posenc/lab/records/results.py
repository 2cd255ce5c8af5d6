"""A folder of results, which sweeps may share. Each trial is one file, named by the hash of everything that decides it.

    DIR/experiment.json                                  the last sweep: its experiment and the keys of its trials
    DIR/trials/TASK-ENCODING-sSEED[-oracle]-KEY16.parquet    one finished trial
    DIR/measurements/NAME-KEY16.json                     one finished measurement
    DIR/weights/KEY16.pt                                 trained weights, if they are kept (kept_weights.py)
    DIR/claims/KEY.lock                                  held by the process that runs that trial

A file is accepted only if the trial, text and version of the numerics in it hash to the requested key, and if its seal is
right. Any other file counts as missing and is reported (`damage`). Only temporary files of killed writers are deleted.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from posenc.lab.experiment.key import NUMERICS_VERSION, key_of
from posenc.lab.records import files
from posenc.lab.records.record import METADATA, SCHEMA, SEAL, UNSEALED, Record, digest, sealed
from posenc.lab.records.written import MEASUREMENTS as VALUES
from posenc.lab.records.written import About, Manifest, expect, read_manifest
from posenc.support import strict_json

if TYPE_CHECKING:
    import duckdb

    from posenc.lab.experiment import Experiment, Trial

MANIFEST, TRIALS, MEASUREMENTS, CLAIMS, WEIGHTS = "experiment.json", "trials", "measurements", "claims", "weights"
FORMAT = 2  # 1 had keys that depended on the code
LOCK = ".lock"
OURS = (TRIALS, MEASUREMENTS, CLAIMS, WEIGHTS)
BESIDE_TRIALS = ("report", "findings.json")
OF_A_TRIAL = re.compile(r".+-([0-9a-f]{16})\.parquet")
DAMAGED = "not a record of posenc lab, or not all of one"

COLUMNS = pa.schema(
    [
        ("key", pa.string()),
        ("path", pa.string()),
        ("task", pa.string()),
        ("encoding", pa.string()),
        ("seed", pa.int64()),
        ("oracle", pa.bool_()),
        ("learning_rate", pa.float64()),
        ("failed", pa.string()),
        ("seconds_training", pa.float64()),
        ("seconds_scoring", pa.float64()),
        ("trained_tokens", pa.int64()),
        ("parameters", pa.int64()),
        ("encoding_parameters", pa.int64()),
        ("fingerprint", pa.string()),
        ("torch", pa.string()),
        ("device", pa.string()),
        ("text", pa.string()),
        ("about", pa.string()),
    ]
)
BESIDE_EACH_ROW = "key, task, encoding, seed, oracle"


class Unwritable(OSError):
    """The disk is full, or the folder cannot be written; all files in it are complete."""


class Reservation:
    """The right to run one trial, until it is released or the process ends."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file

    def release(self) -> None:
        if not self._file.closed:
            self._path.unlink(missing_ok=True)  # while it is held, so no other process can hold a file of that name
            self._file.close()


class Folder:
    """The results under `path`. Raises ValueError for a file, or for a folder that holds anything else.

    argument   what the user gave the path as; it begins the messages
    """

    def __init__(self, path: Path, argument: str = "--out") -> None:
        self.path, self.argument = path, argument
        self.was_empty = False  # whether a run that is about to begin found no experiment here
        if path.exists() and not path.is_dir():
            raise ValueError(f"{argument}: {path} is a file, a folder is expected")
        self._refuse_foreign()

    def prepare(self) -> None:
        """Prepares the folder for a sweep: creates subfolders and deletes temporary files of killed writers."""
        with self._writing(self.path):
            for name in (TRIALS, MEASUREMENTS, CLAIMS):
                (self.path / name).mkdir(parents=True, exist_ok=True)
            for folder in (self.path, self.path / TRIALS, self.path / MEASUREMENTS):
                files.remove_leftovers(folder)
            files.remove_leftovers(self.path / CLAIMS, LOCK)

    # Trials ---------------------------------------------------------------------------------------------------------

    def put(self, key: str, record: Record, text: str, provenance: Mapping[str, str]) -> Path:
        """Keeps a finished trial with the digest of its text and its provenance. Raises Unwritable, and leaves nothing.

        Raises ValueError for a key that is not that of the trial on this text.
        """
        added = {"key": key, "text": text, "numerics": NUMERICS_VERSION, "provenance": dict(provenance)}
        about = {**record.about, **added}
        if _key_of(about) != key:
            raise ValueError(f"key: {key[:16]}… is not that of {_name(about)} on this text")
        path = self.path / TRIALS / f"{_name(about)}-{key[:16]}.parquet"
        self._write(path, Record(about, record.rows).to_parquet())
        return path

    def get(self, key: str) -> Record | None:
        """The trial with that key; None if there is no file, or no valid one."""
        return self.look(key)[0]

    def has(self, key: str) -> bool:
        return self.get(key) is not None

    def look(self, key: str) -> tuple[Record | None, list[str]]:
        """The trial with that key, and a line for each file of that name that is not valid."""
        unusable = list[str]()
        for path in self._files().get(key[:16], ()):
            try:
                return _read(path, key), unusable
            except ValueError as error:
                unusable.append(f"{path.relative_to(self.path)}: {error}")
        return None, unusable

    def damage(self) -> str | None:
        """One line about files of the last sweep that are there and not whole; None if all are. Reads every file."""
        manifest, lines = self.experiment() or {}, list[str]()
        for key in (*manifest.get("tuning", ()), *manifest.get("keys", ())):
            record, unusable = self.look(key)
            lines += unusable if record is None else []
        for name in VALUES:
            path = self._measurement(name, manifest.get(name) or "")
            if manifest.get(name) and path.exists() and self.measurement(name, manifest[name]) is None:
                lines.append(f"{path.relative_to(self.path)}: {DAMAGED}")
        if not lines:
            return None
        count = f"{len(lines)} damaged files, such as " if len(lines) > 1 else ""
        makes = f"makes {'them' if len(lines) > 1 else 'it'} again"
        return f"{count}{self.path / lines[0]}; posenc lab run --resume --out {self.path} {makes}"

    def keys(self) -> list[str]:
        """The `about` of every valid trial, of any sweep."""
        paths = [path for paths in self._files().values() for path in paths]
        return sorted({record.about["key"] for _, record in self._whole(paths)})

    def others(self) -> int:
        """The number of trials that do not belong to the last sweep, with other settings or another text."""
        manifest = self.experiment() or {}
        ours = {key[:16] for key in (*manifest.get("keys", ()), *manifest.get("tuning", ()))}
        return len(self._files().keys() - ours)

    def reserve(self, key: str) -> Reservation | None:
        """None while a living process holds it."""
        path = self.path / CLAIMS / f"{key}{LOCK}"
        with self._writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = files.locked(path)
        return None if file is None else Reservation(path, file)

    def is_reserved(self, key: str) -> bool:
        if not (self.path / CLAIMS / f"{key}{LOCK}").exists():
            return False
        if (got := self.reserve(key)) is not None:
            got.release()
        return got is None

    # The last sweep -------------------------------------------------------------------------------------------------

    def experiment(self) -> dict[str, Any] | None:
        """The manifest of the last sweep."""
        path = self.path / MANIFEST
        if not path.is_file():
            return None
        return read_manifest(path)

    def put_experiment(self, manifest: Mapping[str, Any]) -> None:
        text = json.dumps({"format": FORMAT, **manifest}, indent=1, ensure_ascii=False, allow_nan=False)
        self._write(self.path / MANIFEST, text)

    def measurement(self, name: str, key: str) -> Any:
        """The measurement with that key, or None if there is none, or none as it was written."""
        try:
            kept = strict_json.read(self._measurement(name, key))
            if not isinstance(kept, dict) or kept.get("key") != key:
                return None
            expect(VALUES[name], kept.get("value"))
        except (OSError, ValueError):
            return None
        return kept["value"]

    def put_measurement(self, name: str, key: str, value: Any) -> None:
        self._write(self._measurement(name, key), json.dumps({"key": key, "value": value}, indent=1, allow_nan=False))

    def cost(self) -> dict[str, Any] | None:
        """The cost measured by the last sweep."""
        key = (self.experiment() or {}).get("cost")
        data: dict[str, Any] | None = self.measurement("cost", key) if key else None
        return data

    # All numbers at once --------------------------------------------------------------------------------------------

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A database of the last sweep, in memory: `trials`, one line each, and `rows`, every number beside its trial."""
        import duckdb

        lines, paths = [], []
        there = self._files()
        for key in (self.experiment() or {}).get("keys", ()):
            for path, record in self._whole(there.get(key[:16], ()), key):
                lines.append(_line(path, record.about))
                paths.append(str(path))
                break
        database = duckdb.connect()
        database.execute("SET enable_progress_bar = false")
        database.execute("SET threads = 1")  # sums by several threads differ in the last bits from reading to reading
        database.register("trials_table", pa.Table.from_pylist(lines, COLUMNS))
        database.execute("CREATE TABLE trials AS SELECT * FROM trials_table")
        database.unregister("trials_table")
        if paths:
            database.read_parquet(paths, filename=True).project("* RENAME (filename AS path)").create_view("files")
        else:
            database.register("files", SCHEMA.append(pa.field("path", pa.string())).empty_table())
        columns = ", ".join(SCHEMA.names)
        database.execute(f"CREATE VIEW rows AS SELECT {BESIDE_EACH_ROW}, {columns} FROM files JOIN trials USING (path)")
        return database

    # ----------------------------------------------------------------------------------------------------------------

    def _files(self) -> dict[str, list[Path]]:
        """The files by the first 16 digits of their keys."""
        files: dict[str, list[Path]] = {}
        folder = self.path / TRIALS
        for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
            if (ours := OF_A_TRIAL.fullmatch(name)) and not name.startswith("."):
                files.setdefault(ours[1], []).append(folder / name)
        return files

    def _whole(self, paths: Sequence[Path], key: str | None = None) -> Iterator[tuple[Path, Record]]:
        for path in paths:
            try:
                yield path, _read(path, key)
            except ValueError:
                continue

    def _measurement(self, name: str, key: str) -> Path:
        return self.path / MEASUREMENTS / f"{name}-{key[:16]}.json"

    def _write(self, path: Path, content: str | bytes) -> None:
        with self._writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write(path, content)

    @contextmanager
    def _writing(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise Unwritable(
                f"{self.argument}: cannot write {path}: {reason}. Everything finished is kept; make room or choose another "
                "folder, then run the same command again"
            ) from error

    def _refuse_foreign(self) -> None:
        if not self.path.is_dir():
            return
        marker, has_trials = self.path / MANIFEST, (self.path / TRIALS).is_dir()
        if not marker.is_file():
            ours = (*OURS, *BESIDE_TRIALS * has_trials)
            if any(path.name not in ours and path.suffix != files.TEMPORARY for path in self.path.iterdir()):
                raise ValueError(
                    f"{self.argument}: {self.path} holds files that posenc lab did not write; choose another folder"
                )
            return
        try:
            theirs = strict_json.read(marker)
            written_here, older = isinstance(theirs["keys"], list), theirs["format"] < FORMAT
            written_here &= theirs["format"] <= FORMAT
        except (ValueError, KeyError, TypeError) as error:
            if has_trials and isinstance(error, ValueError):
                raise self._damaged(error) from None
            written_here = older = False
        if written_here and older:
            raise ValueError(
                f"{self.argument}: {self.path} was written by posenc 0.1, whose keys depended on its code; "
                "choose another folder"
            )
        if not written_here:
            raise ValueError(f"{self.argument}: {marker} is not from this posenc lab; choose another folder")
        try:
            expect(Manifest, theirs)
        except ValueError as error:
            raise self._damaged(f"{marker}: {error}") from None

    def _damaged(self, why: object) -> ValueError:
        return ValueError(f"{self.argument}: {why}. It is damaged; delete it. {again(self.path)}")


def again(path: Path) -> str:
    """How a folder gets its experiment.json back."""
    return f"posenc lab run with the same experiment and --out {path} then writes it again and keeps the finished trials"


def expected(experiment: Experiment, manifest: Mapping[str, Any]) -> dict[str, Trial]:
    """The trials of an experiment by key, on the text and at the learning rates of a manifest."""
    from posenc.lab.experiment import Choice

    chosen = {
        (choice["task"], choice["encoding"]): Choice(choice["learning_rate"], tuple(map(tuple, choice.get("options", ()))))
        for choice in manifest["chosen"]
    }
    return {trial.key(text_of(manifest)): trial for trial in experiment.trials(chosen)}


def text_of(manifest: Mapping[str, Any]) -> str:
    """The digest of the text that a sweep read, "" where it read none."""
    digest: str = "" if manifest["text"] is None else manifest["text"]["sha256"]
    return digest


def unpacked(content: bytes) -> Record:
    """The record, read in this thread alone, unlike `Record.from_parquet`. Raises ValueError if it is not a record.

    pq.read_table frees the bytes in a thread of Arrow. If that happens while Python exits, the thread is ended in a
    destructor, and std::terminate aborts the process (apache/arrow#34314).
    """
    if SEAL not in content or content != sealed(content, digest(sealed(content, UNSEALED))):
        raise ValueError(DAMAGED)
    table = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False).read(use_threads=False)
    about = strict_json.loads((table.schema.metadata or {}).get(METADATA, b""))
    return Record(about, table.cast(SCHEMA).replace_schema_metadata(None))


def described(record: Record) -> Record:
    """The record, if it says what `put` has written. Raises ValueError otherwise."""
    try:
        expect(About, record.about)
    except ValueError as error:
        raise ValueError(f"not a trial that posenc lab kept: {error}") from None
    return record


def _read(path: Path, key: str | None) -> Record:
    """Raises ValueError for what is no whole record of that key, or of the key it names itself where none is given."""
    try:
        record = described(unpacked(path.read_bytes()))
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror or error}") from None
    computed = _key_of(record.about)
    if computed != (key or record.about.get("key")):
        raise ValueError("the trial that it names is another one")
    return record


def _key_of(about: Mapping[str, Any]) -> str:
    return key_of(about["trial"], about["text"], about["numerics"])


def _name(about: Mapping[str, Any]) -> str:
    trial = about["trial"]
    task, encoding = (files.named(word) for word in (trial["task"]["name"], trial["encoding"]))
    name: str = f"{task}-{encoding}-s{trial['seed']}" + "-oracle" * trial["oracle"]
    return name


def _line(path: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    trial, seconds = about["trial"], about["seconds"]
    return {
        **{
            name: about.get(name)
            for name in ("key", "text", "failed", "trained_tokens", "parameters", "encoding_parameters")
        },
        **{name: about["provenance"].get(name) for name in ("fingerprint", "torch", "device")},
        **{name: trial[name] for name in ("encoding", "seed", "oracle")},
        "path": str(path),
        "task": trial["task"]["name"],
        "learning_rate": trial["training"]["learning_rate"],
        "seconds_training": seconds.get("training"),
        "seconds_scoring": seconds.get("scoring"),
        "about": json.dumps(about),
    }
