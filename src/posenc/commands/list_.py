"""`posenc list`: the catalogue in the terminal, or as JSON."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from posenc.bilingual import Language, Words
from posenc.commands.walk_ import chosen_language
from posenc.description import SEAMS, TRAITS


def command(
    word: Annotated[
        str, typer.Argument(help="A name of an encoding, here or in another library or paper.", show_default=False)
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Everything about every encoding as JSON.")] = False,
    lang: Annotated[str, typer.Option(help="en or zh; LC_ALL or LANG decide if left out.", show_default=False)] = "",
) -> None:
    """List the encodings: where each acts, its properties, the models that use it.

    With a name, shows one encoding. The name is its own or one used by another library, a paper or the founding notes.
    The last line of the table says whether posenc's C++ kernels run and, if not, why.

    Examples:  posenc list   ·   posenc list rotary   ·   posenc list 旋转位置编码   ·   posenc list --json
    """
    from posenc.catalogue import BY_NAME, ENTRIES, entry_of, look_up
    from posenc.description import describe

    language = chosen_language(lang)
    chosen = list(ENTRIES)
    if word:
        entry = BY_NAME.get(word) or entry_of(word)
        if entry is None:
            place = look_up(word)
            raise typer.BadParameter(
                f"{word!r}: that is {place}" if place else f"no encoding is called {word!r}; known: {', '.join(BY_NAME)}",
                param_hint="WORD",
            )
        chosen = [entry]
    described = [describe(entry) for entry in chosen]
    if as_json:
        typer.echo(json.dumps(described, ensure_ascii=False, indent=1))
        return
    from rich.console import Console

    console = Console(highlight=False)
    if word:
        _print_one(console, described[0], language)
    else:
        _print_table(console, described, language)


HEADINGS = {
    "en": ("name", "adds", "seams", "parameters", "what holds", "used by"),
    "zh": ("名称", "公式", "作用处", "参数量", "性质", "使用者"),
}


def seams(row: dict[str, Any], language: Language) -> str:
    return ", ".join(SEAMS[seam].read(language) for seam in row["seams"]) or "–"


def traits(row: dict[str, Any], language: Language) -> str:
    """The traits that differ between encodings. `local` and preserved norms hold for nearly all."""
    telling = [trait for trait in ("shift_invariant", "causal_only") if trait in row["traits"]]
    return ", ".join(TRAITS[trait].read(language) for trait in telling) or Words("absolute", "绝对").read(language)


def _print_table(console: Any, described: list[dict[str, Any]], language: Language) -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from posenc.benchmarks.machine import running
    from posenc.wrapped import Wrapped

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, heading in enumerate(HEADINGS[language]):
        table.add_column(heading, justify="right" if column == 3 else "left", no_wrap=column < 4)
    for row in described:
        table.add_row(
            f"[bold]{row['name']}[/bold]",
            escape(row["formula"]),
            seams(row, language),
            f"{row['parameters']:,}",
            traits(row, language),
            Wrapped(", ".join(row["used_by"][language][:3])),
        )
    console.print(table)
    per_layer = [row["title"]["en"] for row in described if row["per_layer"]]
    console.print(
        Words(
            f"Parameters at d_model 512, 8 heads, 6 layers, 2048 positions; {', '.join(per_layer)}: for each layer.\n"
            "posenc list NAME shows details; posenc show NAME draws a picture.",
            f"参数量按 d_model 512、8 个头、6 层、2048 个位置计；{'、'.join(per_layer)} 的参数量为每层一份。\n"
            "posenc list 名称 查看详情；posenc show 名称 画图。",
        ).read(language)
    )
    console.print(running(language), markup=False)


def _print_one(console: Any, row: dict[str, Any], language: Language) -> None:
    from rich.table import Table

    from posenc.wrapped import Wrapped

    zh = language == "zh"
    options = ", ".join(f"{name}={value!r}" for name, value in row["options"].items())
    lines = {
        "公式" if zh else "formula": row["formula"],
        "思路" if zh else "idea": row["idea"][language],
        "作用处" if zh else "seams": seams(row, language),
        "性质" if zh else "what holds": ", ".join(TRAITS[trait].read(language) for trait in row["traits"]),
        "尺寸" if zh else "sizes": ", ".join(row["sizes"]) or "–",
        "选项" if zh else "options": options or "–",
        "又名" if zh else "also called": ", ".join(row["also_called"]),
        "使用者" if zh else "used by": ", ".join(row["used_by"][language]),
        "来源" if zh else "source": row["source"],
    }
    table = Table.grid(padding=(0, 2))
    for label, text in lines.items():
        table.add_row(f"[dim]{label}[/dim]", Wrapped(text))
    console.print(f"[bold]{row['name']}[/bold]  {row['class']}  {row['title']['zh']}")
    console.print(table)
