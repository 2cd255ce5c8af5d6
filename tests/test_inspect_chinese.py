"""posenc inspect --lang zh: every sentence of every report is Chinese, and says the same numbers as the English one."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from posenc.configs import ConfigError, read_config
from posenc.configs.family import reader_paths
from posenc.configs.report.report import report
from test_inspect_published import MODELS, whole

SRC = Path(__file__).parents[1] / "src" / "posenc"
FILES = sorted((SRC / "configs").rglob("*.py"))
CHINESE = re.compile(r"[\u3400-\u9fff]")
WORD = re.compile(r"[A-Za-z]{2,}")
KEYS = re.compile(r"[\w.]*_[\w.]*|\d+(\.\d+)?|·|/|\+|,|-|ln|yarn|longrope|factor|√")
CODE = ("values_from",)  # how frequencies are made, as an expression of Python
SAME = {"", "MLP", "LongRoPE", "YaRN"}  # names without a translation


def sentences(value: Any, name: str = "") -> list[str]:
    """Every text of a report that is more than a name, a key of the file or a formula of keys."""
    if isinstance(value, dict):
        return [one for key, inner in value.items() if key not in CODE for one in sentences(inner, key)]
    if isinstance(value, list):
        return [one for inner in value for one in sentences(inner, name)]
    if not isinstance(value, str) or len(WORD.findall(value)) < 2 or " " not in value:
        return []
    return [] if not KEYS.sub(" ", value).strip(" ()=1") else [value]


def read(model_type: str) -> dict[str, Any] | None:
    """The Chinese report of a file with a model type alone; None if its reader wants more."""
    try:
        return report(read_config({"model_type": model_type}), 10**6, "zh")
    except ConfigError:
        return None


def test_every_sentence_about_every_model_type_is_chinese():
    reports = {name: read(name) for name in reader_paths()}
    assert sum(found is not None for found in reports.values()) > 0.9 * len(reports)
    english = {name: [one for one in sentences(found or {}) if not CHINESE.search(one)] for name, found in reports.items()}
    assert {name: found for name, found in english.items() if found} == {}


def test_every_sentence_about_published_files_is_chinese():
    for model in MODELS:
        found = report(read_config(whole(model["config"])), 10**6, "zh")
        assert [one for one in sentences(found) if not CHINESE.search(one)] == [], model["name"]


def pairs(path: Path) -> list[tuple[int, ast.expr, ast.expr]]:
    """Every pair of an English and a Chinese sentence that a file writes, with its line."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            arguments = [one for one in node.args if not isinstance(one, ast.Starred)]
            if name in ("Words", "note", "warning", "error") and len(arguments) >= 2:
                en, zh = arguments[:2] if name == "Words" or path.name == "remarks.py" else arguments[-2:]
                if arguments == node.args and (name == "Words" or path.name == "remarks.py" or len(arguments) == 3):
                    found.append((node.lineno, en, zh))
    return found


def shown(sentence: ast.expr) -> tuple[str, set[str]]:
    """The literal text of a sentence, and the names that it prints."""
    text = "".join(one.value for one in ast.walk(sentence) if isinstance(one, ast.Constant) and isinstance(one.value, str))
    printed = [one.value for one in ast.walk(sentence) if isinstance(one, ast.FormattedValue)]
    return text, {name.id for one in printed for name in ast.walk(one) if isinstance(name, ast.Name)}


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(SRC)) for path in FILES])
def test_both_languages_are_written_where_a_sentence_is_raised(path):
    for line, en, zh in pairs(path):
        (english, printed), (chinese, also) = shown(en), shown(zh)
        assert CHINESE.search(chinese) or english in SAME or not WORD.search(english), f"{path.name}:{line}: {english}"
        assert printed == also, f"{path.name}:{line}: {english} prints {printed}, {chinese} prints {also}"
        assert not CHINESE.search(english), f"{path.name}:{line}: {english}"


def test_the_pairs_are_found():
    """The test above reads the sentences that it should."""
    assert sum(len(pairs(path)) for path in FILES) > 600
