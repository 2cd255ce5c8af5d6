"""`posenc lab add`: adds a user's own encoding to a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.checking.commands.check import Timeout
from posenc.support.apart import LIMIT, NoVerdict, told
from posenc.terminal.interruption import interruptible

if TYPE_CHECKING:
    from posenc.checking.laws import LawResult
    from posenc.lab.experiment import Experiment, Size
    from posenc.lab.tasks.task import Task


MOST_NAMED = 5  # laws


def command(
    encoding: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py:CLASS", help="Your class. Append +randomized to train at random positions.", show_default=False
        ),
    ],
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="A folder of posenc lab run; if left out, only the laws are checked.", show_default=False
        ),
    ] = None,
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Train the missing trials now, or leave them to posenc lab run.")
    ] = True,
    text: Annotated[
        Path | None, typer.Option(help="The text that the sweep was given with --text, if any.", show_default=False)
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Models trained at the same time; one per core or device if left out.", show_default=False
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings, or the results of the check, as JSON.")
    ] = False,
    timeout: Timeout = LIMIT,
) -> None:
    """Add your own encoding to a comparison, after it passes the laws it declares.

    The file is executed, in a process of its own. The class must be a subclass of posenc.PositionalEncoding. Its
    constructor may take d_model, n_heads, d_head, n_layers and max_positions, by name. If a law fails, the encoding is not
    added and the exit code is 1. The file's text is part of the key of each result: after a change of the file its trials
    run again. It is tuned like the others: as many tries, of the same learning rates. The table and picture for a paper are
    DIR/report/table.tex, which is printed, and figure.pdf.

    Examples:  posenc lab add my_encoding.py:MyEncoding   ·   posenc lab add my_encoding.py:MyEncoding --to lab-quick
    """
    with interruptible("finished results are kept; the same command continues"):
        word, source = read_user_encoding(encoding)
        if to is None:
            check(word, source, default_size(), (), quiet=False, as_json=as_json, timeout=timeout)
            return
        from posenc.lab.commands.run import carry_out, enter, resumed

        before = resumed(to, "--to")
        experiment = with_one_more(before.experiment, word, source)
        tasks = tuple(plan.task for plan in experiment.tasks)
        check(word, source, experiment.size, tasks, quiet=as_json, as_json=False, timeout=timeout)
        added = f" && posenc lab add {word} --to {usual_folder(before.command)}"
        wanted = replace(
            before,
            experiment=experiment,
            text=text,
            workers=workers,
            as_json=as_json,
            command=before.command.replace(added, "") + added,
        )
        if run:
            carry_out(wanted)
            for_a_paper(to, word, as_json)
        else:
            enter(wanted)
            typer.echo(f"posenc: added to {to}; posenc lab run --resume --out {to} trains it", err=True)


def for_a_paper(folder: Path, word: str, as_json: bool) -> None:
    """Writes the table and the picture of the comparison for a paper, and prints the table."""
    from posenc.lab.findings import findings_cache
    from posenc.lab.findings.assemble import findings
    from posenc.lab.report.paper import FIGURE, TABLE, write_paper

    report = folder / "report"
    table = write_paper(findings_cache.recall(folder) or findings(folder), word, report)
    if not as_json:
        typer.echo(f"\n{table}\n{report / TABLE}, {report / FIGURE}")


def usual_folder(command: str) -> str:
    """The default output folder of the command that made this one."""
    words = command.split()
    return f"lab-{Path(words[3]).stem}" if words[1:3] == ["lab", "run"] and len(words) > 3 else "posenc-compare"


def read_user_encoding(encoding: str) -> tuple[str, str]:
    """The name of the encoding in the comparison, without folders, and the text of its file."""
    from posenc.lab.experiment.arm import RANDOMIZED

    file, _, name = encoding.rpartition(":")
    path = Path(file)
    if not file.endswith(".py") or not name.removesuffix(RANDOMIZED).isidentifier():
        raise typer.BadParameter(
            f"expected a file and a class such as my_encoding.py:MyEncoding, got {encoding!r}", param_hint="FILE.py:CLASS"
        )
    if not path.is_file():
        raise FileNotFoundError(f"{encoding}: there is no file {path}")
    try:
        return f"{path.name}:{name}", path.read_text("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{encoding}: {path} is not text in UTF-8") from None


def default_size() -> Size:
    from posenc.lab.experiment import Size

    return Size()


def with_one_more(experiment: Experiment, word: str, source: str) -> Experiment:
    """The experiment with this encoding added, or with its text replaced."""
    encodings = (*experiment.encodings, *[word] * (word not in experiment.encodings))
    return experiment.model_copy(update={"encodings": encodings, "sources": {**experiment.sources, word: source}})


def check(
    word: str, source: str, size: Size, tasks: tuple[Task, ...], *, quiet: bool, as_json: bool, timeout: float = LIMIT
) -> None:
    """Prints the result of every law. Exits with code 1 if one fails.

    Raises ValueError if the code ends Python, or a law gives no result within `timeout` seconds.
    """
    results: list[LawResult] = []
    seen: set[str] = set()

    def tell(result: LawResult, err: bool = False) -> None:
        repeated = not result.held and result.detail in seen
        seen.add(result.detail)
        typer.echo(f"✗ {result.law}: the same error" if repeated else line(result), err=err)

    try:
        for result in told(examined, word, source, size, tasks, limit=timeout):
            if result is None:
                continue
            results.append(result)
            if not (quiet or as_json):
                tell(result)
    except NoVerdict as error:
        after = f"after the law {results[-1].law}" if results else "before the first law"
        raise ValueError(f"{word}: the file {error}, {after}; it must only define the class. It is not added") from None
    if as_json:
        about = {"encoding": word, "findings": [as_data(result) for result in results]}
        typer.echo(json.dumps(about, ensure_ascii=False, indent=1))
    if broken := [result for result in results if not result.held]:
        for result in broken if quiet else ():
            tell(result, err=True)
        names = ", ".join(result.law for result in broken[:MOST_NAMED])
        names += f" and {len(broken) - MOST_NAMED} more" if len(broken) > MOST_NAMED else ""
        typer.echo(
            f"posenc: {word} breaks {len(broken)} of {len(results)}: {names}. It is not added. Correct it, or do not "
            "declare the failing traits; posenc.laws.check(encoding) raises at the failure",
            err=True,
        )
        raise typer.Exit(1)


def examined(word: str, source: str, size: Size, tasks: tuple[Task, ...]) -> Iterator[LawResult | None]:
    """None before the file is executed, then the result of every law, in the process that may run the file."""
    from posenc.lab.run.admission import examine

    yield None
    yield from examine(word, source, size, tasks)


def as_data(result: LawResult) -> dict[str, Any]:
    return {"law": result.law, "held": result.held, "detail": result.detail, "backends": list(result.backends)}


def line(result: LawResult) -> str:
    """`✓ law`; `– law` and why it does not apply; or `✗ law`, what it states and by how much it fails."""
    if result.verdict == "not applicable":
        return f"– {result.law}: {result.detail}"
    if result.held:
        return f"✓ {result.law}"
    from posenc.checking.laws import LAWS

    law = LAWS.get(result.law.partition(",")[0])
    says = (law.__doc__ or "").splitlines()[0] if law else "A forward and a backward pass in the lab's model."
    return f"✗ {result.law}: {says}\n    {result.detail.splitlines()[0]}"
