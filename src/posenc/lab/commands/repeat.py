"""`posenc lab repeat`: runs one trial again and compares its scores with the stored ones."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from posenc.lab.commands.trial import TrialFolder, TrialWords, other_seeds, stored
from posenc.terminal.interruption import interruptible
from posenc.terminal.output import echo, echo_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from posenc.lab.records.record import Record
    from posenc.lab.records.results import Folder
    from posenc.lab.run.repeat import Rerun, Score, Verdict

WHAT_ROUNDS = "torch, the instruction set and the processor"


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

    The exit code is 0 if every score is within the tolerance. If not, it is 1 if torch, the instruction set and the
    processor are those of the record: that is a fault. It is 3 if one of them is another or was not recorded: then the
    difference may be rounding, which training amplifies, most where a model has broken (there the tolerance is the
    difference between the seeds), and the command that decides is printed.
    ATEN_CPU_CAPABILITY=avx2 makes torch use narrower instructions.

    Examples:  posenc lab repeat language_model rope seed 0 --in lab-quick   ·
    posenc lab repeat 3fa09c --in results/study --tolerance 0
    """
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance >= 0):
        raise typer.BadParameter(f"expected a finite number of 0 or more, got {tolerance}", param_hint="--tolerance")
    with interruptible("nothing was written; the same command starts anew"):
        from posenc.lab import tasks
        from posenc.lab.run.repeat import EXIT_CODES, as_the_seeds_differ, judged, paired_scores, the_same_everywhere

        results, line, record = stored(trial, folder)
        rerun = run_again(results, record, text)
        measure = tasks.class_of(record.about["trial"]["task"]).measure
        if tolerance is None:
            allowed = as_the_seeds_differ([record, *other_seeds(results, line)], measure)
        else:
            allowed = the_same_everywhere(tolerance)
        scores = paired_scores(record, rerun.again, measure, allowed)
        ended_alike = record.about["failed"] == rerun.again.about["failed"]
        verdict = judged(rerun, ended_alike and all(score.within for score in scores))
    key = record.about["key"]
    again = f"posenc lab repeat {key[:9]} --in {results.path}"
    again += f" --text {text}" * (text is not None) + f" --tolerance {tolerance}" * (tolerance is not None)
    remedy = how_to_decide(rerun, again) if verdict == "undecided" else None
    if as_json:
        described = [{**score._asdict(), "within": rerun.equal or score.within} for score in scores]
        report = {
            "key": key,
            "measure": measure,
            "verdict": verdict,
            "bit_for_bit": rerun.equal,
            "same": verdict in ("same bits", "within tolerance"),
            "same_code": rerun.same_code,
            "surroundings": [surrounding._asdict() for surrounding in rerun.around],
            "to_decide": remedy,
        }
        echo_json({**report, "scores": described}, indent=1)
    else:
        show(str(line), scores, measure)
        show_surroundings(rerun)
    echo(f"posenc: {line}: {verdict_line(verdict, scores, measure, rerun)}", err=True)
    if remedy is not None:
        echo(f"posenc: to decide, {remedy}", err=True)
    raise typer.Exit(EXIT_CODES[verdict])


def run_again(results: Folder, record: Record, text: Path | None) -> Rerun:
    """One worker runs the trial, with the device of the sweep. Raises ValueError if the text is another one."""
    from dataclasses import replace

    from rich.console import Console

    from posenc.lab import tasks
    from posenc.lab.commands.folder import option
    from posenc.lab.commands.run import enter, resumed
    from posenc.lab.run import repeat
    from posenc.lab.run.sweep import read_text
    from posenc.lab.trial.training import Hardware

    corpus = None
    if tasks.class_of(record.about["trial"]["task"]).reads_text:  # the text of another task may not be here
        before = replace(resumed(results.path), text=text)
        enter(before)
        corpus = read_text(before.experiment, text)
    hardware = Hardware(option(results.experiment() or {}, "--device", "cpu"))
    with bar(Console(stderr=True, highlight=False, emoji=False)) as progress:
        number = None if progress is None else progress.add_task("", total=1.0)

        def share(done: float) -> None:
            if progress is not None and number is not None:
                progress.update(number, completed=done)

        return repeat.run_again(record, results.path, corpus, hardware, share)


