"""The page of one entry: idea, formula, picture, example, cost, limits, differences, options, facts."""

from __future__ import annotations

import re
from typing import Any

from live_page import opened
from measured_curve import HEAD as MEASURED
from measured_curve import curve

from posenc.catalogue.choose import costs
from posenc.catalogue.description import NEEDS, SEAMS, SIZES, TRAITS, program
from posenc.catalogue.entry import KINDS, Entry
from posenc.catalogue.lookup import BY_NAME
from posenc.catalogue.option_descriptions import options_of
from posenc.support.languages import Language, Words

SIZES_SHOWN = ", ".join(f"{name} {size}" for name, size in SIZES.items())

COST = Words("What it costs", "代价")
BREAKS = Words("Where it breaks", "局限")
DIFFERS = Words("What differs from the paper or the authors' code", "与论文或作者代码的差异")
SAME = Words("Nothing that is known.", "没有已知的差异。")
OPTIONS = Words("Options", "选项")
NO_OPTIONS = Words("It has none.", "没有选项。")
EXAMPLE = Words("Example", "示例")
POSITIONS = Words("**Positions.** ", "**位置**：")
SETTING = Words(
    "A setting of [{name}]({name}.md), which `posenc.create` builds.",
    "[{name}]({name}.md) 的一种设定，由 `posenc.create` 构造。",
)
MORE = Words("More", "更多")
NOT_MEASURED = Words(
    "Not measured yet: `python -m posenc.pictures.costs` measures it.",
    "尚未测量：`python -m posenc.pictures.costs` 会测量它。",
)


def page(row: dict[str, Any], language: Language) -> str:
    """The whole page of an entry that `describe` described."""
    zh, name = language == "zh", row["name"]
    entry, said = BY_NAME[name], BY_NAME[name].page
    file = f"src/{entry.module.replace('.', '/')}.py"
    code = f"[`{file}`](../../{file})"
    lines = [
        f"# {entry.label.zh}\n" if zh else f"# {entry.title}\n",
        f"[{'目录' if zh else 'catalogue'}](../catalogue.md) · {'代码' if zh else 'code'}: {code}\n",
        *([f"{SETTING.filled(name=row['setting_of']).in_language(language)}\n"] if row["setting_of"] else []),
        row["idea"][language] + "\n",
        f"$$\n{said.latex}\n$$\n",
        f"![{said.title.in_language(language)}](../pictures/{name}.png)\n",
        f"{opened(entry, language)}\n",
        *((f"## {MEASURED[language]}\n", drawn) if (drawn := curve(name, language)) else ()),
        f"## {EXAMPLE.in_language(language)}\n",
        *([f"{POSITIONS.in_language(language)}{row['coordinates'][language]}\n"] if row["coordinates"] else []),
        *([f"```text\n{row['drawing']}\n```\n"] if row["drawing"] else []),
        *(f"```python\n{lines}```\n" for lines in (program(row), row["example"]) if lines),
        f"## {COST.in_language(language)}\n",
        cost(name, language),
        f"## {BREAKS.in_language(language)}\n",
        said.breaks.in_language(language) + "\n",
        f"## {DIFFERS.in_language(language)}\n",
        (said.differs or SAME).in_language(language) + "\n",
        f"## {OPTIONS.in_language(language)}\n",
        options(entry, row, language),
        f"## {MORE.in_language(language)}\n",
        "| | |\n|---|---|",
        *(f"| {label} | {fact} |" for label, fact in facts(entry, row, language).items()),
    ]
    return "\n".join(lines) + "\n"


def facts(entry: Entry, row: dict[str, Any], language: Language) -> dict[str, str]:
    """The table at the end: kind, seams, needs, names, users, paper and code."""
    zh, code = language == "zh", entry.page.code
    found = {
        "类别" if zh else "kind": KINDS[row["kind"]].in_language(language),
        "作用处" if zh else "seams": named(row["seams"], SEAMS, language),
        "性质" if zh else "what holds": named(row["traits"], TRAITS, language),
        "需要" if zh else "needs": named(row["needs"], NEEDS, language),
        "每个词的坐标数" if zh else "coordinates of a token": str(row["axes"]),
        "参数量" if zh else "parameters": f"{row['parameters']:,} ({SIZES_SHOWN})",
        "又名" if zh else "also called": ", ".join(row["also_called"]),
        "使用者" if zh else "used by": ", ".join(row["used_by"][language]),
        "论文" if zh else "paper": linked(row["source"]),
        "作者代码" if zh else "authors' code": f"[{code}](https://github.com/{code})" if code else "–",
    }
    if row["kind"] == "positions":
        return {label: fact for label, fact in found.items() if fact != "–" and "d_model" not in fact}
    return found


def linked(source: str) -> str:
    """A source whose arXiv numbers are links."""
    return re.sub(r"arXiv (\d{4}\.\d{4,5})", r"[arXiv \1](https://arxiv.org/abs/\1)", source)


def options(entry: Entry, row: dict[str, Any], language: Language) -> str:
    """A table of what is needed and what may be left out, each described."""
    zh, about = language == "zh", options_of(entry)
    if not about:
        return NO_OPTIONS.in_language(language) + "\n"
    head = "| 名称 | 默认值 | 含义 |" if zh else "| name | default | meaning |"
    lines = [head, "|---|---|---|"]
    for name, words in about.items():
        default = f"`{row['options'][name]!r}`" if name in row["options"] else ("尺寸" if zh else "a size")
        lines.append(f"| `{name}` | {default} | {cell(words.in_language(language))} |")
    return "\n".join(lines) + "\n"


def cost(name: str, language: Language) -> str:
    """Time relative to NoPE and memory beyond it, as measured; a link to how."""
    zh = language == "zh"
    found = costs.measured().get(name)
    if found is None:
        return NOT_MEASURED.in_language(language) + "\n"
    lines = ["| | × NoPE |", "|---|--:|"]
    for measure, words in costs.MEASURES.items():
        ratio = found.ratios[measure]
        said = ratio.text() if isinstance(ratio, costs.Ratio) else cannot(ratio, zh)
        lines.append(f"| {words.in_language(language)} | {said} |")
    if isinstance(found.memory, costs.Memory):
        amount = f"{found.memory.bytes / costs.MiB:.0f} MiB"
        grows = costs.ORDERS[found.memory.order].in_language(language)
        said = (
            f"超出 NoPE 的内存，2048 个词：{amount}，{grows}。"
            if zh
            else (f"Memory beyond NoPE's at 2048 tokens: {amount}, {grows}.")
        )
    else:
        said = cannot(found.memory, zh)
    how = "[怎样测量的](../costs.md)" if zh else "[How this was measured](../costs.md)"
    return "\n".join(lines) + f"\n\n{said} {how}{'。' if zh else '.'}\n"


def cannot(why: str, zh: bool) -> str:
    return cell(f"{'不能' if zh else 'cannot'}: {why}")


def cell(text: str) -> str:
    """A text for a table of Markdown."""
    return text.replace("|", "\\|")


def named(keys: list[str], words: dict[str, Words], language: Language) -> str:
    return ", ".join(words[key].in_language(language) for key in keys) or "–"
