"""All findings of a folder of results, as plain JSON. Every table, chart and sentence is made from them.

A missing score has a reason: the encoding cannot do it, it failed, the task was not learnt, or it was not run. It is
never 0 or NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import posenc
from posenc.lab.engines import LATE, NOT_INSTALLED
from posenc.lab.experiment import Experiment
from posenc.lab.findings import answer, criteria, needs, sentences
from posenc.lab.findings.arm_cells import TaskResults
from posenc.lab.findings.queries import Json, Results
from posenc.lab.findings.task_findings import task_findings
from posenc.lab.findings.tuning import tuning
from posenc.lab.records.provenance import summary
from posenc.lab.records.results import Folder, expected, text_of

FORMAT = 5


def findings(folder: Path) -> Json:
    """Raises ValueError for a folder without a sweep."""
    kept = Folder(folder)
    manifest = kept.experiment()
    if manifest is None:
        raise ValueError(f"{folder}: no results of posenc lab; `posenc lab run PRESET --out {folder}` makes some")
    experiment = manifest["experiment"]
    with kept.connect() as database:
        results = Results(database)
        crashed, wanted = _crashed(manifest), _wanted(experiment)
        reports = [
            task_findings(TaskResults(plan, _words(plan, experiment), results, crashed)) for plan in experiment["tasks"]
        ]
    origin = summary(results.about.values())
    there = results.about.keys() & set(wanted)
    result = {
        "format": FORMAT,
        "name": experiment["name"],
        "about": experiment["about"],
        "seeds": _seeds(experiment),
        "fewest_seeds": min([experiment["seeds"], *experiment.get("fewer_seeds", {}).values()]),
        "exploratory": experiment["seeds"] < criteria.ENOUGH,
        "posenc": origin.pop("posenc", posenc.__version__),
        "provenance": {**origin, "precision": experiment["precision"], "text": text_of(manifest)},
        "machine": next((about["machine"] for about in results.about.values() if about.get("machine")), {}),
        "text": manifest["text"],
        "command": manifest["command"],
        "trials": {
            "expected": len(wanted),
            "found": len(there),
            "failed": sum(results.about[trial]["failed"] is not None for trial in there),
        },
        "size": experiment["size"],
        "tasks": reports,
        "properties": _measured(kept, manifest, "properties"),
        "context": (_measured(kept, manifest, "context") or {}).get("bits"),
        "cost": _cost(_measured(kept, manifest, "cost"), results, origin),
        "missing": _missing(wanted, results, crashed),
    }
    if manifest["tuning"]:
        result["tuning"] = tuning(kept, manifest)
    result["answer"] = answer.answer(result)
    result["needs"] = needs.as_data(result)
    result["summary"] = [words.as_dict() for words in sentences.sentences(result)]
    return result


def _words(plan: Json, experiment: Json) -> list[str]:
    """The encodings of a task: those of its plan, otherwise those of the experiment."""
    words: list[str] = experiment["encodings"] if plan["encodings"] is None else plan["encodings"]
    return words


def _seeds(experiment: Json) -> list[int]:
    first = experiment.get("first_seed", 0)
    return list(range(first, first + experiment["seeds"]))


def _wanted(experiment: Json) -> list[tuple[str, str, int, bool]]:
    """Task, encoding, seed and whether it is an oracle, of every trial of the experiment."""
    return [
        (plan["task"]["name"], word, seed, oracle)
        for plan in experiment["tasks"]
        for word in _words(plan, experiment)
        for seed in _seeds(experiment)[: experiment.get("fewer_seeds", {}).get(word)]
        for oracle in (False, True)[: 1 + plan["oracle"]]
    ]


def _crashed(manifest: Json) -> dict[tuple[str, str, int, bool], str]:
    """Trials that failed, and the line that says why. What was left out when a budget was over did not run."""
    if not manifest["failures"]:
        return {}
    trials = expected(Experiment.model_validate(manifest["experiment"]), manifest)
    return {
        (trial.task.name, trial.encoding, trial.seed, trial.oracle): _reason(why)
        for key, trial in trials.items()
        if (why := manifest["failures"].get(key, LATE)) != LATE
    }


def _reason(line: str) -> str:
    """The reason; a missing package does not count as a failure of the encoding."""
    if line.startswith(NOT_INSTALLED):
        return f"cannot: {line.removeprefix(NOT_INSTALLED)}"
    return f"failed: {line}"


def _missing(
    wanted: list[tuple[str, str, int, bool]], results: Results, crashed: dict[tuple[str, str, int, bool], str]
) -> list[Json]:
    """Every trial without a result, and why."""
    missing = []
    for trial in wanted:
        task, arm, seed, oracle = trial
        about = results.about.get(trial)
        if about is None:
            why = crashed.get(trial, "not run")
        elif about["failed"] is not None:
            why = f"failed: {about['failed']}"
        else:
            continue
        missing.append({"task": task, "arm": arm, "seed": seed, "why": why + " (trained at the longest length)" * oracle})
    return missing


def _measured(kept: Folder, manifest: Json, name: str) -> Json | None:
    """A measurement of the last sweep."""
    key = manifest.get(name)
    data: Json | None = kept.measurement(name, key) if key else None
    return data


def _cost(measured: Json | None, results: Results, origin: Mapping[str, str]) -> Json | None:
    if measured is None:
        return None
    size = {about["trial"]["encoding"]: about["encoding_parameters"] for about in results.about.values()}
    rows = {
        arm: {
            **times,
            "parameters": times.get("parameters", size.get(arm)),
            "table_bytes_per_token": times.get("table_bytes_per_token"),
        }
        for arm, times in measured["ratios"].items()
    }
    device = measured.get("device", origin.get("device", "cpu"))
    return {"rounds": measured["rounds"], "sizes": measured["sizes"], "rows": rows, "device": device}
