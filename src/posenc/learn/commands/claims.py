"""`posenc claims`: the checked claims of the founding notes, in the terminal or as JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.learn import notes
from posenc.learn.say import say
from posenc.support.languages import Language, joined
from posenc.terminal.language import chosen_language
from posenc.terminal.output import echo_json, print_chinese

if TYPE_CHECKING:
    from rich.table import Table

    from posenc.learn.claims.evidence import Evidence, Verdict
    from posenc.learn.ledger import Claim

NOTES = say(
    "000 … 004 are the founding notes: five texts about positional encoding that posenc began with. "
    "posenc walk shows what they work out."
)
COLOURS = {"true": "green", "false": "red", "opinion": "blue"}  # everything between true and false is yellow


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Every claim as JSON, with its numbers, both languages.")] = False,
    note: Annotated[str, typer.Option(help="Only the claims of one note: 000 … 004.", show_default=False)] = "",
    verdict: Annotated[str, typer.Option(help="Only the claims with this verdict.", show_default=False)] = "",
    lang: Annotated[str, typer.Option(help="en or zh; LC_ALL or LANG decide if left out.", show_default=False)] = "",
) -> None:
    """The claims of the founding notes, each with the computed value and a verdict.

    true           correct as printed
    false          not correct
    partly         correct in part, or in a special case
    truncated      the digits are truncated instead of rounded
    limit          a limit that no finite case reaches
    convention     correct in one notation, wrong in another
    contradiction  the notes contradict each other
    opinion        cannot be computed

    Examples:  posenc claims --note 003   ·   posenc claims --verdict partly --lang zh   ·   posenc claims --json
    """
    language = chosen_language(lang)
    from posenc.learn.claims.evidence import Verdict
    from posenc.learn.ledger import CLAIMS

    if verdict and verdict not in list(Verdict):
        raise typer.BadParameter(f"expected one of {', '.join(Verdict)}, got {verdict!r}", param_hint="--verdict")
    chosen = [claim for claim in CLAIMS.values() if not note or _number(note) in claim.notes]
    checked = [(claim, claim.check()) for claim in chosen]
    checked = [(claim, finding) for claim, finding in checked if verdict in ("", finding.verdict)]
    if as_json:
        echo_json(as_data(checked), indent=1)
        return
    from rich.console import Console

    from posenc.terminal.wrapped import Wrapped

    print_chinese()  # some claims quote sentences, in both languages
    console = Console(highlight=False, emoji=False)
    if checked:
        console.print(table(checked, language))
    console.print(Wrapped(_summary(checked, language)))
    console.print(Wrapped(NOTES.in_language(language), "dim"))


def _number(note: str) -> str:
    try:
        return notes.number(note)
    except ValueError as error:
        raise typer.BadParameter(str(error).removeprefix("note: "), param_hint="--note") from error


def as_data(checked: list[tuple[Claim, Evidence]]) -> dict[str, Any]:
    """The claims as JSON data."""
    return {
        "claims": [
            {
                "id": claim.id,
                "row": claim.row,
                "claim": claim.words.as_dict(),
                "notes": [notes.FILES[note] for note in claim.notes],
                "verdict": finding.verdict.value,
                "value": finding.value.as_dict(),
                "numbers": dict(finding.numbers),
            }
            for claim, finding in checked
        ],
        "counts": {verdict.value: count for verdict, count in _counts(checked)},
    }


def table(checked: list[tuple[Claim, Evidence]], language: Language) -> Table:
    """The claims as a table: row of the ledger and notes, claim, computed value, verdict."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from posenc.terminal.wrapped import Wrapped

    table = Table(
        box=box.SIMPLE_HEAD, show_lines=False, pad_edge=False, expand=True, padding=(0, 1, 1, 0), header_style="bold"
    )
    heads = (say("row\nnotes"), say("claim"), say("computed"), say("verdict"))
    for head, ratio in zip(heads, (None, 9, 12, None), strict=True):
        table.add_column(head.in_language(language), ratio=ratio, overflow="fold")
    for claim, finding in checked:
        word = Text(finding.verdict.words.in_language(language), style=COLOURS.get(finding.verdict, "yellow"), no_wrap=True)
        claimed, value = (Wrapped(words.in_language(language)) for words in (claim.words, finding.value))
        table.add_row(Text("\n".join((claim.row, *claim.notes)), style="dim"), claimed, value, word)
    return table


def _summary(checked: list[tuple[Claim, Evidence]], language: Language) -> str:
    if not checked:
        return say("No claim matches.").in_language(language)
    counts = (say("{count} {verdict}", count=count, verdict=verdict.words) for verdict, count in _counts(checked))
    return say("{claims} claims: {counts}.", claims=len(checked), counts=joined(counts, ", ", "，")).in_language(language)


def _counts(checked: list[tuple[Claim, Evidence]]) -> list[tuple[Verdict, int]]:
    return Counter(finding.verdict for _, finding in checked).most_common()
