"""`posenc convert`: converts a checkpoint to the other rotary layout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.terminal.interruption import interruptible
from posenc.terminal.output import echo_json

if TYPE_CHECKING:
    from rich.console import Console

    from posenc.configs.convert.checkpoint import Progress

LAYOUTS = ("half", "interleaved")
FUSED = ("concatenated", "grouped", "blocks")


def command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .safetensors file, or a folder with a model.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write it. Must not exist.")],
    to: Annotated[str, typer.Option(help="interleaved or half.", show_default=False)],
    layout_now: Annotated[
        str,
        typer.Option(
            "--from", help="The layout of IN, if its files and model family do not give it correctly.", show_default=False
        ),
    ] = "",
    n_heads: Annotated[int | None, typer.Option(min=1, help="Query heads.", show_default="config.json")] = None,
    n_kv_heads: Annotated[int | None, typer.Option(min=1, help="Key heads.", show_default="config.json")] = None,
    d_head: Annotated[int | None, typer.Option(min=1, help="Channels of a head.", show_default="config.json")] = None,
    rotary_dim: Annotated[
        int | None, typer.Option(min=2, help="Channels of a head that rotate.", show_default="config.json")
    ] = None,
    trailing: Annotated[
        bool | None,
        typer.Option("--trailing/--leading", help="The last or the first channels rotate.", show_default="config.json"),
    ] = None,
    fused: Annotated[
        str, typer.Option(help="Rows of a fused projection: concatenated, grouped or blocks.", show_default="model family")
    ] = "",
    under: Annotated[
        list[str] | None,
        typer.Option(
            help="Only the projections of this stack, such as 'model.layers.*.self_attn'; may be repeated.",
            show_default=False,
        ),
    ] = None,
    leave: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Copy tensors with this name unchanged; may be repeated.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Converts a checkpoint to the other rotary layout of query and key heads: half or interleaved.

    Rows of query and key projections are permuted, with their biases, norms and low-rank updates; no number changes.
    OUT is written to a temporary folder, read back and compared with IN, then renamed: it is complete, or does not exist.
    Its files record their layout. Everything else in the folder is copied.

    Examples:  posenc convert llama llama-interleaved --to interleaved
    ·   posenc convert model.safetensors out.safetensors --to half --n-heads 32 --n-kv-heads 8 --d-head 128
    """
    options = {"--to": (to, LAYOUTS), "--from": (layout_now, ("", *LAYOUTS)), "--fused": (fused, ("", *FUSED))}
    for option, (value, known) in options.items():
        if value not in known:
            raise typer.BadParameter(f"expected one of {', '.join(filter(None, known))}, got {value!r}", param_hint=option)
    patterns = _patterns(leave or [])
    with interruptible("nothing was written"):
        from rich.console import Console

        from posenc.configs.convert.checkpoint import convert
        from posenc.configs.convert.plan import Options

        quiet, loud = Console(stderr=True, highlight=False, emoji=False), Console(highlight=False, emoji=False)
        with shown(quiet) as progress:
            done = convert(
                source,
                out,
                to,  # type: ignore[arg-type]
                layout_now=layout_now or None,  # type: ignore[arg-type]
                progress=progress,
                options=Options(fused or None, tuple(under or ()), patterns),  # type: ignore[arg-type]
                n_heads=n_heads,
                n_kv_heads=n_kv_heads,
                d_head=d_head,
                rotary_dim=rotary_dim,
                trailing=trailing,
            )
    if as_json:
        echo_json(done, indent=1)
    else:
        report(done, loud)


def _patterns(leave: list[str]) -> tuple[str, ...]:
    import re

    for pattern in leave:
        try:
            re.compile(pattern)
        except re.error as error:
            raise typer.BadParameter(f"{pattern!r}: not a regular expression ({error})", param_hint="--leave") from error
    return tuple(leave)


@contextmanager
def shown(console: Console) -> Iterator[Progress]:
    """A progress bar over the bytes written and read back; none if the output is not a terminal."""
    if not console.is_terminal:
        yield lambda what, done, of: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading heads of files", total=None)
        yield lambda what, done, of: bar.update(task, description=what, completed=done, total=of)


def report(done: dict[str, Any], console: Console) -> None:
    heads = done["heads"]
    sizes = ", ".join(
        f"{name} {value}" for name, value in heads.items() if value is not None and not isinstance(value, bool)
    )
    console.print(f"[bold]{done['out']}[/]  {done['from']} → {done['to']}", soft_wrap=True)
    console.print(f"· layout {done['from']} known from: {done['from_known_by']}", soft_wrap=True)
    console.print(
        f"· {sizes}{', trailing' if heads['trailing'] else ''}{', gated' if heads['gated'] else ''}", soft_wrap=True
    )
    console.print(
        f"· {len(done['permuted'])} of {done['tensors']} tensors permuted in {done['files']} file(s), "
        f"{len(done['copied'])} other file(s) copied",
        soft_wrap=True,
    )
    console.print("· read back: copied tensors are equal to the bit, permuted ones invert to the originals", soft_wrap=True)
    if scores := done["scores"]:
        console.print(
            f"· scores of {scores['layers']} layer(s) in {done['from']} with old weights and in {done['to']} "
            f"with new ones: equal to {scores['difference']:.0e} of the largest",
            soft_wrap=True,
        )
    for note in done["notes"]:
        console.print(f"· [yellow]{note}[/]", soft_wrap=True)
