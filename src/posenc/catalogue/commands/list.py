"""`posenc list`: the catalogue in the terminal, or as JSON."""

from __future__ import annotations

import itertools
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.catalogue.description import NEEDS, SEAMS, TRAITS
from posenc.catalogue.entry import KINDS
from posenc.catalogue.index import USERS
from posenc.catalogue.methods import NOT_YET
from posenc.catalogue.say import say
from posenc.support.checks import shown
from posenc.support.languages import Language, Words, joined
from posenc.terminal.language import chosen_language
from posenc.terminal.output import echo_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from posenc.catalogue.index import Found


class By(StrEnum):
    """What the list is grouped by."""

    KIND = "kind"
    YEAR = "year"
    NEEDS = "needs"


def command(
    word: Annotated[
        str,
        typer.Argument(
            metavar="KIND|NAME",
            help="A kind, or an encoding by its name here or in another library or paper.",
            show_default=False,
        ),
    ] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Every encoding with its formula, properties and users.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything about every encoding as JSON.")] = False,
    by: Annotated[By, typer.Option(help="Group by how position enters, by year or by what an encoding needs.")] = By.KIND,
    lang: Annotated[str, typer.Option(help="en or zh; LC_ALL or LANG decide if left out.", show_default=False)] = "",
) -> None:
    """List the kinds of encodings and the names in each; a kind, a name or --all shows more.

    With a kind, lists its encodings: what each adds, its properties, the models that use it. With a name, shows one
    encoding; the name is its own or one used by another library, a paper or the founding notes. --all lists the encodings
    of every kind; its last line says whether posenc's C++ kernels run and, if not, why.

    Examples:  posenc list   ·   posenc list rotated   ·   posenc list 旋转位置编码   ·   posenc list --all --by year
    """
    from rich.console import Console

    from posenc.catalogue.description import built, describe
    from posenc.catalogue.lookup import ENTRIES, entry_for, find, hint, namesakes

    language = chosen_language(lang)
    chosen = list(ENTRIES)
    if word in KINDS:
        chosen = [entry for entry in ENTRIES if entry.kind == word]
    elif word:
        matches = find(word)
        if not matches:
            raise typer.BadParameter(
                f"no encoding is called {shown(word)}{hint(word)}; posenc list --all shows all names", param_hint="WORD"
            )
        chosen = [matches[0].entry]
        notes = Console(stderr=as_json, highlight=False, emoji=False)
        if matches[0].guess:
            _print_guesses(notes, word, matches, language)
            if not as_json:
                return
        else:
            _print_how(notes, matches, language)
    if as_json:
        echo_json([describe(entry) for entry in chosen], indent=1)
        return

    console = Console(highlight=False, emoji=False)
    if word and word not in KINDS:
        _print_one(console, describe(chosen[0]), language)
        for method in namesakes(word, chosen[0]):
            other = entry_for(method)
            where = method.instead or (NOT_YET if other is None else Words(f"posenc list {other.name}"))
            also = say(
                "{title} is another method ({source}): {instead}", title=method.title, source=method.source, instead=where
            )
            console.print(also.in_language(language), markup=False, style="dim")
        return
    groups = grouped([built(entry) for entry in chosen], by, language)
    if everything or word:
        _print_table(console, groups, language)
    else:
        _print_names(console, groups, language)
    if everything:
        from posenc.kernels.machine import running

        console.print(running(language), markup=False)


LINES = 2  # of names in each group, so that the list without --all fits a terminal of 24 rows and 80 columns
HEADINGS = (say("name"), say("adds"), say("year"), say("parameters", context="column"), say("what holds"), say("used by"))


def grouped(described: list[dict[str, Any]], by: By, language: Language) -> dict[str, list[dict[str, Any]]]:
    """The rows under their headings: kinds in the catalogue's order, years from the first, needs from none to most."""
    if by is By.KIND:
        return {
            f"{kind}: {words.in_language(language)}": rows
            for kind, words in KINDS.items()
            if (rows := [row for row in described if row["kind"] == kind])
        }
    if by is By.YEAR:
        years = sorted({row["published"][:4] for row in described})
        return {year: [row for row in described if row["published"].startswith(year)] for year in years}
    groups = sorted({tuple(sorted(row["needs"])) for row in described}, key=lambda needs: (len(needs), needs))
    nothing = say("nothing but positions")
    return {
        (", ".join(NEEDS[need].in_language(language) for need in needs) or nothing.in_language(language)): [
            row for row in described if tuple(sorted(row["needs"])) == needs
        ]
        for needs in groups
    }


