"""The table of what the founding notes describe: each row with its two addresses, as `posenc walk` lists them."""

from __future__ import annotations

from posenc.learn.ledger import ROWS
from posenc.support.languages import Language

HEADS = {
    "en": ("row", "what it is", "notes", "in the terminal", "in the explorer"),
    "zh": ("编号", "内容", "笔记", "终端", "探索器"),
}


def rows_table(language: Language) -> str:
    lines = [f"| {' | '.join(HEADS[language])} |", "|---|---|---|---|---|"]
    for row in ROWS.values():
        title = row.title.in_language(language).replace("|", "\\|")
        commands = " ".join(f"`{command}`" for command in dict.fromkeys((f"posenc walk {row.name}", row.command)))
        explored = f"`posenc explore {row.name}` `#{row.name}`"
        lines.append(f"| {row.name} | {title} | {' '.join(row.notes)} | {commands} | {explored} |")
    return "\n".join(lines)
