"""Carries a folder of results of posenc 0.1 over to keys that do not depend on the code.

    python results/standard/rekey.py FOLDER        writes FOLDER/rekeyed.csv: old key, new key, trial

Nothing is computed. Every number stays as it is; what changes in a record is its description:

    posenc 0.1   key = SHA-256 of {trial, code, torch, device, precision, text}
    now          key = SHA-256 of {trial with its precision, text, version of the numerics}
                 provenance = {code, torch, device, fingerprint: the first 16 digits of the code's digest}

Every old key is computed again and must be right, and every old seal as well. README.md beside this file says more.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from posenc.lab.experiment import Experiment, Trial, corpus
from posenc.lab.experiment.key import NUMERICS_VERSION, canonical, key_of
from posenc.lab.records import files
from posenc.lab.records.record import Record
from posenc.lab.records.results import MANIFEST, MEASUREMENTS, TRIALS, Folder, expected, text_of, unpacked
from posenc.lab.trial import relative_cost
from posenc.lab.trial.training import Hardware

TABLE = "rekeyed.csv"


def rekeyed(record: Record) -> tuple[str, str, Record]:
    """The old key, the new one, and the record with the new description. Raises ValueError for a key that is not right."""
    about, around = dict(record.about), record.about["surroundings"]
    old = hashlib.sha256(canonical({"trial": about["trial"], **around}).encode()).hexdigest()
    if old != about["key"]:
        raise ValueError(f"{about['key']}: the record says another trial or other code than its key")
    trial = Trial.model_validate({**about["trial"], "precision": around["precision"]}).model_dump(mode="json")
    new = key_of(trial, around["text"], NUMERICS_VERSION)
    del about["surroundings"]
    provenance = {name: around[name] for name in ("code", "torch", "device")} | {"fingerprint": around["code"][:16]}
    return (
        old,
        new,
        Record(about | {"trial": trial, "key": new, "text": around["text"], "provenance": provenance}, record.rows),
    )


def main(path: Path) -> None:
    manifest: dict[str, Any] = json.loads((path / MANIFEST).read_text("utf-8"))
    if manifest["format"] != 1:
        sys.exit(f"{path} has format {manifest['format']}, expected 1: it was carried over before")
    old_files = sorted((path / TRIALS).glob("*.parquet"))
    records = [rekeyed(unpacked(file.read_bytes())) for file in old_files]
    experiment = Experiment.model_validate(manifest["experiment"])
    tuning = [trial.key(text_of(manifest)) for trial in experiment.tuning()]
    manifest |= {"format": 2, "keys": list(expected(experiment, manifest)), "tuning": tuning, "failures": {}}
    manifest |= {"cost": rekeyed_cost(path, manifest["cost"], experiment)}
    del manifest["surroundings"]
    files.write(path / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False))
    folder, table = Folder(path), list[tuple[Any, ...]]()
    for old, new, record in records:
        trial = record.about["trial"]
        folder.put(new, record, record.about["text"], record.about["provenance"])
        table.append((old, new, trial["task"]["name"], trial["encoding"], trial["seed"], trial["oracle"]))
    for file in old_files:
        file.unlink()
    with (path / TABLE).open("w", encoding="utf-8", newline="") as written:
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(("old_key", "new_key", "task", "encoding", "seed", "oracle"))
        writer.writerows(sorted(table, key=lambda row: row[2:]))
    print(f"{len(records)} trials carried over; the keys are in {path / TABLE}")


def rekeyed_cost(path: Path, old: str | None, experiment: Experiment) -> str | None:
    """Renames the measurement of the cost, whose key is now that of what is measured. Returns the new key."""
    if old is None:
        return None
    wanted = relative_cost.wanted(experiment, corpus.read(None, 1), Hardware())
    assert wanted is not None
    new = hashlib.sha256(canonical({"cost": wanted.inputs()}).encode()).hexdigest()
    old_file = path / MEASUREMENTS / f"cost-{old[:16]}.json"
    value = json.loads(old_file.read_text("utf-8"))["value"]
    files.write(path / MEASUREMENTS / f"cost-{new[:16]}.json", json.dumps({"key": new, "value": value}, indent=1))
    old_file.unlink()
    return new


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
