"""`posenc lab add`: adds a user's own encoding, or a task of their own, to a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.checking.commands.check import Timeout
from posenc.support.apart import LIMIT, NoVerdict, told
from posenc.terminal.interruption import interruptible
from posenc.terminal.output import echo, echo_json

if TYPE_CHECKING:
    from posenc.checking import Result
    from posenc.lab.commands.run import Wanted
    from posenc.lab.experiment import Experiment, Size
    from posenc.lab.tasks.task import Task


Results = Callable[[], "Iterator[Result | None]"]
MOST_NAMED = 5  # laws
REMEDY = {
    "encoding": "Correct it, or do not declare the failing traits; posenc.laws.check(encoding) raises at the failure",
    "task": "Correct it",
}


def command(
    encoding: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py:CLASS|FILE.jsonl",
            help="Your encoding, or your task: a class, or lines of a prompt and its answer. Append +randomized to an "
            "encoding to train it at random positions.",
            show_default=False,
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
    lengths: Annotated[
        str,
        typer.Option(
            help="Of a task: its scored lengths, such as 16,32,64. The first is the trained one. A class may have its own.",
            show_default=False,
        ),
    ] = "",
    steps: Annotated[
        int | None,
        typer.Option(
            min=1, help="Of a task: training steps; those of the first task of DIR if left out.", show_default=False
        ),
    ] = None,
    timeout: Timeout = LIMIT,
) -> None:
    """Add your own encoding to a comparison, after it passes the laws it declares; or your own task.

    The file is executed, in a process of its own. The class must be a subclass of posenc.PositionalEncoding. Its
    constructor may take d_model, n_heads, d_head, n_layers and max_positions, by name. If a law fails, the encoding is not
    added and the exit code is 1. The file's text is part of the key of each result: after a change of the file its trials
    run again. It is tuned like the others: as many tries, of the same learning rates. The table and picture for a paper are
    DIR/report/table.tex, which is printed, and figure.pdf.

    A task is a subclass of posenc.lab.tasks.task.Task, or a file of JSON lines, {"prompt": "2+3", "answer": "5"}. It is
    checked, and every encoding of the comparison is trained on it.

    Examples:  posenc lab add my_encoding.py:MyEncoding   ·   posenc lab add my_encoding.py:MyEncoding --to lab-quick   ·
    posenc lab add my_task.py:MyTask --to lab-quick   ·   posenc lab add sums.jsonl --lengths 8,16,32 --to lab-quick
    """
    with interruptible("finished results are kept; the same command continues"):
        word, source = read_user_file(encoding)
        if is_task(word, source, timeout):
            add_task(asked_task(word, source, lengths), to, steps, run, text, workers, as_json, timeout)
            return
        if lengths or steps:
            raise typer.BadParameter(f"is for tasks, and {word} is an encoding", param_hint="--lengths, --steps")
        if to is None:
            laws = partial(examined, word, source, default_size(), ())
            check("encoding", word, laws, quiet=False, as_json=as_json, timeout=timeout)
            return
        from posenc.lab.commands.run import resumed, usual_folder

        before = resumed(to, "--to")
        experiment = with_one_more(before.experiment, word, source)
        tasks = tuple(plan.task for plan in experiment.tasks)
        laws = partial(examined, word, source, experiment.size, tasks)
        check("encoding", word, laws, quiet=as_json, as_json=False, timeout=timeout)
        joined = replace(before, experiment=experiment, text=text, workers=workers, as_json=as_json)
        join(joined, to, f" && posenc lab add {word} --to {usual_folder(before.command)}", run)
        if run:
            for_a_paper(to, word, as_json)


def for_a_paper(folder: Path, word: str, as_json: bool) -> None:
    """Writes the table and the picture of the comparison for a paper, and prints the table."""
    from posenc.lab.findings import findings_cache
    from posenc.lab.findings.assemble import findings
    from posenc.lab.report.paper import FIGURE, TABLE, write_paper

    report = folder / "report"
    table = write_paper(findings_cache.recall(folder) or findings(folder), word, report)
    if not as_json:
        echo(f"\n{table}\n{report / TABLE}, {report / FIGURE}")


def read_user_file(reference: str) -> tuple[str, str]:
    """The name of the encoding or task in the comparison, without folders, and the text of its file."""
    from posenc.lab import user_file
    from posenc.lab.experiment.arm import RANDOMIZED
    from posenc.lab.tasks import LINES

    file, _, name = (reference, "", "") if reference.endswith(LINES) else reference.rpartition(":")
    path = Path(file)
    if not reference.endswith(LINES) and not (file.endswith(".py") and name.removesuffix(RANDOMIZED).isidentifier()):
        raise typer.BadParameter(
            f"expected a file and a class such as my_encoding.py:MyEncoding, or a file of JSON lines, got {reference!r}",
            param_hint="FILE.py:CLASS|FILE.jsonl",
        )
    if not path.is_file():
        raise FileNotFoundError(f"{reference}: there is no file {path}")
    return f"{path.name}:{name}" if name else path.name, user_file.text_of(path, reference)


def is_task(word: str, source: str, timeout: float) -> bool:
    """Whether a file defines a task, found in the process that may run it."""
    from posenc.lab.tasks import LINES

    if word.endswith(LINES):
        return True
    try:
        return any(told(_is_task, word, source, limit=timeout))
    except NoVerdict as error:
        raise ValueError(
            f"{word}: the file {error}, before the first law; it must only define the class. It is not added"
        ) from None


def _is_task(word: str, source: str) -> Iterator[bool]:
    """False before the file is executed, then whether it has a task. What the file raises, the checks of encodings say."""
    from posenc.lab import tasks

    tasks.load("copy")  # imports what takes seconds, which is not the file's time
    yield False
    try:
        yield tasks.load(word, source) is not None
    except Exception:
        yield False


def asked_task(word: str, source: str, lengths: str) -> dict[str, Any]:
    """The settings of a task. Raises BadParameter for lengths that are no numbers."""
    from posenc.lab.tasks import LINES

    settings: dict[str, Any] = {"name": word, "source": source}
    if not lengths and word.endswith(LINES):
        raise typer.BadParameter(
            "is needed: the bytes of prompts, such as 16,32,64, the trained one first", param_hint="--lengths"
        )
    if not lengths:
        return settings
    try:
        numbers = tuple(int(number) for number in lengths.split(","))
    except ValueError:
        raise typer.BadParameter(f"expected numbers such as 16,32,64, got {lengths!r}", param_hint="--lengths") from None
    return {**settings, "length": numbers[0], "lengths": numbers}


def add_task(
    settings: dict[str, Any],
    to: Path | None,
    steps: int | None,
    run: bool,
    text: Path | None,
    workers: int | None,
    as_json: bool,
    timeout: float,
) -> None:
    """Checks the task, enters it into the experiment of the folder, and trains the missing trials."""
    from posenc.lab import tasks
    from posenc.lab.commands.run import resumed, usual_folder

    before = None if to is None else resumed(to, "--to")
    size, word = default_size() if before is None else before.experiment.size, settings["name"]
    told_of = partial(examined_task, settings, size)
    check("task", word, told_of, quiet=before is not None and as_json, as_json=as_json and before is None, timeout=timeout)
    if before is None or to is None:
        return
    experiment = with_one_task_more(before.experiment, tasks.read(settings), steps)
    added = f" && posenc lab add {word} --to {usual_folder(before.command)}"
    added += "".join(f" {name} {value}" for name, value in lengths_and_steps(settings, steps).items())
    join(replace(before, experiment=experiment, text=text, workers=workers, as_json=as_json), to, added, run)


def join(wanted: Wanted, to: Path, added: str, run: bool) -> None:
    """Enters the experiment into its folder, `added` once at the end of its command, and trains if `run`."""
    from posenc.lab.commands.run import carry_out, enter

    wanted = replace(wanted, command=wanted.command.replace(added, "") + added)
    if run:
        carry_out(wanted)
    else:
        enter(wanted)
        echo(f"posenc: added to {to}; posenc lab run --resume --out {to} trains it", err=True)


def lengths_and_steps(settings: dict[str, Any], steps: int | None) -> dict[str, str]:
    """The options that were given, as words of a command."""
    lengths = {"--lengths": ",".join(map(str, settings["lengths"]))} if "lengths" in settings else {}
    return lengths | ({"--steps": str(steps)} if steps else {})


def with_one_task_more(experiment: Experiment, task: Task, steps: int | None) -> Experiment:
    """The experiment with this task in the place of one of its name, or added, trained as its first task."""
    from posenc.lab.experiment import Experiment, TaskPlan

    training = experiment.tasks[0].training
    plan = TaskPlan(task=task, training=training.model_copy(update={"steps": steps or training.steps}))
    others = [other for other in experiment.tasks if other.task.name != task.name]
    return Experiment.model_validate(experiment.model_copy(update={"tasks": (*others, plan)}).model_dump(mode="json"))


def default_size() -> Size:
    from posenc.lab.experiment import Size

    return Size()


def with_one_more(experiment: Experiment, word: str, source: str) -> Experiment:
    """The experiment with this encoding added, or with its text replaced."""
    encodings = (*experiment.encodings, *[word] * (word not in experiment.encodings))
    return experiment.model_copy(update={"encodings": encodings, "sources": {**experiment.sources, word: source}})


def check(kind: str, word: str, results_of: Results, *, quiet: bool, as_json: bool, timeout: float = LIMIT) -> None:
    """Prints every result of `results_of`, which runs in a process of its own. Exits with code 1 if a law fails.

    Raises ValueError if the code ends Python, or a law gives no result within `timeout` seconds.
    """
    results: list[Result] = []
    seen: set[str] = set()

    def tell(result: Result, err: bool = False) -> None:
        repeated = not result.held and result.detail in seen
        seen.add(result.detail)
        echo(f"✗ {result.law}: the same error" if repeated else line(result), err=err)

    for result in judged(word, results_of, timeout, "It is not added"):
        results.append(result)
        if not (quiet or as_json):
            tell(result)
    if as_json:
        about = {kind: word, "findings": [as_data(result) for result in results]}
        echo_json(about, indent=1)
    if broken := [result for result in results if not result.held]:
        for result in broken if quiet else ():
            tell(result, err=True)
        echo(f"posenc: {word} breaks {counted(broken, results)}. It is not added. {REMEDY[kind]}", err=True)
        raise typer.Exit(1)


def judged(word: str, results_of: Results, timeout: float, so: str) -> Iterator[Result]:
    """Every result of `results_of`, which runs in a process of its own, as it arrives.

    Raises ValueError, which ends with `so`, if the code ends Python, or a law gives no result within `timeout` seconds.
    """
    last = ""
    try:
        for result in told(results_of, limit=timeout):
            if result is not None:
                last = result.law
                yield result
    except NoVerdict as error:
        after = f"after the law {last}" if last else "before the first law"
        raise ValueError(f"{word}: the file {error}, {after}; it must only define the class. {so}") from None


def counted(broken: list[Result], results: list[Result]) -> str:
    """ "2 of 14: causality, shift_invariance"."""
    names = ", ".join(result.law for result in broken[:MOST_NAMED])
    more = f" and {len(broken) - MOST_NAMED} more" if len(broken) > MOST_NAMED else ""
    return f"{len(broken)} of {len(results)}: {names}{more}"


def examined(word: str, source: str, size: Size, tasks: tuple[Task, ...]) -> Iterator[Result | None]:
    """None before the file is executed, then the result of every law, in the process that may run the file."""
    from posenc.lab.run.admission import examine

    yield None
    yield from examine(word, source, size, tasks)


def examined_task(settings: dict[str, Any], size: Size) -> Iterator[Result | None]:
    """None before the file is executed, then the result of every check of a task."""
    from posenc.lab.run.task_admission import examine_task

    yield None
    yield from examine_task(settings, size)


def as_data(result: Result) -> dict[str, Any]:
    return {"law": result.law, "held": result.held, "detail": result.detail, "backends": list(result.backends)}


def line(result: Result) -> str:
    """`✓ law`; `– law` and why it does not apply; or `✗ law`, what it states and by how much it fails."""
    if result.verdict == "not applicable":
        return f"– {result.law}: {result.detail}"
    if result.held:
        return f"✓ {result.law}"
    from posenc.checking.table import SENTENCES
    from posenc.lab.run.task_admission import CHECKS

    name = result.law.partition(",")[0]
    if name in SENTENCES:
        says = SENTENCES[name].en
    elif name in CHECKS:
        says = (CHECKS[name].__doc__ or "").splitlines()[0]
    else:
        says = "A forward and a backward pass in the lab's model."
    return f"✗ {result.law}: {says}\n    {result.detail.splitlines()[0]}"
