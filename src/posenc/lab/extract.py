"""The extract of results that the package ships: `catalogue/measured.json`, read by `posenc.catalogue.measured`.

python -m posenc.lab.extract results/study results/study-tasks results/chains
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posenc.catalogue.measured import FILE, Json
from posenc.lab.tasks.task import OPTIMUM

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DIGITS = 5


def make_digest(*folders: Path) -> Json:
    """The digest of these results folders. Raises ValueError if one holds no results, or a task of another one."""
    digest: Json = {"experiments": [], "tasks": []}
    for folder in folders:
        about, tasks = _experiment(folder)
        if twice := {task["name"] for task in tasks} & {task["name"] for task in digest["tasks"]}:
            raise ValueError(
                f"{folder}: holds {', '.join(sorted(twice))}, as a folder before it does; expected each task once"
            )
        digest["experiments"].append(about)
        digest["tasks"] += tasks
    return digest


def _experiment(folder: Path) -> tuple[Json, list[Json]]:
    """What was run, and its tasks."""
    from posenc.lab.findings.assemble import findings
    from posenc.lab.records.results import Folder

    data = findings(folder)
    with Folder(folder).connect() as database:
        (date,) = database.execute("SELECT max(json_extract_string(about, '$.finished')) FROM trials").fetchall()[0]
        counted = database.execute("SELECT encoding, max(encoding_parameters) FROM trials GROUP BY encoding").fetchall()
    code = data["provenance"].get("code", data["provenance"].get("revision", ""))
    about = {
        "name": data["name"],
        "date": date[:10],
        "command": data["command"],
        "posenc": data["posenc"],
        "code": re.sub(r"(?<=[0-9a-f]{12})[0-9a-f]{28}", "", code),
        "torch": data["provenance"]["torch"],
        "text": data["text"] and {name: data["text"][name] for name in ("source", "sha256")},
        "trials": data["trials"]["found"],
        "size": data["size"],
        "parameters": dict(sorted(counted)),
    }
    return about, [_task(task) | {"experiment": data["name"]} for task in data["tasks"]]


def _task(task: Mapping[str, Any]) -> Json:
    from posenc.lab.findings.titles import title

    lengths = [str(length) for length in task["lengths"]]
    optimum: Json = (
        {} if task["floor"] is None else {"optimum": [_round(task["floor"]["lengths"][length]) for length in lengths]}
    )
    if (controls := task["controls"]) is not None:
        best = controls["optimum"]
        gained = {"mean": _round(best["mean"]), "interval": [_round(end) for end in best["interval"]]}
        optimum |= {"optimum_last_window": _round(controls["predictors"][OPTIMUM]["last_window"]), "optimum_gained": gained}
    return {
        **{name: task[name] for name in ("name", "title", "unit", "measure", "causal", "length", "lengths")},
        **optimum,
        "steps": task["training"]["steps"],
        "rule": task["gate"]["rule"],
        "limit": _round(task["gate"]["limit"]),
        "arms": [
            {
                "name": arm["name"],
                "title": title(arm["name"]).as_dict(),
                "learnt": arm["learnt"],
                "converged": arm["converged"],
                "why": _reason(arm["state"]),
                "factor": arm["factor"],
                **_gained(arm, lengths[-1]),
                "cells": [_of_arm(arm, length, task["length"]) for length in lengths],
            }
            for arm in task["arms"]
        ],
        "after": [
            {
                "name": changed["change"] or "none",
                "title": _change(changed["change"]),
                **(_gained(changed, lengths[-1]) if changed["change"] else {}),
                "cells": [_cell(changed["cells"][length]) for length in lengths],
            }
            for changed in task["after"]
        ],
    }


def _gained(scored: Mapping[str, Any], longest: str) -> Json:
    """The last window, and what is gained over it at the longest length; empty where it was not scored."""
    if longest not in scored["gained"]:
        return {}
    found, seeds = scored["gained"][longest], scored["last_window"]["seeds"]
    gained = {"mean": _round(found["mean"]), "interval": [_round(end) for end in found["interval"]]}
    if found["share"] is not None:
        gained |= {"share": _round(found["share"]), "share_interval": [_round(end) for end in found["share_interval"]]}
    window = {
        "mean": _round(scored["last_window"]["mean"]),
        "seeds": [_round(seeds[seed]) for seed in sorted(seeds, key=int)],
    }
    return {"last_window": window, "gained": gained}


def _of_arm(arm: Mapping[str, Any], length: str, trained: int) -> Json:
    """The cell; beyond the trained length only if that was learnt, because curves are drawn to be compared."""
    if not arm["learnt"] and arm["state"] is not None and int(length) > trained and arm["cells"][length]["state"] is None:
        return {"why": _reason(arm["state"])}
    return _cell(arm["cells"][length])


def _cell(cell: Mapping[str, Any]) -> Json:
    """A mean with its seeds, or the reason why there is none."""
    if cell["mean"] is None:
        return {"why": _reason(cell["state"])}
    seeds = [cell["seeds"][seed] for seed in sorted(cell["seeds"], key=int)]
    interval = {} if cell["interval"] is None else {"interval": [_round(end) for end in cell["interval"]]}
    return {"mean": _round(cell["mean"]), "seeds": [_round(seed) for seed in seeds], **interval}


def _reason(state: str | None) -> Json | None:
    from posenc.lab.report.cells import reason

    return None if state is None else reason(state).as_dict()


def _change(change: str) -> Json:
    from posenc.lab.report.words import phrase

    return phrase(f"change {change}").as_dict()


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def main(arguments: Sequence[str]) -> None:
    if not arguments:
        sys.exit("usage: python -m posenc.lab.extract FOLDER ...")
    try:
        digest = make_digest(*map(Path, arguments))
    except ValueError as error:
        sys.exit(str(error))
    FILE.write_text(json.dumps(digest, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
