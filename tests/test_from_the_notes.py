"""The page for readers who come from the notes: every block runs and prints what the page says, in both languages."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest
import torch

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {"en": DOCS / "from-the-notes.md", "zh": DOCS / "from-the-notes.zh-CN.md"}
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Every function, class and formula of the notes, and the methods that they name in Chinese.
FROM_THE_NOTES = (
    "`positional_encoding(seq_len, d_model)`",
    "`sinusoidal_position_encoding(seq_len, d_model)`",
    "`positionalEncoding(position, dModel)`",
    "`LearnablePositionalEncoding(max_len, d_model)(x)`",
    "`RotaryPositionalEmbedding(dim, max_seq_len, base)(q, k, seq_len)`",
    "`PE · M_k`",
    "我 喜欢 猫",
    "FLOATER",
    "正弦位置编码",
    "可学习位置编码",
    "相对位置编码",
    "旋转位置编码",
    "6.6e-6",
    "4.7e-4",
    "posenc claims",
    "posenc walk",
)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of every fenced block."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


def executed(page: Path) -> tuple[dict, list[tuple[str, str]]]:
    """Runs every python block in one namespace; what each printed, beside what the page says."""
    namespace: dict = {"__name__": "page"}
    found, results = blocks(page), []
    for number, (language, text) in enumerate(found):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, f"{page.name} block {number}", "exec"), namespace)
        follows = found[number + 1] if number + 1 < len(found) else ("", "")
        results.append((printed.getvalue(), follows[1] if follows[0] == "output" else ""))
    return namespace, results


@pytest.fixture(scope="module", params=PAGES)
def page(request):
    return executed(PAGES[request.param])


def test_every_block_prints_what_the_page_says(page):
    _, results = page
    assert len(results) >= 14
    for printed, said in results:
        assert printed == said


def test_the_two_codes_of_the_notes_differ_as_the_page_says(page):
    """6.6e-6 at [100, 512], 4.7e-4 at 8192 rows; another processor's exp may move the last digit."""
    namespace, _ = page
    for length, low, high in ((100, 5e-6, 9e-6), (8192, 4e-4, 6e-4)):
        one, other = namespace["positional_encoding"](length, 512), namespace["sinusoidal_position_encoding"](length, 512)
        assert low < float(np.abs(one.numpy() - other).max()) < high


def test_the_differences_printed_are_measured(page):
    """The page's own yardstick: the next power of ten, at least 1e-12."""
    namespace, _ = page
    difference = namespace["difference"]
    for apart, said in (
        (6.6e-6, "below 1e-05"),
        (0.99, "below 1e+00"),
        (3.0, "below 1e+01"),
        (9.99e-4, "below 1e-03"),
        (0.0, "below 1e-12"),
        (2e-12, "below 1e-11"),
    ):
        assert difference(torch.zeros(3, dtype=torch.float64), [0, -apart, 0]) == said


def test_both_languages_hold_the_same_blocks():
    assert blocks(PAGES["en"]) == blocks(PAGES["zh"])


def test_no_output_stands_without_its_code():
    found = blocks(PAGES["en"])
    assert all(found[number - 1][0] == "python" for number, (language, _) in enumerate(found) if language == "output")
    assert {language for language, _ in found} == {"python", "output", "sh"}


@pytest.mark.parametrize("language", PAGES)
def test_every_function_of_the_notes_has_its_place(language):
    text = PAGES[language].read_text(encoding="utf-8")
    assert [name for name in FROM_THE_NOTES if name not in text] == []
    assert text.startswith({"en": "# From the notes to posenc\n", "zh": "# 从笔记到 posenc\n"}[language])
    assert PAGES[{"en": "zh", "zh": "en"}[language]].name in text


def test_the_pages_have_the_same_shape():
    """Headings, table rows and paragraphs pair up, so that neither page says less."""
    shapes = []
    for path in PAGES.values():
        prose = FENCE.sub("", path.read_text(encoding="utf-8"))
        lines = prose.splitlines()
        shapes.append(
            (
                sum(line.startswith("#") for line in lines),
                sum(line.startswith("|") for line in lines),
                len([part for part in re.split(r"\n\s*\n", prose) if part.strip()]),
            )
        )
    assert shapes[0] == shapes[1]
