"""Writes the generated pages: the catalogue and one page per encoding, in English and Chinese, from the package itself.

python docs/make.py              pages, the drawing of order blindness, and pictures that are missing
python docs/make.py --all        all pictures, too
python docs/make.py --check      exit 1 if a page is not what the package would write (pictures are not compared)
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from choose_page import choose_page
from claims_page import claims_table
from costs_page import costs_page
from entry_page import GENERATED, SIZES_SHOWN, named, page
from envelopes import picture
from PIL import Image
from which_backend import table

from posenc.catalogue.description import NEEDS, SEAMS, TRAITS, describe
from posenc.catalogue.entry import KINDS, SHORT
from posenc.catalogue.lookup import ENTRIES, FOUNDATION, create, entry_for
from posenc.catalogue.methods import GROUPS, NOT_YET
from posenc.pictures.plots.effect import effect
from posenc.pictures.plots.figures import save
from posenc.pictures.plots.views import Request, drawable, picture_of, views_of
from posenc.structure import Blocks, Regions
from posenc.support.languages import Language

HERE = Path(__file__).parent
ROOT = HERE.parent
BEGIN, END = "<!-- table written by docs/make.py -->", "<!-- end of table -->"
COLOURS = 128  # of a picture: a third of the bytes, and no difference to see
LANGUAGES: dict[Language, str] = {"en": ".md", "zh": ".zh-CN.md"}
DIFFER_BY_HEAD = ("ms_poe",)
"""Those whose heads make the difference: the table of one head is that of RoPE, as is that of what replaces products."""


def pages() -> dict[Path, str]:
    described = [describe(entry) for entry in ENTRIES]
    made = {}
    for language, suffix in LANGUAGES.items():
        made[HERE / f"catalogue{suffix}"] = catalogue(described, language)
        made[HERE / f"methods{suffix}"] = methods(language)
        made[HERE / f"costs{suffix}"] = costs_page(language)
        made[HERE / f"choose{suffix}"] = choose_page(language)
        made[HERE / f"backends{suffix}"] = with_table(HERE / f"backends{suffix}", table(language))
        tested = ROOT / "results" / "claims" / f"README{suffix}"
        made[tested] = with_table(tested, claims_table(language))
        made[ROOT / f"README{suffix}"] = with_table(ROOT / f"README{suffix}", summary(language))
        made[HERE / "pictures" / f"envelopes{suffix.replace('.md', '.svg')}"] = picture(language)
        for row in described:
            made[HERE / "encodings" / f"{row['name']}{suffix}"] = page(row, language)
    return made


def with_table(path: Path, written: str) -> str:
    """A page of prose, with what lies between its two marks written anew."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n{written}\n{END}{rest.split(END)[1]}"


def summary(language: Language) -> str:
    """The README's table: how many there are of each kind, and the best known of them."""
    zh, suffix = language == "zh", LANGUAGES[language]
    lines = ["| 位置如何进入 | 数量 | 例如 |" if zh else "| how position enters | names | such as |", "|---|--:|---|"]
    for kind, words in KINDS.items():
        alike = [entry for entry in ENTRIES if entry.kind == kind]
        known = [entry for entry in alike if entry.name in FOUNDATION] or alike[:3]
        links = [f"[{entry.title.en}](docs/encodings/{entry.name}{suffix})" for entry in known]
        lines.append(f"| {words.in_language(language)} | {len(alike)} | {('、' if zh else ', ').join(links)} |")
    whole = (
        f"[全部 {len(ENTRIES)} 个名称](docs/catalogue{suffix})"
        if zh
        else f"[All {len(ENTRIES)} names](docs/catalogue{suffix})"
    )
    return "\n".join(lines) + f"\n\n{whole}{'。' if zh else '.'}"


def catalogue(described: list[dict[str, Any]], language: Language) -> str:
    zh = language == "zh"
    lines = [
        GENERATED,
        "# 编码目录\n" if zh else "# The catalogue\n",
        "[English](catalogue.md) · 中文\n" if zh else "English · [中文](catalogue.zh-CN.md)\n",
        f"参数量按 {SIZES_SHOWN} 计。\n" if zh else f"Parameters at {SIZES_SHOWN}.\n",
        f"共 {len(described)} 个名称。`posenc list --by year` 与 `--by needs` 以别的方式分组。"
        "文献中的方法逐一列在[方法一览](methods.zh-CN.md)。\n"
        if zh
        else f"{len(described)} names. `posenc list --by year` and `--by needs` group them otherwise.\n"
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
    zh, suffix = language == "zh", LANGUAGES[language]
    every = [method for _, rows in GROUPS.values() for method in rows]
    here = sum(entry_for(method) is not None for method in every)
    lines = [
        GENERATED.replace("the entries in src/posenc/encodings", "src/posenc/catalogue/methods.py"),
        "# 方法一览\n" if zh else "# Methods of the literature\n",
        "[English](methods.md) · 中文 · [目录](catalogue.zh-CN.md)\n"
        if zh
        else "English · [中文](methods.zh-CN.md) · [catalogue](catalogue.md)\n",
        f"共 {len(every)} 种方法，其中 {here} 种有条目。\n"
        if zh
        else f"{len(every)} methods, {here} of them with an entry.\n",
    ]
    for words, rows in GROUPS.values():
        lines += [
            f"\n## {words.in_language(language)}\n",
            "| 方法 | 条目 | 来源 |" if zh else "| method | entry | source |",
            "|---|---|---|",
        ]
        for method in rows:
            entry = entry_for(method)
            found = f"[{entry.name}](encodings/{entry.name}{suffix})" if entry else ""
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
        title = f"[{row['name']}](encodings/{row['name']}{LANGUAGES[language]})" + (
            f"<br>{row['title']['zh']}" if zh else ""
        )
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


def _replaces_products(name: str) -> bool:
    return isinstance(create(name, d_model=64, n_heads=4).structure(), (Regions, Blocks))


def main() -> int:
    made = pages()
    if "--check" in sys.argv[1:]:
        stale = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
        for path in stale:
            print(f"{path.relative_to(ROOT)}: not what the package would write; run make docs", file=sys.stderr)
        return 1 if stale else 0
    (HERE / "encodings").mkdir(exist_ok=True)
    (HERE / "pictures").mkdir(exist_ok=True)
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    alone = [name for name in drawable() if not (_replaces_products(name) or name in DIFFER_BY_HEAD)]
    for entry in ENTRIES:
        out = HERE / "pictures" / f"{entry.name}.png"
        if not out.exists() or "--all" in sys.argv[1:]:
            shown = picture_of(entry.name, views_of(entry.name)[0], Request())[0] if entry.name in alone else effect(entry)
            save(shown, out)
            with Image.open(out) as drawing:
                fewer = drawing.convert("RGB").quantize(COLOURS)
            fewer.save(out, optimize=True)
    print(f"wrote {len(made)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
