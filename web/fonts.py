"""Cuts the page's fonts to the letters that it needs: web/src/fonts/*.woff2 and characters.txt.

    npm install --no-save @fontsource-variable/newsreader @fontsource-variable/instrument-sans @fontsource/noto-serif-sc
    pip install fonttools brotli && python fonts.py

All three are under the SIL Open Font License 1.1. A test says which Chinese characters of the story are missing.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

HERE = Path(__file__).parent
MODULES = Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "node_modules")
FONTS = HERE / "src" / "fonts"
STORY = [*sorted((HERE / "src" / "story").glob("*.ts")), HERE.parent / "src" / "posenc" / "explorer" / "growth.json"]
LATIN = {*range(0x20, 0x7F), *range(0xA0, 0x100), *map(ord, "–—‘’“”…←→−×·√Σωθλ")}
VARIABLE = {  # file: axes that stay, from and to, or at one value
    "newsreader": ("newsreader-latin-opsz-normal", {"opsz": 28, "wght": (400, 600)}),
    "instrument-sans": ("instrument-sans-latin-wght-normal", {"wght": (400, 700)}),
}


def cut(font: TTFont, letters: set[int], name: str) -> None:
    options = subset.Options(flavor="woff2", layout_features=["kern", "liga", "lnum", "tnum"], hinting=False)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=letters)
    cutter.subset(font)
    font.flavor = "woff2"
    font.save(FONTS / f"{name}.woff2")
    print(name, (FONTS / f"{name}.woff2").stat().st_size)


def main() -> None:
    FONTS.mkdir(exist_ok=True)
    for name, (file, axes) in VARIABLE.items():
        font = TTFont(recalcTimestamp=False, file=MODULES / "@fontsource-variable" / name / "files" / f"{file}.woff2")
        cut(instancer.instantiateVariableFont(font, axes), LATIN, name)
    text = "".join(path.read_text("utf-8") for path in STORY)
    characters = "".join(sorted(set(re.findall("[\u3001-\u9fff\uff01-\uff5e]", text))))
    file = MODULES / "@fontsource" / "noto-serif-sc" / "files" / "noto-serif-sc-chinese-simplified-500-normal.woff2"
    cut(TTFont(file, recalcTimestamp=False), {ord(one) for one in characters}, "noto-serif-sc")
    (FONTS / "characters.txt").write_text(characters + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
