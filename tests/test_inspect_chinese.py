"""posenc inspect --lang zh: every sentence of every report goes through the catalogue of translations."""

from __future__ import annotations

import functools
import re
from typing import Any

import pytest

from posenc.configs import ConfigError, read_config
from posenc.configs.family import reader_paths
from posenc.configs.report.extension import extend, extensible
from posenc.configs.report.labels import SCALINGS
from posenc.configs.report.names import kind
from posenc.configs.report.report import report
from sampling import first_only
from test_inspect_published import MODELS, whole

CHINESE = re.compile(r"[\u3400-\u9fff]")
WORD = re.compile(r"[A-Za-z]{2,}")
KEYS = re.compile(r"[\w.]*_[\w.]*|\d+(\.\d+)?|·|/|\+|,|-|ln|yarn|longrope|factor|√")
REFUSED = "译not for this family: "
CODE = ("values_from", "code")  # expressions and lines of Python

pytestmark = pytest.mark.usefixtures("marked_as_chinese")


def sentences(value: Any, name: str = "") -> list[str]:
    """Every text of a report that is more than a name, a key of the file or a formula of keys."""
    if isinstance(value, dict):
        return [one for key, inner in value.items() if key not in CODE for one in sentences(inner, key)]
    if isinstance(value, list):
        return [one for inner in value for one in sentences(inner, name)]
    if not isinstance(value, str) or len(WORD.findall(value)) < 2 or " " not in value:
        return []
    return [] if not KEYS.sub(" ", value).strip(" ()=1") else [value]


@functools.cache
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


def reasons(config: dict[str, Any]) -> list[str]:
    """Why methods do not suit a model, in Chinese; [] where no method is tried."""
    spec = read_config(config, defaults=True)
    try:
        path, part = extensible(spec)
        made = extend(config, part, 8 * (part.trained_length or 1), path=path)
    except ValueError:
        return []
    return [note.partition(REFUSED)[2] for one in made if REFUSED in (note := one.note.zh)]


@pytest.mark.parametrize("part", first_only([(8,), (1,)]))
def test_every_reason_against_a_method_is_chinese(part):
    files = [whole(model["config"]) for model in MODELS[::part]]
    files += [{"model_type": name} for name in [*reader_paths()][::part] if read(name)]
    given = {why for config in files for why in reasons(config)}
    assert len(given) > 10 / part
    assert [why for why in given if not CHINESE.search(why)] == []


def test_names_of_scalings_and_layers_are_chinese():
    assert all(CHINESE.search(words.zh) for words in SCALINGS.values())
    files = [whole(model["config"]) for model in MODELS] + [{"model_type": name} for name in reader_paths() if read(name)]
    kinds = {layer.kind for config in files for _, part in read_config(config).walk() for layer in part.layers}
    assert len(kinds) > 20
    assert [one for one in kinds if one != "mlp" and not CHINESE.search(kind(one).zh)] == []
