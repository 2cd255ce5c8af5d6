"""docs/transformers.md: its examples run offline and print what the page says, and the twin holds the same code."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_page_runs_as_printed_in_both_languages(capsys):
    namespace = {}
    for code in blocks("transformers.md", "python"):
        exec(compile(code, "transformers.md", "exec"), namespace)
    assert capsys.readouterr().out == "".join(blocks("transformers.md", "output"))
    for language in ("python", "py", "output"):
        assert blocks("transformers.md", language) == blocks("transformers.zh-CN.md", language)
