"""`posenc bench`: what encodings cost on this machine, relative to no encoding."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.support.languages import Words
from posenc.terminal.interruption import interruptible
from posenc.terminal.language import chosen_language
from posenc.terminal.output import echo_json

if TYPE_CHECKING:
    from posenc.support.languages import Language

USUAL = ("sinusoidal", "learned", "rope", "alibi", "t5")


def command(
    encodings: Annotated[
        list[str] | None,
        typer.Argument(help=f"Names of posenc list --all; {', '.join(USUAL)} if left out.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the measurements as JSON.")] = False,
    lang: Annotated[str, typer.Option(help="en or zh; LC_ALL or LANG decide if left out.", show_default=False)] = "",
) -> None:
    """Measure what encodings cost on this machine: time to prefill, decode and train relative to no encoding, and memory.

    Each encoding takes turns with NoPE in one attention layer of width 512 with 8 heads, float32, on one thread: medians of
    the ratios, with quartiles in --json. Memory is what a forward pass of 2048 tokens holds beyond NoPE's. Half a minute
    for each encoding. Also prints whether posenc's C++ kernels run.

    The figures of every encoding on the machine of the project are in `posenc list NAME` and on the site. Comparisons with
    other libraries, with lower bounds and on a GPU are in the repository: make bench, make gpu.

    Examples:  posenc bench   ·   posenc bench rope yarn fire   ·   posenc bench alibi --json
    """
    import torch
    from rich.console import Console

    from posenc.catalogue import lookup
    from posenc.kernels import machine
    from posenc.pictures.costs import conditions, cost_of
    from posenc.support.checks import shown

    language = chosen_language(lang)
    for name in encodings or ():
        if name not in lookup.BY_NAME:
            raise typer.BadParameter(f"unknown encoding {shown(name)}{lookup.hint(name)}", param_hint="ENCODINGS")
    entries = [lookup.BY_NAME[name] for name in dict.fromkeys(encodings or USUAL)]
    torch.set_num_threads(1)
    quiet = Console(stderr=True, highlight=False, emoji=False)
    quiet.print(f"posenc bench: {machine.running(language)}", soft_wrap=True, markup=False)
    costs = dict[str, Any]()
    with interruptible("the encodings that were measured are shown"):
        try:
            for number, entry in enumerate(entries, start=1):
                quiet.print(f"posenc bench: {number}/{len(entries)} {entry.name}", soft_wrap=True, markup=False)
                costs[entry.name] = cost_of(entry)
        finally:
            if as_json:
                echo_json({"conditions": conditions(os.getloadavg()[0]), "entries": costs}, indent=1)
            elif costs:
                show(costs, language)


def show(costs: dict[str, Any], language: Language) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from posenc.catalogue.choose.costs import MEASURES, Memory, MiB, Ratio, cost_of

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    heads = [Words("× NoPE", "× NoPE"), *MEASURES.values(), Words("memory beyond NoPE's", "超出 NoPE 的内存")]
    for number, words in enumerate(heads):
        table.add_column(words.in_language(language), justify="right" if number else "left")
    for name, row in costs.items():
        found = cost_of(row)
        cells = [ratio.text() if isinstance(ratio, Ratio) else "–" for ratio in found.ratios.values()]
        held = f"{found.memory.bytes / MiB:.0f} MiB" if isinstance(found.memory, Memory) else "–"
        table.add_row(name, *cells, held)
    Console(highlight=False, emoji=False).print(table)
