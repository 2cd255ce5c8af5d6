"""What was measured of each encoding: bits at 1, 2 and 8 times the trained length, what it costs, its parameters.

Bits and parameters are those of the shipped study (`measured`), costs those of `posenc.choose.costs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

from posenc.bilingual import LANGUAGES
from posenc.catalogue import BY_NAME
from posenc.choose import costs
from posenc.choose.costs import Memory
from posenc.explorer import measured

TASK = "language_model"
FACTORS = (1, 2, 8)


def table(chosen: Iterable[str]) -> dict[str, Any]:
    """Rows of the study's encodings, and of those that are chosen and not in the study; the chosen ones are marked."""
    study, task = measured.digest(), measured.task(TASK)
    arms = {arm["name"]: arm for arm in task["arms"]}
    chosen = list(chosen)
    names = [*arms, *(name for name in chosen if name not in arms)]
    return {
        "rows": [
            _row(name, arms.get(name), task, study["parameters"].get(name)) | {"chosen": name in chosen} for name in names
        ],
        "factors": FACTORS,
        "length": task["length"],
        "steps": task["steps"],
        "docs": documentation(),
        "costs": {**costs.conditions()["sizes"], "cpu": costs.conditions()["machine"]["cpu"]},
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
    cost = costs.measured().get(name)
    memory = cost.memory if cost else None
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
        "memory": memory.bytes if isinstance(memory, Memory) else None,
        **{measure: cost.median(measure) if cost else None for measure in ("prefill", "decode", "training")},
    }
