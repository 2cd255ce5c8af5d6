"""The words of the page: one term for one thing in both languages, in web/src and in the Python of the explorer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

ROOT = Path(__file__).parents[2]
TYPESCRIPT = re.compile(r'"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`')
CHINESE = re.compile("[\u4e00-\u9fff]")


def texts() -> Iterator[tuple[str, str]]:
    """Every string of the sources with its file, comments and class names among them left out where they have no space."""
    for path in sorted((ROOT / "web/src").rglob("*.ts")):
        for literal in TYPESCRIPT.findall(re.sub(r"^\s*(//|/?\*).*$", "", path.read_text("utf-8"), flags=re.MULTILINE)):
            yield path.name, literal[1:-1]
    for path in sorted((ROOT / "src/posenc/explorer").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path.name, node.value
    with (ROOT / "src/posenc/explorer/zh.po").open("rb") as file:
        for entry in read_po(file):
            yield "zh.po", str(entry.string)


TEXTS = list(texts())


def wrong(text: str) -> list[str]:
    """What a Chinese text says with another word than the page's."""
    faults = []
    if "得分" in text:
        faults.append("得分: the page says 分数")
    if re.search("(?<![取通])对数(?!值|刻度|轴|坐标|组)", text.replace("通道对数量", "")):
        faults.append("对数 is a logarithm; a number of pairs is 通道对数量")
    if re.fullmatch(r"(第)?\W*(\$\{[^}]*\})?\W*对[。：:]?\W*", text):
        faults.append("对 alone is no label: 通道对, or 正确")
    if re.search(r"第 ?(\d+|\$\{[^}]*\}) ?对|(\d|\}) ?对(?![称角应比于])", text):
        faults.append("a pair is 通道对 and its number, a count is …个通道对")
    return faults


@pytest.mark.parametrize(
    "bad", ["得分", "通道的对数", "对", " 对", "第 ${pair} 对", "对：", "${n} 对中有 3 个", "更少：9 对"]
)
def test_the_rules_find_what_they_forbid(bad):
    assert wrong(bad)


def test_chinese_texts_have_one_term_for_one_thing():
    chinese = [(name, text) for name, text in TEXTS if CHINESE.search(text)]
    assert len(chinese) > 400
    assert [(name, text, fault) for name, text in chinese for fault in wrong(text)] == []


def test_english_texts_are_plain():
    """`position` for where a token is; none of the words that a first reader had to guess at."""
    plain = re.compile(r"\b(touch\w*|customs|tastes?|met|(?<!in )places?)\b", re.IGNORECASE)
    sentences = [(name, re.sub(r"\$\{[^}]*\}", "", text)) for name, text in TEXTS if not CHINESE.search(text)]
    english = [(name, text) for name, text in sentences if re.search(r"[a-z] [a-z]", text)]
    assert len(english) > 400
    found = [(name, text) for name, text in english if plain.search(text)]
    assert found == []
