"""The findings of one task: the gate, every encoding, and the recorded attention.

cells of every encoding ─► trained length learnt? ─no─► "not learnt at this budget", with all its numbers
                                  │ yes
                                  ▼
                  rise, length factor, area, behaviour; rank if the training had converged
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from posenc.lab import tasks
from posenc.lab.experiment.change import Change, Then
from posenc.lab.findings import arm_cells, beyond, criteria, statistics
from posenc.lab.findings.arm_cells import TaskResults
from posenc.lab.findings.comparing import behind
from posenc.lab.findings.criteria import MISSING, NOT_LEARNT
from posenc.lab.findings.depth import by_depth
from posenc.lab.findings.extrapolation import extrapolate
from posenc.lab.findings.queries import Json
from posenc.lab.findings.retrieved import retrieved
from posenc.lab.records.record import LAST_WINDOW
from posenc.lab.tasks.chains import Chains
from posenc.lab.trial.scoring import NO_NUMBER


def task_findings(of: TaskResults) -> dict[str, Any]:
    arms, any_trial = [arm_cells.arm(of, word) for word in of.words], of.any_trial()
    baseline = any_trial.get("baseline")
    gate = _pass_gate(of, arms, baseline)
    rank_seeds = extrapolate(of, [arm for arm in arms if arm["learnt"]])
    rope = next((arm for arm in arms if arm["name"] == "rope"), None)
    predictors = beyond.known(of)
    for arm in arms:
        arm["gained"] = beyond.gained(of, arm["name"], predictors)
    after = [] if rope is None else _after_training(of, rope, predictors)
    return {
        "name": of.name,
        "title": of.task.title.as_dict(),
        "unit": of.task.unit.as_dict(),
        "measure": of.measure,
        "causal": of.task.causal,
        "length": of.length,
        "lengths": of.lengths,
        "tokens": of.tokens,
        "chance": any_trial.get("chance", {}),
        "baseline": baseline,
        "floor": _floor(of),
        "controls": beyond.controls(of, predictors),
        "shortcuts": _shortcuts(of),
        "against": LAST_WINDOW if any(arm["last_window"] for arm in arms) else "trained length",
        "training": of.plan["training"],
        "learning_rates": list(of.plan["learning_rates"]),
        "settings": of.plan.get("settings", {}),
        "scored": {"rows": of.plan["task"].get("held_out"), "targets": of.plan["task"].get("targets")},
        "own_scales": {word: sum(map(len, scales.values())) for word, scales in of.plan.get("own_scales", {}).items()},
        "joint_scales": {word: sum(map(len, scales.values())) for word, scales in of.plan.get("joint_scales", {}).items()},
        "trained_tokens": any_trial.get("trained_tokens"),
        "gate": {"rule": gate.rule.as_dict(), "best": gate.best, "limit": gate.limit},
        "detectable": _detectable(of, arms),
        "rank_seeds": rank_seeds,
        "arms": arms,
        "after": after,
        "attention": of.results.attention[of.name],
        "similarity": _similarity(of),
        "links": of.results.links[of.name],
        **({} if (depth := by_depth(of)) is None else {"by_depth": depth}),
        **({} if (found := retrieved(of)) is None else {"retrieved": found}),
    }


def _pass_gate(of: TaskResults, arms: list[Json], baseline: float | None) -> criteria.Gate:
    """Marks the arms that learnt the trained length, and adds the reason to the others."""
    means = {arm["name"]: arm["cells"][str(of.length)]["mean"] for arm in arms if arm["state"] is None}
    home = {name: mean for name, mean in means.items() if mean is not None}
    gate = criteria.gate(of.measure, home, baseline, of.task.sees)
    for arm in arms:
        arm["learnt"] = gate.passes(home.get(arm["name"]))
        if not arm["learnt"]:
            arm["state"] = arm["state"] or (NOT_LEARNT if arm["name"] in home else MISSING)
    return gate


def _after_training(of: TaskResults, rope: Json, predictors: beyond.Known | None) -> list[Json]:
    """RoPE's cells for each change of its frequencies after training, the unchanged first."""
    changes = sorted({row["change"] for row in of.results.cells[of.name] if row["encoding"] == "rope"})
    if changes in ([], [""]):
        return []
    rows = [{"change": "", **{name: rope[name] for name in ("cells", "last_window", "gained")}}]
    for change in (*of.plan["after"], *(Then(**then).word for then in of.plan.get("then", ()))):
        follows = Change.parse(change).follows_length
        cells = arm_cells.cells(of, "rope", change=change)
        for length, cell in cells.items():
            if follows and int(length) <= of.length:  # the factor is 1: nothing was changed
                cells[length] = rope["cells"][length]
            elif cell["state"] == MISSING and rope["cells"][length]["mean"] is not None:
                cells[length] = {**cell, "state": f"failed: {NO_NUMBER}"}
        window = arm_cells.last_window(of, "rope", change) or (rope["last_window"] if follows else None)
        rows.append(
            {
                "change": change,
                "cells": cells,
                "last_window": window,
                "gained": {} if window is None else beyond.gained(of, "rope", predictors, change),
            }
        )
    return rows


