"""`posenc lab report`: computes the findings and writes the report from stored results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.lab.say import say
from posenc.terminal.language import chosen_language
from posenc.terminal.output import echo, echo_json

if TYPE_CHECKING:
    from rich.console import Console

    from posenc.support.languages import Language

Show = Callable[[Mapping[str, Any], "Console", "Language"], None]
MOST_LISTED = 12


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that posenc lab run has written.")],
    out: Annotated[Path | None, typer.Option(help="Where to write; DIR/report if left out.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    lang: Annotated[str, typer.Option(help="en or zh; LC_ALL or LANG decide if left out.", show_default=False)] = "",
) -> None:
    """Write the report of a folder again, from its results; no training, no text is read.

    One page of HTML in English and Chinese, pictures, CSV and Markdown. Missing trials are listed here and in the report.

    Examples:  posenc lab report lab-quick   ·   posenc lab report lab-quick --out paper/figures
    """
    conclude(folder, out or folder / "report", as_json, chosen_language(lang))


def conclude(
    path: Path, out: Path, as_json: bool, language: Language, anew: bool = True, show: Show | None = None
) -> dict[str, Any]:
    """Writes the report, prints the findings by `show` (default: all tables) and returns them.

    Without `anew`, an existing report is kept if nothing in the folder has changed.
    """
    from rich.console import Console

    from posenc.lab.commands import table
    from posenc.lab.commands.folder import opened, warn_of_damage
    from posenc.lab.findings import findings_cache

    folder, _ = opened(path, "DIR")
    warn_of_damage(folder)
    page = out / "index.html"
    data = None if anew or not page.exists() else findings_cache.recall(folder.path)
    if data is None:
        from posenc.lab.findings.assemble import findings  # importing takes about a second
        from posenc.lab.report import write

        data = findings(folder.path)
        write(data, out)
        if out.parent == folder.path:
            findings_cache.remember(folder.path, data)
    if as_json:
        echo_json(data, indent=1)
    else:
        console = Console(highlight=False, emoji=False)
        (show or table.show)(data, console, language)
        others = say("and {others} other files", others=len(list(out.iterdir())) - 1)
        console.print(f"{page} {others.in_language(language)}", style="bold", soft_wrap=True, markup=False)
    absent = list(table.missing(data, language))
    if absent:
        echo(f"posenc: {len(absent)} of {data['trials']['expected']} trials gave no result:", err=True)
        for line in [*absent[:MOST_LISTED], *["…"] * (len(absent) > MOST_LISTED)]:
            echo(f"  {line}", err=True)
    return data
