"""What was measured of each encoding: bits at 1, 2 and 8 times the trained length, what it costs, its parameters.

Bits and parameters are those of the shipped study (`measured`), costs those that `posenc.benchmarks.costs` wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

from posenc.benchmarks import costs
from posenc.bilingual import LANGUAGES
from posenc.catalogue import BY_NAME
from posenc.explorer import measured

TASK = "language_model"
FACTORS = (1, 2, 8)


def table(chosen: Iterable[str]) -> dict[str, Any]:
    """Rows of the study's encodings, and of those that are chosen and not in the study; the chosen ones are marked."""
    study, task = measured.digest(), measured.task(TASK)
    arms = {arm["name"]: arm for arm in task["arms"]}
    chosen = list(chosen)
    conditions = _costs()["conditions"]
    names = [*arms, *(name for name in chosen if name not in arms)]
    return {
        "rows": [
            _row(name, arms.get(name), task, study["parameters"].get(name)) | {"chosen": name in chosen} for name in names
        ],
        "factors": FACTORS,
        "length": task["length"],
        "steps": task["steps"],
        "docs": documentation(),
        "costs": {**conditions["sizes"], "cpu": conditions["machine"]["cpu"]},
        **{name: study[name] for name in ("experiment", "date", "size", "seeds", "command")},
    }


def documentation() -> str | None:
    """Where the documentation of the installed posenc is published; None if its metadata do not say."""
    try:
        links = metadata("posenc").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    named = dict(link.split(", ", 1) for link in links)
    return named.get("Documentation", "").rstrip("/") or None


def _row(name: str, arm: dict[str, Any] | None, task: dict[str, Any], parameters: int | None) -> dict[str, Any]:
    cells = dict(zip(task["lengths"], arm["cells"], strict=True)) if arm else {}
    at = [cells.get(factor * task["length"], {}) for factor in FACTORS]
    cost = _costs()["entries"].get(name, {})
    return {
        "name": name,
        "title": arm["title"] if arm else BY_NAME[name].title._asdict(),
        "page": {language: f"encodings/{name}{'' if language == 'en' else '.zh-CN'}.md" for language in LANGUAGES}
        if name in BY_NAME
        else None,
        "learnt": arm["learnt"] if arm else None,
        "converged": arm["converged"] if arm else None,
        "bits": [cell.get("mean") for cell in at],
        "why": [cell.get("why") for cell in at],
        "factor": arm["factor"] if arm else None,
        "parameters": parameters,
        "memory": cost.get("memory", {}).get("bytes"),
        **{measure: cost.get(measure, {}).get("median") for measure in ("prefill", "decode", "training")},
    }


@cache
def _costs() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(costs.FILE.read_text("utf-8"))
    return found