def _detectable(of: TaskResults, arms: list[Json]) -> list[Json]:
    """The smallest difference at the trained length that could have been shown between two encodings.

    Apart for pairs with different numbers of seeds in common, the most seeds first. Encodings that still improved differ
    more between seeds and are left out, unless all did. None where all seeds are equal.
    """
    learnt = [arm for arm in arms if arm["learnt"]]
    finished = [arm for arm in learnt if arm["converged"] is not False]
    cells = [arm["cells"][str(of.length)] for arm in (finished if len(finished) > 1 else learnt)]
    pairs = dict[int, list[statistics.Paired]]()
    for ours, theirs in combinations(cells, 2):
        by = behind({"measure": of.measure}, ours, theirs)
        pairs.setdefault(len(by.seeds), []).append(by)
    least_by_seeds = {seeds: statistics.detectable(pairs[seeds]) for seeds in sorted(pairs, reverse=True)}
    return [{"seeds": seeds, "least": least} for seeds, least in least_by_seeds.items() if least]


def _floor(of: TaskResults) -> Json | None:
    """What the best prediction reaches, by length and by position, and what counts of k symbols reach, by k. In the last
    window, which ends with each of the same symbols, it is that of `controls`.
    """
    if not issubclass(of.task, Chains):
        return None
    task = of.task(**of.plan["task"])
    grams = {length: task.grams(length) for length in of.lengths}
    return {
        "lengths": {str(length): task.floor(length) for length in of.lengths},
        "by_position": {
            "length": of.lengths[-1],
            "position": list(range(of.lengths[-1])),
            "bits": task.floor_by_position(),
        },
        "grams": {str(k): {str(length): grams[length][k] for length in of.lengths} for k in grams[of.length]},
    }


def _shortcuts(of: TaskResults) -> Json | None:
    """What answers get that need no position, from the trained length on: in order, and in any order."""
    task = tasks.read(of.plan["task"])
    found: Json = {}
    for length in of.from_trained:
        if (shares := task.shortcuts(length)) is None:
            return None
        found[str(length)] = {name: list(share) for name, share in shares.items()}
    return found


def _similarity(of: TaskResults) -> Json | None:
    """Cosines between the rows of a learned table, by step."""
    rows = of.results.similarity[of.name]
    if not rows:
        return None
    arm = rows[0]["encoding"]
    steps = sorted({row["step"] for row in rows if row["encoding"] == arm})
    matrices = [[row["line"] for row in rows if (row["encoding"], row["step"]) == (arm, step)] for step in steps]
    return {"arm": arm, "steps": steps, "matrices": matrices}
