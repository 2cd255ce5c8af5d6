"""What was measured of each encoding: bits at 1, 2 and 8 times the trained length, gain beyond it, cost, parameters.

Bits and parameters are those of the shipped study on text (`measured`). What context beyond the trained length gains is
that of random Markov chains, on the same symbols, as a share of what the optimum gains. Costs are those that
`posenc.pictures.costs` wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from posenc.catalogue import measured
from posenc.catalogue.choose import costs
from posenc.catalogue.lookup import BY_NAME

TASK = "language_model"
FACTORS = (1, 2, 8)
FAR = "chains"


def table(chosen: Iterable[str]) -> dict[str, Any]:
    """Rows of the study's encodings, and of those that are chosen and not in the study; the chosen ones are marked."""
    study, task, far = measured.experiment(TASK), measured.task(TASK), measured.gained(FAR)
    chains = measured.task(FAR)
    arms = {arm["name"]: arm for arm in task["arms"]}
    chosen = list(chosen)
    names = [*arms, *(name for name in chosen if name not in arms)]
    return {
        "rows": [
            _row(name, arms.get(name), task, study["parameters"].get(name))
            | {"far": far.get(name, {}).get("share"), "interval": far.get(name, {}).get("share_interval")}
            | {"chosen": name in chosen}
            for name in names
        ],
        "factors": FACTORS,
        "length": task["length"],
        "steps": task["steps"],
        "costs": conditions(),
        "chains": [chains["length"], chains["lengths"][-1], _seeds(chains)],
        "experiment": study["name"],
        **{name: study[name] for name in ("date", "size", "command")},
    }


def cost_of(name: str) -> dict[str, Any]:
    """What `posenc.pictures.costs` measured of an encoding, by measure; empty for one that it did not."""
    entry: dict[str, Any] = _costs()["entries"].get(name, {})
    return entry


def conditions() -> dict[str, Any]:
    """Sizes and processor of the measured costs."""
    file = _costs()["conditions"]
    return {**file["sizes"], "cpu": file["machine"]["cpu"]}


def _row(name: str, arm: dict[str, Any] | None, task: dict[str, Any], parameters: int | None) -> dict[str, Any]:
    cells = dict(zip(task["lengths"], arm["cells"], strict=True)) if arm else {}
    at = [cells.get(factor * task["length"], {}) for factor in FACTORS]
    cost = cost_of(name)
    return {
        "name": name,
        "title": arm["title"] if arm else BY_NAME[name].page.title.as_dict(),
        # rope+randomized: an encoding, and a way to number tokens. What was RoPE and then dropped has a page of its own.
        "pages": ["drope"] if name == "rope+dropped" else name.split("+"),
        "learnt": arm["learnt"] if arm else None,
        "converged": arm["converged"] if arm else None,
        "bits": [cell.get("mean") for cell in at],
        "why": [cell.get("why") for cell in at],
        "factor": arm["factor"] if arm else None,
        "parameters": parameters,
        "memory": cost.get("memory", {}).get("bytes"),
        **{measure: cost.get(measure, {}).get("median") for measure in ("prefill", "decode", "training")},
    }


def _seeds(task: dict[str, Any]) -> int:
    """The most seeds that an encoding has."""
    return max(len(cell["seeds"]) for arm in task["arms"] for cell in arm["cells"] if "seeds" in cell)


@cache
def _costs() -> dict[str, Any]:
    file: dict[str, Any] = json.loads(costs.FILE.read_text("utf-8"))
    return file
