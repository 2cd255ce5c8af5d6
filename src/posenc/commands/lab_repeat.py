"""`posenc lab repeat`: runs one trial again and compares its scores with the stored ones."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.commands.interruption import interruptible
from posenc.commands.lab_trial import TrialFolder, TrialWords, other_seeds, stored

if TYPE_CHECKING:
    from posenc.lab.run.repeat import Score
    from posenc.lab.run.verify import Rerun


def command(
    trial: TrialWords,
    folder: TrialFolder = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="The largest difference allowed. If left out: 0.05 bits or 0.1 of the exact match, or the difference "
            "between the seeds of the encoding where that is more.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        Path | None, typer.Option(help="The text that the sweep was given with --text, if any.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every score as JSON.")] = False,
) -> None:
    """Run one trial again and compare every score with the stored one. Nothing is written.

    The exit code is 1 if a score differs by more than the tolerance. The same code on the same kind of processor usually
    gives the same bits; elsewhere rounding differs and training amplifies it, most where a model has broken: there the
    tolerance is the difference between the seeds. A reference of posenc lab verify --keep-references counts like the
    record.

    Examples:  posenc lab repeat language_model rope seed 0 --in lab-quick   ·
    posenc lab repeat 3fa09c --in results/standard --tolerance 0
    """
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance >= 0):
        raise typer.BadParameter(f"expected a finite number of 0 or more, got {tolerance}", param_hint="--tolerance")
    with interruptible("nothing was written; the same command starts anew"):
        from posenc.lab import tasks
        from posenc.lab.experiment import Trial
        from posenc.lab.records.fingerprint import fingerprint
        from posenc.lab.run.repeat import as_the_seeds_differ, paired_scores, the_same_everywhere
        from posenc.lab.run.verify import Kept

        results, line, record = stored(trial, folder)
        asked = Trial.model_validate(record.about["trial"])
        rerun = run_again(results.path, Kept(asked, record, fingerprint(asked)), text)
        if rerun.record is None:
            raise RuntimeError(f"{line}: {'; '.join(rerun.differences)}")
        measure = tasks.load(asked.task.name).measure
        if tolerance is None:
            allowed = as_the_seeds_differ([record, *other_seeds(results, line)], measure)
        else:
            allowed = the_same_everywhere(tolerance)
        scores = paired_scores(record, rerun.record, measure, allowed)
        ended_alike = record.about["failed"] == rerun.record.about["failed"]
        same = rerun.equal or (ended_alike and all(score.within for score in scores))
    if as_json:
        described = [{**score._asdict(), "within": rerun.equal or score.within} for score in scores]
        found = {"key": line.key, "measure": measure, "bit_for_bit": rerun.equal, "same": same}
        finite = json.loads(json.dumps({**found, "scores": described}), parse_constant=lambda _: None)
        typer.echo(json.dumps(finite, indent=1, allow_nan=False))
    else:
        show(str(line), scores, measure)
    typer.echo(f"posenc: {line}: {verdict(rerun, scores, measure, same)}", err=True)
    if not same:
        raise typer.Exit(1)


def run_again(path: Path, kept: Any, text: Path | None) -> Rerun:
    """One worker runs the trial, with the device of the sweep. Raises ValueError if the text is another one."""
    from dataclasses import replace

    from rich.console import Console

    from posenc.commands.lab_run import enter, resumed
    from posenc.commands.lab_verify import bar, hardware
    from posenc.lab import engines
    from posenc.lab.records.results import Folder
    from posenc.lab.run import verify
    from posenc.lab.run.sweep import read_text

    folder, corpus = Folder(path), None
    if kept.trial.task.reads_text:  # the text of another task may not be here
        before = replace(resumed(path), text=text)
        enter(before)
        corpus = read_text(before.experiment, text)
    with bar(Console(stderr=True, highlight=False, emoji=False)) as progress:
        number = None if progress is None else progress.add_task(str(kept.trial), total=1.0)

        def share(one: Any, done: float) -> None:
            if progress is not None and number is not None:
                progress.update(number, completed=done)

        device = hardware(folder.experiment() or {})
        (rerun,) = verify.run_again([kept], folder, engines.named("local", 1), corpus, device, share, lambda _: None)
    return rerun


def verdict(rerun: Rerun, scores: list[Score], measure: str, same: bool) -> str:
    unit = " bits" if measure == "bits" else " of the exact match"
    if rerun.equal:
        return "equal bit for bit to the record, or to a reference of this folder"
    if not same and all(score.within for score in scores):
        return "one of the two trainings failed"
    if not scores:
        return "both trainings failed in the same way"
    one = max(scores, key=lambda score: (not score.within, abs(score.difference)))
    if math.isnan(one.difference):
        return f"one of the two trainings has no score at length {one.length}"
    where = f"at length {one.length}{f' ({one.change})' if one.change else ''}"
    said = f"{abs(one.difference):.2g}{unit} {where}, where {one.allowed:.2g} is allowed"
    return f"the same to the tolerance: the largest difference is {said}" if same else f"differs by {said}"


def show(name: str, scores: list[Score], measure: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from posenc.commands.lab_table import UNIT

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in ("targets", "frequencies", "length", "stored", "again", "differs", "allowed"):
        table.add_column(heading, justify="left" if heading in ("targets", "frequencies") else "right", no_wrap=True)
    for score in scores:
        beyond = "" if score.within else " ✗"
        numbers = (f"{score.stored:.4f}", f"{score.again:.4f}", f"{score.difference:+.4f}", f"{score.allowed:.2g}{beyond}")
        table.add_row(score.mode, score.change or "as trained", str(score.length), *numbers)
    console = Console(highlight=False, emoji=False)
    console.print(f"{name}: {UNIT[measure].en}", soft_wrap=True, markup=False)
    console.print(table)
