"""`posenc lab verify`: checks that the current code reproduces stored results."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.terminal.interruption import interruptible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from posenc.lab.records.results import Folder
    from posenc.lab.run.verify import Kept, Rerun
    from posenc.lab.trial.training import Hardware


def command(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]", help="A folder of posenc lab run; the only lab-* folder here if left out.", show_default=False
        ),
    ] = None,
    sample: Annotated[
        int, typer.Option(min=1, help="Trials to run again; more if needed to cover all tasks and encodings.")
    ] = 12,
    all_: Annotated[
        bool, typer.Option("--all", help="Run every finished trial again, including those of this code.")
    ] = False,
    keep_references: Annotated[
        bool,
        typer.Option(
            "--keep-references",
            help="Store this machine's numbers as references. Only with the code that made the results.",
        ),
    ] = False,
    text: Annotated[
        Path | None, typer.Option(help="The text that the sweep was given with --text, if any.", show_default=False)
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Models trained at the same time; one per core or device if left out.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was compared as JSON.")] = False,
) -> None:
    """Run again a sample of the trials that other code made, and compare every number bit for bit.

    The key of a trial does not depend on the code. Each record has a fingerprint of the code that made it. This command
    runs again a sample of the trials with another fingerprint, with every task and every encoding at least once. If all
    numbers are equal, DIR/verified.jsonl records the fingerprints as equal and the results stay valid. If not, nothing is
    recorded. No result is deleted.

    The exit code is 1 if a number differs although torch, the instruction set and the processor are those of the record:
    the code has changed it; if that was intended, raise NUMERICS_VERSION. It is 3 if one of them is another or was not
    recorded: the difference may be rounding. On such a machine, run the code that made the results once with
    --keep-references; later code is then compared with those references too.

    Examples:  posenc lab verify lab-quick   ·   posenc lab verify results/standard --sample 30 --workers 2   ·
    posenc lab verify lab-quick --all --json
    """
    with interruptible("nothing was recorded; the same command starts anew"):
        from rich.console import Console

        from posenc.lab.commands.folder import opened, warn_of_damage
        from posenc.lab.commands.trial import the_only
        from posenc.lab.run.repeat import EXIT_CODES
        from posenc.lab.run.verify import kept_trials, touched

        results, manifest = opened(the_only() if folder is None else folder, "DIR")
        warn_of_damage(results)
        console = Console(stderr=True, highlight=False, emoji=False)
        kept = kept_trials(results)
        other = touched(results, kept)
        if keep_references and other:
            raise ValueError(
                f"--keep-references: {len(other)} of {len(kept)} trials are of code that is not known to be equal to this; "
                "use the code that made them, or omit the option"
            )
        wanted = kept if all_ or keep_references else other
        if not wanted:
            print_report(results, kept, [], [], 0, as_json)
            typer.echo(f"posenc: all {len(kept)} trials are of this code, or of code known to be equal", err=True)
            return
        size = len(wanted) if all_ else sample
        reruns = run(results, manifest, wanted, size, text, workers, console)
        equal = all(rerun.equal for rerun in reruns)
        recorded = record(results, manifest, other, reruns, keep_references) if equal or keep_references else 0
        print_report(results, kept, other, reruns, recorded, as_json)
        conclude(results, reruns, other, recorded, keep_references)
    if not equal and not keep_references:
        changed = any(rerun.decided for rerun in reruns if not rerun.equal)
        raise typer.Exit(EXIT_CODES["fault" if changed else "undecided"])


def run(
    results: Folder,
    manifest: dict[str, Any],
    wanted: list[Kept],
    size: int,
    text: Path | None,
    workers: int | None,
    console: Console,
) -> list[Rerun]:
    """Runs the sample again. Prints the choice, then each result."""
    from dataclasses import replace

    from posenc.lab import engines
    from posenc.lab.commands.run import enter, resumed
    from posenc.lab.records.verified import references
    from posenc.lab.run.sweep import read_text
    from posenc.lab.run.verify import run_again, sample

    before = replace(resumed(results.path), text=text, workers=workers)
    enter(before)  # raises if the text differs
    chosen = sample(wanted, size, frozenset(references(results.path)))
    tasks, encodings = ({name(of_trial) for of_trial in wanted} for name in (task_of, encoding_of))
    seconds = sum(sum(kept_trial.record.about["seconds"].values()) for kept_trial in chosen)
    console.print(
        f"posenc lab: {len(wanted)} trials to check: {len(tasks)} tasks, {len(encodings)} encodings. Running {len(chosen)} "
        f"of them again; they took {duration(seconds)} of one core",
        soft_wrap=True,
        markup=False,
    )
    with bar(console) as progress:
        number = None if progress is None else progress.add_task("", total=len(chosen))
        shares = dict.fromkeys((kept_trial.key for kept_trial in chosen), 0.0)

        def share(kept_trial: Kept, done: float) -> None:
            shares[kept_trial.key] = done
            if progress is not None and number is not None:
                progress.update(number, completed=sum(shares.values()), description=str(kept_trial.trial))

        def ended(rerun: Rerun) -> None:
            share(rerun.kept, 1.0)
            console.print(f"posenc lab: {line(rerun)}", soft_wrap=True, markup=False)

        engine = engines.named("local", workers)
        return run_again(chosen, results, engine, read_text(before.experiment, text), hardware(manifest), share, ended)


def bar(console: Console) -> AbstractContextManager[Progress | None]:
    """A progress bar in a terminal."""
    if not console.is_terminal:
        return nullcontext()
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    return Progress(*columns, console=console, transient=True)


def hardware(manifest: dict[str, Any]) -> Hardware:
    """The type of device that the sweep used."""
    from posenc.lab.commands.folder import option
    from posenc.lab.trial.training import Hardware

    return Hardware(option(manifest, "--device", "cpu"))


def record(results: Folder, manifest: dict[str, Any], other: list[Kept], reruns: list[Rerun], keep_references: bool) -> int:
    """Records equal fingerprints, or this machine's numbers. Returns how many."""
    from posenc.lab.records.verified import add_references
    from posenc.lab.run.verify import record_equal

    if keep_references:
        new = [rerun.record for rerun in reruns if not rerun.equal and rerun.record is not None]
        add_references(results.path, new)
        return len(new)
    return record_equal(results, other, reruns, hardware(manifest)) if other else 0


def duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 60 else f"{seconds / 60:.1f} minutes"


def task_of(kept_trial: Kept) -> str:
    return kept_trial.trial.task.name


def encoding_of(kept_trial: Kept) -> str:
    return kept_trial.trial.encoding


def line(rerun: Rerun) -> str:
    """`✓ copy rope seed 0: equal`, or `✗` with the differences."""
    if rerun.equal:
        return f"✓ {rerun.kept.trial}: equal bit for bit"
    other = "; ".join(str(surrounding) for surrounding in rerun.around if surrounding.rounds)
    return f"✗ {rerun.kept.trial}: {'; '.join(rerun.differences)}{f' (may be rounding: {other})' if other else ''}"


def print_report(
    results: Folder, kept: list[Kept], other: list[Kept], reruns: list[Rerun], recorded: int, as_json: bool
) -> None:
    from posenc.lab.run.verify import as_data

    if as_json:
        described = {
            "folder": str(results.path),
            "trials": len(kept),
            "of_other_code": len(other),
            "sample": [as_data(rerun) for rerun in reruns],
            "equal": all(rerun.equal for rerun in reruns),
            "recorded": recorded,
        }
        typer.echo(json.dumps(described, ensure_ascii=False, indent=1, allow_nan=False))


def conclude(results: Folder, reruns: list[Rerun], other: list[Kept], recorded: int, keep_references: bool) -> None:
    """The concluding line."""
    unequal = [rerun for rerun in reruns if not rerun.equal]
    if keep_references:
        text = f"{recorded} references of this machine are kept in {results.path / 'references'}"
    elif not unequal:
        text = f"all {len(reruns)} are equal bit for bit"
        text += f"; the results stay, {recorded} pairs of fingerprints are recorded in verified.jsonl" if other else ""
    else:
        text = f"{len(unequal)} of {len(reruns)} differ, nothing was recorded. "
        if changed := sum(rerun.decided for rerun in unequal):
            text += (
                f"In {changed} the code has changed the numbers: torch, the instruction set and the processor are those of "
                "the record. If that is intended, raise NUMERICS_VERSION in posenc/lab/experiment/key.py: every trial then "
                "runs again"
            )
        else:
            text += (
                "Not decided: each may be rounding, for torch, the instruction set or the processor is another than the "
                "record's or was not recorded. Run the code that made the results here once with --keep-references: this "
                "code is then compared with what that gives on this machine"
            )
    typer.echo(f"posenc: {text}", err=True)
