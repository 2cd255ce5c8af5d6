"""From trials to rows: what was learnt, what it is worth beyond the trained length, and what has no number and why.

learnt   bits at the trained length within 0.6 of the best arm and below those of a table of byte pairs, mean over seeds
rise     bits at a length minus bits at the trained length, on the same target bytes
keeps    the longest length, in trained lengths, up to which no rise exceeds 0.05
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from posenc.lab.experiment.arm import Arm
from posenc.lab.experiment.recipe import Recipe

GATE = 0.6  # Transformer-XL leads by so much that 0.4 would leave arms unjudged that plainly read their context
FLAT = 0.05
BREAKS = 0.5  # per byte: its perplexity is 1.41 times what it was
CHANCE = 8.0  # bits per byte of a uniform guess
NOT_LEARNT = "not learnt at this budget"
FORMAT = 1


def results(
    *,
    request: Mapping[str, Any],
    text: Mapping[str, Any],
    pairs: float,
    recipe: Recipe,
    steps: int,
    exact: Mapping[str, Any],
    order_without: Mapping[str, float],
    cost: Mapping[str, Any],
    trials: Mapping[str, Any],
    failures: Mapping[str, str],
    machine: Mapping[str, Any],
    version: str,
) -> dict[str, Any]:
    """What results.json holds; everything that is shown anywhere is read from it."""
    seeds = list(request["seeds"])
    rows = [
        _row(
            Arm.parse(name),
            recipe,
            seeds,
            exact.get(name),
            cost["ratios"].get(name),
            [trials.get(f"{name} {seed}") for seed in seeds],
            failures.get(name),
        )
        for name in request["encodings"]
    ]
    return {
        "format": FORMAT,
        "posenc": version,
        "code": request["code"],
        "machine": dict(machine),
        "text": dict(text),
        "command": reproduce(request, steps),
        "settings": {name: request[name] for name in ("encodings", "budget", "steps", "seeds")},
        "recipe": told(recipe),
        "steps": steps,
        "bytes_per_arm": steps * recipe.training.rows * recipe.task.length,
        "chance": CHANCE,
        "byte_pairs": pairs,
        "order_without": dict(order_without),
        "cost": {name: cost[name] for name in ("rounds", "sizes", "nope_seconds")},
        "gate": gate(rows, recipe, pairs),
        "rows": rows,
    }


def told(recipe: Recipe) -> dict[str, Any]:
    task, training = recipe.task, recipe.training.model_dump(mode="json", exclude={"steps"})
    return {
        "length": task.length,
        "multiples": [length // task.length for length in task.lengths],
        "lengths": list(task.lengths),
        "targets": task.targets,
        "windows": task.held_out,
        "batch": training.pop("rows"),
        **training,
        "shape": recipe.size.model_dump(),
    }


def reproduce(request: Mapping[str, Any], steps: int) -> str:
    """The command that trains the same models anywhere: the steps, not the time they took here."""
    from posenc.lab.experiment.arm import DEFAULT

    chosen = "" if request["encodings"] == list(DEFAULT) else f" --encodings {','.join(request['encodings'])}"
    return f"posenc compare{chosen} --steps {steps} --seed {request['seeds'][0]}"


def _row(
    arm: Arm, recipe: Recipe, seeds: list[int], exact: Any, cost: Any, trials: list[Any], failure: str | None
) -> dict[str, Any]:
    """One arm. `bits` has an entry for every length: {"mean", "seeds"} or {"state"}."""
    tried = [{"seed": seed, **_tried(trial, failure)} for seed, trial in zip(seeds, trials, strict=True)]
    return {
        "name": str(arm),
        "encoding": arm.encoding,
        "randomized": arm.randomized,
        "exact": exact,
        "cost": cost,
        "trials": tried,
        "bits": {str(length): _cell(str(length), tried) for length in recipe.task.lengths},
    }


def _tried(trial: Any, failure: str | None) -> dict[str, Any]:
    """What a trial came to; `state` where it came to nothing."""
    if failure is not None or trial is None:
        return {"state": failure or "failed: not run"}
    if "state" in trial:
        return dict(trial)
    result = {**trial["result"], "seconds": trial["seconds"]}
    if (why := result.pop("failed")) is not None:
        result["state"] = f"failed: {why}"
    return result


def _cell(length: str, tried: list[dict[str, Any]]) -> dict[str, Any]:
    if stopped := [trial["state"] for trial in tried if "state" in trial]:
        return {"state": stopped[0]}
    values = [trial["bits"][length] for trial in tried]
    if None in values:
        return {"state": f"cannot: {tried[values.index(None)]['cannot']}"}
    return {"mean": sum(values) / len(values), "seeds": values}


def gate(rows: list[dict[str, Any]], recipe: Recipe, pairs: float) -> dict[str, Any]:
    """Passes every row through the gate, in place, and says what the gate was.

    Where even the best arm knows no more than byte pairs, none has learnt to read a context, and flat would mean nothing.
    """
    first = str(recipe.task.length)
    at_home = {row["name"]: row["bits"][first]["mean"] for row in rows if "mean" in row["bits"][first]}
    best = min(at_home, key=lambda name: at_home[name], default=None)
    limit = None if best is None else min(at_home[best] + GATE, pairs)
    for row in rows:
        row["learnt"] = limit is not None and row["name"] in at_home and at_home[row["name"]] <= limit
        row["rise"], row["keeps"], row["behaviour"] = {}, None, None
        if row["learnt"]:
            _beyond(row, recipe)
        else:
            for length in map(str, recipe.task.lengths[1:]):
                if "mean" in row["bits"][length]:
                    row["bits"][length] = {"state": NOT_LEARNT}
    return {"margin": GATE, "best": best, "limit": limit, "flat": FLAT, "breaks": BREAKS}


def _beyond(row: dict[str, Any], recipe: Recipe) -> None:
    """Rises by seed pair, so that what the seeds share cancels."""
    lengths, home = recipe.task.lengths, row["bits"][str(recipe.task.length)]["seeds"]
    for length in map(str, lengths):
        if "mean" in (cell := row["bits"][length]):
            row["rise"][length] = sum(far - near for far, near in zip(cell["seeds"], home, strict=True)) / len(home)
    kept = list(itertools.takewhile(lambda n: row["rise"].get(str(n), FLAT + 1) <= FLAT, lengths))
    row["keeps"] = {"factor": kept[-1] // recipe.task.length, "at_least": kept[-1] == lengths[-1]}
    row["behaviour"] = behaviour(row["rise"].get(str(lengths[-1])))


def behaviour(rise: float | None) -> str | None:
    """flat, fades or breaks, by how many bits are lost."""
    if rise is None:
        return None
    return "flat" if rise <= FLAT else "breaks" if rise >= BREAKS else "fades"


def failed(done: Mapping[str, Any]) -> dict[str, str]:
    """The rows that came to nothing at the trained length, and why."""
    first = str(done["recipe"]["length"])
    states = {row["name"]: row["bits"][first].get("state", "") for row in done["rows"]}
    return {name: state for name, state in states.items() if state.startswith("failed")}
