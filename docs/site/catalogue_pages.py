"""The pages of the catalogue: every entry, and every method of the literature."""

from __future__ import annotations

from typing import Any

from entry_page import SIZES_SHOWN, named

from posenc.catalogue.description import NEEDS, SEAMS, TRAITS
from posenc.catalogue.entry import KINDS, SHORT
from posenc.catalogue.lookup import entry_for
from posenc.catalogue.methods import NOT_YET, groups
from posenc.support.languages import Language


def catalogue(described: list[dict[str, Any]], language: Language) -> str:
    """Every entry by kind."""
    zh = language == "zh"
    settings = sum(row["setting_of"] is not None for row in described)
    methods = len(described) - settings
    lines = [
        "# 编码目录\n" if zh else "# The catalogue\n",
        f"参数量按 {SIZES_SHOWN} 计。\n" if zh else f"Parameters at {SIZES_SHOWN}.\n",
        f"共 {len(described)} 个名称：{methods} 种方法，{settings} 种是某方法的设定。"
        "`posenc list --by year` 与 `--by needs` 以别的方式分组。"
        "文献中的方法逐一列在[方法一览](methods.md)。\n"
        if zh
        else f"{len(described)} names: {methods} methods and {settings} settings of one. "
        "`posenc list --by year` and `--by needs` group them otherwise.\n"
        "The methods of the literature, one by one: [methods](methods.md).\n",
    ]
    for kind, words in KINDS.items():
        rows = [row for row in described if row["kind"] == kind]
        lines += [
            f"\n## {SHORT[kind].in_language(language).capitalize()}\n",
            f"{words.in_language(language)}\n",
            *table_of(rows, language),
        ]
    return "\n".join(lines) + "\n"


def methods(language: Language) -> str:
    """Every method of the literature one by one: its entry, or why there is none."""
    zh = language == "zh"
    every = [method for _, rows in groups().values() for method in rows]
    here = sum(entry_for(method) is not None for method in every)
    lines = [
        "# 方法一览\n" if zh else "# Methods of the literature\n",
        "[目录](catalogue.md)\n" if zh else "[catalogue](catalogue.md)\n",
        f"共 {len(every)} 种方法，其中 {here} 种有条目。\n"
        if zh
        else f"{len(every)} methods, {here} of them with an entry.\n",
    ]
    for words, rows in groups().values():
        lines += [
            f"\n## {words.in_language(language)}\n",
            "| 方法 | 条目 | 来源 |" if zh else "| method | entry | source |",
            "|---|---|---|",
        ]
        for method in rows:
            entry = entry_for(method)
            found = f"[{entry.name}](encodings/{entry.name}.md)" if entry else ""
            said = method.instead or (None if found else NOT_YET)
            cell = ("；" if zh else "; ").join(part for part in (found, said.in_language(language) if said else "") if part)
            lines.append(f"| {method.title} | {cell} | {method.source} |")
    return "\n".join(lines) + "\n"


def table_of(rows: list[dict[str, Any]], language: Language) -> list[str]:
    """The catalogue's rows of one kind."""
    zh = language == "zh"
    lines = [
        "| 名称 | 公式 | 年份 | 作用处 | 性质 | 需要 | 参数量 | 又名 | 使用者 | 来源 |"
        if zh
        else "| name | formula | year | seams | what holds | needs | parameters | also called | used by | source |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        title = f"[{row['name']}](encodings/{row['name']}.md)" + (f"<br>{row['title']['zh']}" if zh else "")
        cells = [
            title,
            f"`{row['formula'].replace('|', chr(0x2223))}`",
            row["published"][:4],
            named(row["seams"], SEAMS, language),
            named(row["traits"], TRAITS, language),
            named(row["needs"], NEEDS, language),
            f"{row['parameters']:,}",
            ", ".join(row["also_called"]),
            ", ".join(row["used_by"][language]),
            row["source"],
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines
