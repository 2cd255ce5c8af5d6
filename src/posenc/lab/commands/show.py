"""`posenc lab show`: the record of one trial."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.lab.commands.trial import TrialFolder, TrialWords, stored
from posenc.terminal.output import echo, echo_json
from posenc.terminal.sparkline import sparkline

if TYPE_CHECKING:
    from rich.console import Console

    from posenc.lab.commands.folder import Line
    from posenc.lab.records.learning_curve import Curve
    from posenc.lab.records.record import Record

WIDEST = 60  # characters of a curve


def command(
    trial: TrialWords,
    folder: TrialFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show one trial: settings, scores at every length, training curve, whether it still improved, times, versions.

    Examples:  posenc lab show language_model rope seed 0   ·   posenc lab show 3fa09c --in lab-quick --json
    """
    results, line, record = stored(trial, folder)
    from posenc.lab.records import learning_curve

    key, points = line.key or "", learning_curve.of(record.rows)
    described = {
        "key": key,
        **record.about,
        "scores": scores(record.rows),
        "curve": drawn(points),
        **({"curves_then": then} if (then := curves_then(record)) else {}),
        "last_fifth": last_fifth(record.about["trial"], points),
    }
    if as_json:
        echo_json(described, indent=1)
        return
    from rich.console import Console

    _show(line, described, Console(highlight=False, emoji=False))
    echo(f"posenc lab repeat {key[:9]} --in {results.path}  # trains it again and compares its scores")


def scores(rows: Any) -> list[dict[str, Any]]:
    """One line for each change, mode and length: means over the targets, exact match over the rows."""
    import duckdb

    from posenc.lab.records.mean_score import EACH

    with duckdb.connect() as database:
        database.register("found", rows)
        answer = database.sql(f"""
            SELECT coalesce(change, '') AS change, mode, length, kind, sum(value * each) / sum(each), count(*)
            FROM (SELECT *, {EACH} AS each FROM found WHERE kind IN ('bits', 'right', 'exact'))
            GROUP BY ALL ORDER BY ALL""").fetchall()
    lines: dict[tuple[str, str, int], dict[str, Any]] = {}
    for change, mode, length, kind, value, items in answer:
        line = lines.setdefault((change, mode, length), {"change": change, "mode": mode, "length": length, "items": items})
        line[kind] = value
    return list(lines.values())


def drawn(points: Curve) -> dict[str, list[Any]]:
    return {"step": [step for step, _ in points], "bits": [bits for _, bits in points]}


def curves_then(record: Record) -> dict[str, dict[str, list[Any]]]:
    """The curves of the training after each change."""
    from posenc.lab.records import learning_curve

    return {change: drawn(learning_curve.after(record.rows, change)) for change in record.about.get("then", {})}


def last_fifth(described: dict[str, Any], points: Curve) -> dict[str, Any]:
    """Bits by which the training loss fell in the last fifth of the steps, and whether that counts as still improving.

    Both None where the curve has too few points.
    """
    from posenc.lab.experiment import Trial
    from posenc.lab.findings.criteria import converged
    from posenc.lab.records import learning_curve

    trial = Trial.model_validate(described)
    fell = learning_curve.slope(points, trial.arm.phases(trial.training.steps)[-1][0])
    return {"fell": fell, "still_improving": None if fell is None else not converged([fell])}


def curve(values: list[float]) -> str:
    """The curve as characters from ▁ (lowest) to █ (highest): at most WIDEST, each the mean of an interval."""
    if not values:
        return ""
    width = min(WIDEST, len(values))
    ends = [n * len(values) // width for n in range(width + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(ends)]
    return sparkline(means, min(means), max(means))


def two_phases(before: list[float], after: list[float]) -> str:
    """Both curves at one scale, ┆ where the model was changed."""
    whole = curve([*before, *after])
    place = round(len(whole) * len(before) / max(1, len(before) + len(after)))
    return f"{whole[:place]}┆{whole[place:]}"


def _show(line: Line, described: dict[str, Any], console: Console) -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from posenc.lab import tasks
    from posenc.terminal.wrapped import Wrapped

    trial, seconds = described["trial"], described["seconds"]
    bits, steps = described["curve"]["bits"], described["curve"]["step"]
    about = {
        "task": _settings({name: value for name, value in trial["task"].items() if name != "source"}),
        "settings": _settings(dict(trial.get("settings", ()))),
        "tuned": _settings(dict(trial.get("options", ()))),
        "size": _settings(trial["size"]),
        "training": _settings(trial["training"]),
        "parameters": f"{described['parameters']:,}, of which the encoding's {described['encoding_parameters']:,}",
        "trained": f"{described['trained_tokens']:,} tokens in {seconds['training']:.1f} s; "
        f"scored in {seconds['scoring']:.1f} s; {described['finished']}",
        "machine": _settings(described["machine"]),
        "versions": _settings({k: v[:16] for k, v in described["provenance"].items()}),
        "curve": f"{curve(bits)}  {bits[0]:.2f} → {bits[-1]:.2f} bits, {steps[-1]} steps" if bits else "",
        **{
            word: f"{two_phases(bits, then['bits'])}  {then['bits'][0]:.2f} → {then['bits'][-1]:.2f} bits"
            for word, then in described.get("curves_then", {}).items()
            if bits and then["bits"]
        },
        "last fifth": _ending(described["last_fifth"]),
        "failed": described["failed"] or "",
        "cannot": "; ".join(f"{length}: {why}" for length, why in described["cannot"].items()),
    }
    console.print(f"[bold]{escape(str(line))}[/bold]  {described['key']}", soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    for label, text in about.items():
        if text:
            grid.add_row(f"[dim]{label}[/dim]", Wrapped(text))
    console.print(grid)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    kinds = [kind for kind in ("bits", "right", "exact") if any(kind in score for score in described["scores"])]
    if tasks.class_of(trial["task"]).measure == "bits" and not any(score.get("exact") for score in described["scores"]):
        kinds = [kind for kind in kinds if kind != "exact"]
    for heading in ("frequencies", "targets", "length", "chance", *kinds, "items"):
        words = heading in ("frequencies", "targets")  # they wrap in a narrow terminal, numbers do not
        table.add_column(heading, justify="left" if words else "right", no_wrap=not words, min_width=len(heading))
    for row in described["scores"]:
        chance = described["chance"].get(str(row["length"]), math.nan)
        values = ["" if row.get(kind) is None else f"{row[kind]:.3f}" for kind in kinds]
        table.add_row(
            row["change"] or "as trained", row["mode"], str(row["length"]), f"{chance:.3g}", *values, str(row["items"])
        )
    if described["scores"]:
        console.print(table)


def _ending(ending: dict[str, Any]) -> str:
    if ending["fell"] is None:
        return ""
    change = f"the loss {'fell' if ending['fell'] >= 0 else 'rose'} by {abs(ending['fell']):.2f} bits"
    return f"{change}: {'still improving' if ending['still_improving'] else 'finished improving'}"


def _settings(settings: dict[str, Any]) -> str:
    return "  ".join(f"{name} {value}" for name, value in settings.items() if value is not None)
