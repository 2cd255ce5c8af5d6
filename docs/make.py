"""Writes what pages of the repository take from the package: tables in English and Chinese, and a picture of each entry.

python docs/make.py              tables, the drawing of envelopes, and pictures that are missing
python docs/make.py --all        all pictures, too
python docs/make.py --check      exit 1 if a table is not what the package would write (pictures are not compared)
"""

from __future__ import annotations

import sys
from pathlib import Path

from diffusion_table import diffusion_table
from envelopes import picture
from gained_table import chains_table, results_table
from laws_table import laws_table
from PIL import Image
from rows_table import rows_table
from scores_table import scores_table
from servers_table import servers_table
from which_backend import table

import posenc
from posenc.catalogue.entry import KINDS, Entry
from posenc.catalogue.lookup import ENTRIES, FOUNDATION, create, setting_of
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
    made = {}
    for language, suffix in LANGUAGES.items():
        made[HERE / f"backends{suffix}"] = with_table(HERE / f"backends{suffix}", table(language))
        made[HERE / f"images{suffix}"] = with_table(HERE / f"images{suffix}", diffusion_table(language))
        recipes = HERE / f"recipes{suffix}"
        made[recipes] = with_table(recipes, scores_table(language))
        notes = HERE / f"from-the-notes{suffix}"
        made[notes] = with_table(notes, rows_table(language))
        measured = HERE / f"results{suffix}"
        made[measured] = with_table(measured, results_table(language))
        chains = ROOT / "results" / "chains" / f"README{suffix}"
        made[chains] = with_table(chains, chains_table(language))
        made[HERE / f"check{suffix}"] = with_table(HERE / f"check{suffix}", laws_table(language))
        made[HERE / f"servers{suffix}"] = with_table(HERE / f"servers{suffix}", servers_table(language))
        made[ROOT / f"README{suffix}"] = with_table(ROOT / f"README{suffix}", summary(language))
        made[HERE / "pictures" / f"envelopes{suffix.replace('.md', '.svg')}"] = picture(language)
    return made


def with_table(path: Path, written: str) -> str:
    """A page of prose, with what lies between its two marks written anew."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n{written}\n{END}{rest.split(END)[1]}"


def summary(language: Language) -> str:
    """The README's table: how many there are of each kind, and the best known of them."""
    zh = language == "zh"
    lines = ["| 位置如何进入 | 数量 | 例如 |" if zh else "| how position enters | names | such as |", "|---|--:|---|"]
    for kind, words in KINDS.items():
        alike = [entry for entry in ENTRIES if entry.kind == kind]
        known = [entry for entry in alike if entry.name in FOUNDATION] or alike[:3]
        links = [f"[{entry.title}]({edited(entry, language)})" for entry in known]
        lines.append(f"| {words.in_language(language)} | {len(alike)} | {('、' if zh else ', ').join(links)} |")
    settings = sum(setting_of(entry) is not None for entry in ENTRIES)
    methods = len(ENTRIES) - settings
    whole = (
        f"`posenc list --all` 列出全部 {len(ENTRIES)} 个名称：{methods} 种方法，{settings} 种是某方法的设定。"
        if zh
        else f"`posenc list --all` prints all {len(ENTRIES)} names: {methods} methods and {settings} settings of one."
    )
    return "\n".join(lines) + f"\n\n{whole}"


def edited(entry: Entry, language: Language) -> str:
    """The page of an entry where it is edited; the English one where it is not translated."""
    twin = entry.page_file.with_suffix(".zh.md")
    file = twin if language == "zh" and twin.exists() else entry.page_file
    return file.relative_to(ROOT).as_posix()


def _replaces_products(name: str) -> bool:
    return isinstance(create(name, d_model=64, n_heads=4).structure(), (Regions, Blocks))


def main() -> int:
    found, source = Path(posenc.__file__).resolve().parent, ROOT.resolve() / "src" / "posenc"
    if found != source:
        print(
            f"make: this writes the pages of {source}, and `import posenc` finds {found}; use that copy's Python, or "
            f"PYTHONPATH={source.parent}",
            file=sys.stderr,
        )
        return 1
    made = pages()
    if "--check" in sys.argv[1:]:
        stale = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
        for path in stale:
            print(f"{path.relative_to(ROOT)}: not what the package would write; run make docs", file=sys.stderr)
        return 1 if stale else 0
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
