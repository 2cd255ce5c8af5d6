"""`python -m bench`: correctness, then speed compared with a lower bound and the installed peer libraries."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from posenc.terminal.interruption import interruptible
from posenc.terminal.output import echo, echo_json, print_any_text
from posenc.terminal.progress import WORDS, clock, in_lines

if TYPE_CHECKING:
    from rich.console import Console

    from bench.runner import Progress


Form = Literal["terminal", "json", "markdown"]


def command(
    benchmarks: Annotated[
        list[str] | None, typer.Argument(help="The names below; all nine if left out.", show_default=False)
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    peers: Annotated[str, typer.Option(help="auto (every installed one), none, or names separated by commas.")] = "auto",
    threads: Annotated[
        str, typer.Option(help="Thread counts separated by commas; 1,2 if left out.", show_default=False)
    ] = "",
    seconds: Annotated[float, typer.Option(help="Time for each contender in each comparison.")] = 1.0,
    rounds: Annotated[int | None, typer.Option(min=1, help="Maximum number of rounds.", show_default=False)] = None,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Also measure how cost grows with tokens, heads and batch.")
    ] = False,
    memory: Annotated[
        bool, typer.Option("--memory/--no-memory", help="Measure peak memory, in one process per contender.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the results as Markdown.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="A new or empty folder for results.json, results.md and pictures.", show_default=False),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Also exit with code 1 if a speed or memory limit is missed.")
    ] = False,
    scale: Annotated[str, typer.Option(hidden=True, help="full, or tiny for tests.")] = "full",
) -> None:
    """Check results against fp64, then measure speed and memory against a lower bound and every installed peer library.

    If posenc is wrong, its speed is not shown and the exit code is 1. Otherwise the contenders run in turn on the same
    inputs. The results are medians with quartiles, as ratios to the floor (copying the same bytes, attention without a
    bias, filling the table, layers without an encoding), and peak memory. All nine benchmarks take an hour or more;
    --seconds 0.2, --threads 1 and --peers none shorten them.

    rope      rotation, and one decoded token
    bias      ALiBi, T5 and relative vectors
    visible   windows, packed documents and a soft cap
    call      attend on 16 keys: the Python around the kernel
    table     sinusoids
    layer     decode, prefill and training with each encoding, from the lab's size to 32 heads of 128 after 32k tokens
    model     a decoder of eight layers: one token, positions prepared once, and a training step
    attached  a transformers model alone, with posenc's rotation, and with its own RoPE attached; compiled
    step      a training step of `posenc compare`, and the import

    Also prints whether posenc's C++ kernels run. If interrupted, it shows and writes the finished results.

    Examples:  python -m bench rope   ·   python -m bench bias --peers none   ·   python -m bench --out results --strict
    """
    from bench.runner import run
    from posenc.kernels import machine

    request = checked_request(benchmarks or [], device, peers, threads, seconds, rounds, sweep, scale, memory)
    folder = None if out is None else fresh(out)
    from rich.console import Console

    quiet, loud = Console(stderr=True, highlight=False, emoji=False), Console(highlight=False, emoji=False)
    quiet.print(f"bench: {machine.running()}", soft_wrap=True, markup=False)
    done: dict[str, Any] = {}
    with interruptible("finished results are shown" + (f" and written to {folder}" if folder else "")):
        try:
            with shown(quiet) as progress:
                run(request, progress, done)
        finally:
            finish(done, folder, "json" if as_json else "markdown" if as_markdown else "terminal", loud)
    raise typer.Exit(verdict(done, strict, quiet))


def checked_request(
    benchmarks: list[str],
    device: str,
    peers: str,
    threads: str,
    seconds: float,
    rounds: int | None,
    sweep: bool,
    scale: str,
    memory: bool,
) -> Any:
    """The benchmark request made from the options. Raises BadParameter for invalid ones."""
    from bench.peers import chosen
    from bench.plan import BENCHMARKS
    from bench.runner import Request

    for name in benchmarks:
        if name not in BENCHMARKS:
            raise typer.BadParameter(f"expected some of {', '.join(BENCHMARKS)}, got {name!r}", param_hint="BENCHMARKS")
    if device not in ("cpu", "cuda"):
        raise typer.BadParameter(f"expected cpu or cuda, got {device!r}", param_hint="--device")
    if scale not in ("full", "tiny"):
        raise typer.BadParameter(f"expected full or tiny, got {scale!r}", param_hint="--scale")
    if not (math.isfinite(seconds) and seconds > 0):
        raise typer.BadParameter(f"expected a positive number, got {seconds}", param_hint="--seconds")
    cores = os.cpu_count() or 1
    words = threads.split(",") if threads else [str(count) for count in (1, 2) if count <= cores]
    if not all(word.strip().isdecimal() and 1 <= int(word) <= cores for word in words):
        raise typer.BadParameter(
            f"expected numbers from 1 to {cores} separated by commas, got {threads!r}", param_hint="--threads"
        )
    try:
        standing = chosen(peers, device)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--peers") from error
    return Request(
        tuple(dict.fromkeys(benchmarks)) or BENCHMARKS,
        device,
        standing,
        tuple(dict.fromkeys(int(word) for word in words)),
        seconds,
        rounds,
        sweep,
        scale == "tiny",
        memory,
    )


def fresh(out: Path) -> Path:
    """Creates the output folder. Raises FileExistsError if it is a file or not empty; ModuleNotFoundError without
    matplotlib, which draws the pictures when an hour has been measured."""
    import matplotlib  # noqa: F401

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FileExistsError(f"--out {out}: {'is not empty' if out.is_dir() else 'is a file'}; name a new folder")
    out.mkdir(parents=True, exist_ok=True)
    return out


def finish(done: dict[str, Any], folder: Path | None, form: Form, loud: Console) -> None:
    """Prints the results and writes them to the folder, if there is one."""
    from bench.report import markdown, show, write

    if not done.get("results"):
        return
    if form == "json":
        echo_json(done, indent=1)
    elif form == "markdown":
        echo(markdown(done))
    else:
        show(done, loud)
    if folder is not None:
        written = write(done, folder)
        if form == "terminal":
            loud.print(f"{folder}: {'  '.join(written)}", style="bold", soft_wrap=True)


def verdict(done: dict[str, Any], strict: bool, quiet: Console) -> int:
    """The exit code: 1 if a result is wrong or a worker failed, or, with --strict, if a limit is missed; else 0."""
    red = [result["title"] for result in done["results"] if result["gate"] == "red"]
    missed = [bar for bar in done["bars"] if not bar["met"]]
    for line in (
        *(f"wrong: {title}; no speed of ours is shown" for title in dict.fromkeys(red)),
        *(f"broken off: {failure}" for failure in done["failures"]),
    ):
        quiet.print(f"posenc: {line}", soft_wrap=True, markup=False)
    return 1 if red or done["failures"] or (strict and missed) else 0


@contextmanager
def shown(console: Console) -> Iterator[Progress]:
    """A progress bar with the time left; without a terminal, one line per comparison."""
    if not console.is_terminal:
        yield in_lines(console, "bench")
        return
    from rich.progress import BarColumn, Progress, TextColumn

    with Progress(BarColumn(), TextColumn(WORDS), console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0, left="")

        def update(what: str, so_far: float, left: float) -> None:
            duration = clock(left)
            bar.update(task, description=what, completed=so_far, left=f"about {duration}" if duration else "")

        yield update


if __name__ == "__main__":
    print_any_text()
    typer.run(command)
