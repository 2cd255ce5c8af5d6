"""`posenc lab run --dry-run`: what an experiment has still to train, and how long that takes here. It writes nothing.

folder ─► which trials are kept ─► a few steps of each kind of trial ─► hours of each encoding, and of all
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from posenc.terminal.output import echo, echo_json

if TYPE_CHECKING:
    from pathlib import Path

    from posenc.lab.engines import Engine
    from posenc.lab.experiment import Experiment
    from posenc.lab.records.results import Folder
    from posenc.lab.trial.training import Hardware


def say_what_would_run(
    experiment: Experiment, folder: Folder, text_path: Path | None, engine: Engine, hardware: Hardware, as_json: bool
) -> None:
    """Prints how many trials are kept and how many are not, with an estimate of their time.

    Raises ValueError for a budget, which says its own time, and for an engine whose trials run elsewhere.
    """
    from rich.console import Console

    from posenc.lab.engines.local import Local
    from posenc.lab.records.results import expected
    from posenc.lab.run import budget
    from posenc.lab.run.sweep import read_text

    if experiment.budget is not None:
        raise ValueError(f"--dry-run: the experiment has a budget, and takes {experiment.budget:g} s")
    if not isinstance(engine, Local):
        raise ValueError("--dry-run: measures this machine; leave --engine out")
    console = Console(stderr=True, highlight=False, emoji=False)
    text, manifest = read_text(experiment, text_path), folder.experiment()
    digest = "" if text is None else text.sha256
    tuning = {trial.key(digest): trial for trial in experiment.tuning()}
    if manifest is None:
        trials = {trial.key(digest): trial for trial in experiment.trials()}
    else:
        trials = expected(experiment, manifest)  # with the learning rates that were chosen
    asked = tuning | trials
    missing = [key for key in asked if not folder.path.is_dir() or folder.get(key) is None]
    left = [asked[key] for key in missing]
    workers = min(engine.workers, max(len(left), 1))
    with console.status("a few steps of each encoding"):
        known = budget.speeds(left, workers, text, hardware, float("inf"))[0] if left else {}
    kinds = {trial.encoding: [one for one in left if one.encoding == trial.encoding] for trial in left}
    told = {
        "trials": len(asked),
        "kept": len(asked) - len(left),
        "tuning": sum(key in tuning for key in missing),
        "processor_hours": budget.time_of(left, known, 1) / 3600,
        "hours": budget.time_of(left, known, workers) / 3600,
        "workers": workers,
        "encodings": {word: budget.time_of(of, known, 1) / 3600 for word, of in kinds.items()},
        "not_timed": sorted({trial.encoding for trial in left if budget.kind_of(trial) not in known}),
    }
    if as_json:
        echo_json(told)
    else:
        echo("\n".join(lines(told)))


def lines(told: Mapping[str, Any]) -> list[str]:
    """The estimate in words: the whole, then each encoding, the longest first."""
    left = told["trials"] - told["kept"]
    of_tuning = f" ({told['tuning']} to tune)" if told["tuning"] else ""
    whole = f"{told['trials']} trials: {told['kept']} kept, {left} to run{of_tuning}"
    if left:
        whole += (
            f"; about {hours(told['processor_hours'])} of one core, {hours(told['hours'])} with --workers {told['workers']}"
        )
    rows = [f"  {word}: {hours(of)}" for word, of in sorted(told["encodings"].items(), key=lambda row: -row[1])]
    failed = [f"  no time is known of {', '.join(told['not_timed'])}: their steps fail here"] if told["not_timed"] else []
    return [whole, *rows, *failed, "Nothing was trained or written."]


def hours(number: float) -> str:
    """0.4 s, 12 s, 3.4 min, 2.5 h."""
    seconds = 3600 * number
    if seconds < 60:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{number:.1f} h"