def with_settings(rows: list[dict[str, Any]]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each method of a group with those of its settings that are in the group; a setting of a method elsewhere is alone."""
    here = {row["name"] for row in rows}
    return [
        (row, [other for other in rows if other["setting_of"] == row["name"]])
        for row in rows
        if row["setting_of"] not in here
    ]


def counted(rows: list[dict[str, Any]]) -> Words:
    """How many names, methods and settings."""
    settings = sum(row["setting_of"] is not None for row in rows)
    return say(
        "{names} names: {methods} methods and {settings} settings of one.",
        names=len(rows),
        methods=len(rows) - settings,
        settings=settings,
    )


def seams(row: dict[str, Any], language: Language) -> str:
    return ", ".join(SEAMS[seam].in_language(language) for seam in row["seams"]) or "–"


def traits(row: dict[str, Any], language: Language) -> str:
    """The traits that differ between encodings. `local` and preserved norms hold for nearly all."""
    if row["kind"] == "positions":
        return "–"
    telling = [trait for trait in ("shift_invariant", "causal_only") if trait in row["traits"]]
    return ", ".join(TRAITS[trait].in_language(language) for trait in telling) or say("absolute").in_language(language)


def _print_names(console: Any, groups: dict[str, list[dict[str, Any]]], language: Language) -> None:
    """One screen: the groups, how many each has, and the first of their names."""
    from rich.table import Table

    from posenc.terminal.shortened import Shortened

    table = Table.grid(padding=(0, 1))
    table.add_column(max_width=16, style="bold")
    table.add_column(justify="right")
    for heading, rows in groups.items():
        ordered = sorted(rows, key=lambda row: row["setting_of"] is not None)  # methods, then settings of one
        table.add_row(heading.partition(":")[0], str(len(rows)), Shortened([row["name"] for row in ordered], LINES))
    console.print(table)
    more = say("posenc list KIND, NAME or --all shows more.")
    says = counted([row for rows in groups.values() for row in rows])
    console.print(f"{says.in_language(language)} {more.in_language(language)}")


def _print_table(console: Any, groups: dict[str, list[dict[str, Any]]], language: Language) -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from posenc.catalogue.lookup import BY_NAME
    from posenc.terminal.wrapped import Wrapped

    described = [row for rows in groups.values() for row in rows]
    widest = max(len(row["name"]) for row in described)
    for heading, rows in groups.items():
        console.print(f"[bold]{escape(heading)}[/bold] ({len(rows)})")
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column, words in enumerate(HEADINGS):
            table.add_column(
                words.in_language(language),
                justify="right" if column == 3 else "left",
                no_wrap=column in (0, 2, 3),
                min_width=widest if column == 0 else None,
            )
        for row in itertools.chain(*([method, *settings] for method, settings in with_settings(rows))):
            table.add_row(
                f"[bold]{row['name']}[/bold]",
                escape(row["formula"]),
                row["published"][:4],
                f"{row['parameters']:,}",
                traits(row, language),
                Wrapped(", ".join(BY_NAME[row["name"]].users(language)[:3])),
            )
        console.print(table)
    sizes = say("Parameters at d_model 512, 8 heads, 6 layers, 2048 positions.")
    says = f"{counted(described).in_language(language)} {sizes.in_language(language)}"
    titles = [Words(BY_NAME[row["name"]].title) for row in described if row["per_layer"]]
    if titles:
        per_layer = joined(titles, ", ", "、")
        says += "\n" + say("Each layer has its own parameters: {per_layer}.", per_layer=per_layer).in_language(language)
    more = say("posenc list NAME shows details; posenc show NAME draws a picture.").in_language(language)
    console.print(f"{says}\n{more}", markup=False)


def _print_guesses(console: Console, word: str, matches: Sequence[Found], language: Language) -> None:
    """A line for each: nobody has said that the word means it."""
    says = say("No encoding is called {word}. A guess, which posenc list NAME describes:", word=shown(word))
    console.print(says.in_language(language), markup=False)
    for match in matches:
        console.print(f"  {match.entry.name}  {match.entry.label.in_language(language)}", markup=False)


def _print_how(console: Console, matches: Sequence[Found], language: Language) -> None:
    """How a word led here, unless it is a name of what is shown; and what else it may mean."""
    first, others = matches[0], ", ".join(match.entry.name for match in matches[1:])
    if first.term.role in USERS:
        says = say("{model} uses it.", model=first.term.written)
    elif first.term.role == "paper":
        says = say("Found by words of its paper.")
    else:
        return
    also = [say("See also: {names}.", names=others)] if others else []
    console.print(joined((says, *also), " ", "").in_language(language), markup=False, style="dim")


def _print_one(console: Any, row: dict[str, Any], language: Language) -> None:
    from rich.table import Table

    from posenc.terminal.wrapped import Wrapped

    options = ", ".join(f"{name}={value!r}" for name, value in row["options"].items())
    lines = (
        (say("a setting of"), row["setting_of"]),
        (say("formula"), row["formula"]),
        (say("idea"), row["idea"][language]),
        (say("coordinates"), row["coordinates"][language] if row["coordinates"] else ""),
        (say("seams"), seams(row, language)),
        (say("what holds"), ", ".join(TRAITS[trait].in_language(language) for trait in row["traits"]) or "–"),
        (say("needs"), ", ".join(NEEDS[need].in_language(language) for need in row["needs"]) or "–"),
        (say("sizes"), ", ".join(row["sizes"]) or "–"),
        (say("options"), options or "–"),
        (say("also called"), ", ".join(row["also_called"])),
        (say("used by"), ", ".join(row["used_by"][language])),
        (say("source"), row["source"]),
    )
    table = Table.grid(padding=(0, 2))
    for label, text in lines:
        if text:
            table.add_row(f"[dim]{label.in_language(language)}[/dim]", Wrapped(text))
    console.print(f"[bold]{row['name']}[/bold]  {row['class']}  {row['title']['zh']}")
    console.print(table)
    if row["drawing"]:
        console.print(row["drawing"], markup=False, soft_wrap=True)