def bar(console: Console) -> AbstractContextManager[Progress | None]:
    """A progress bar in a terminal."""
    if not console.is_terminal:
        return nullcontext()
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    return Progress(BarColumn(), TimeElapsedColumn(), console=console, transient=True)


def verdict_line(verdict: Verdict, scores: list[Score], measure: str, rerun: Rerun) -> str:
    """The verdict in one line, with its reason."""
    if verdict == "same bits":
        return "equal bit for bit to the record"
    other = "; ".join(str(surrounding) for surrounding in rerun.around if surrounding.rounds)
    rounding = f"may be rounding: {other}" if other else f"is no rounding: {WHAT_ROUNDS} are those of the record"
    code = "" if rerun.same_code else "; the code has changed since"
    if verdict == "within tolerance":
        most = largest(scores, measure) or "both trainings failed in the same way"
        return f"the same to the tolerance: {most}. That the bits differ {rounding}{code}"
    ended = "one of the two trainings failed" if all(score.within for score in scores) else largest(scores, measure)
    return f"{ended}. {'A fault' if verdict == 'fault' else 'Not decided'}: this {rounding}{code}"


def largest(scores: list[Score], measure: str) -> str:
    """The largest difference, first among those beyond their tolerance; "" without scores."""
    if not scores:
        return ""
    unit = " bits" if measure == "bits" else " of the exact match"
    score = max(scores, key=lambda score: (not score.within, abs(score.difference)))
    if math.isnan(score.difference):
        return f"one of the two trainings has no score at length {score.length}"
    where = f"at length {score.length}{f' ({score.change})' if score.change else ''}"
    size = f"{abs(score.difference):.2g}{unit} {where}, where {score.allowed:.2g} is allowed"
    return f"the largest difference is {size}" if score.within else f"differs by {size}"


def how_to_decide(rerun: Rerun, again: str) -> str:
    """A command that tells rounding from a fault. `again` is the command that was given."""
    from posenc.lab.records.surroundings import capability

    if (wanted := capability(rerun.around)) is not None:
        return f"run it with the record's instruction set: ATEN_CPU_CAPABILITY={wanted} {again}"
    if rerun.same_code:
        return (
            f"run it without posenc's kernels, which change no bit: POSENC_WITHOUT_KERNELS=1 {again}. "
            "The same scores as now: torch rounds differently here; others: a fault of the kernels"
        )
    about = rerun.stored.about
    revision = about["provenance"].get("revision", "").removesuffix("-dirty")
    source = f"git checkout {revision}" if revision else f"install posenc {about['machine'].get('posenc')} from its sources"
    return (
        f"run the code of the record on this machine: {source}, then {again} --json. "
        'The same scores as now in "again": rounding; others: the code has changed them'
    )


def show(name: str, scores: list[Score], measure: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from posenc.lab.report.words import measured_in

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in ("targets", "frequencies", "length", "stored", "again", "differs", "allowed"):
        table.add_column(heading, justify="left" if heading in ("targets", "frequencies") else "right", no_wrap=True)
    for score in scores:
        beyond = "" if score.within else " ✗"
        numbers = (f"{score.stored:.4f}", f"{score.again:.4f}", f"{score.difference:+.4f}", f"{score.allowed:.2g}{beyond}")
        table.add_row(score.mode, score.change or "as trained", str(score.length), *numbers)
    console = Console(highlight=False, emoji=False)
    console.print(f"{name}: {measured_in(measure).en}", soft_wrap=True, markup=False)
    console.print(table)


def show_surroundings(rerun: Rerun) -> None:
    """What besides the trial decides the bits, stored and here."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    code, today = (record.about["provenance"]["fingerprint"] for record in (rerun.stored, rerun.again))
    rows = [(s.name, s.stored or "not recorded", s.here or "", s.stored is None or s.alike) for s in rerun.around]
    rows.append(("code", code, today, rerun.same_code))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in ("decides the bits", "stored", "here"):
        table.add_column(heading)
    for name, before, after, alike in rows:
        table.add_row(name, before, after if alike else f"{after} ≠")
    Console(highlight=False, emoji=False).print(table)
