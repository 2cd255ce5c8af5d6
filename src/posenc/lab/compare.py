"""The whole comparison: measure, choose the number of steps, train what is missing, write the results.

    text ─► exact properties ─► cost ─► steps for the budget ─► trials on all cores ─► results.json, index.html, summary.png

Every finished part is kept in the folder; run again with the same settings, only what is missing is done.
"""

from __future__ import annotations

import functools
import itertools
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import posenc
from posenc import catalogue
from posenc.encoding import PositionalEncoding
from posenc.lab import store
from posenc.lab.compare_trial import calibrate, trial
from posenc.lab.experiment import corpus
from posenc.lab.experiment.arm import Arm
from posenc.lab.experiment.corpus import Corpus
from posenc.lab.experiment.recipe import Recipe
from posenc.lab.records.fingerprint import fingerprint_of
from posenc.lab.run.workers import Job, Workers, cores
from posenc.lab.trial.cost import cost
from posenc.lab.trial.fp64_properties import exact, order_of
from posenc.lab.verdict import results

SEEDS = 2
COST_SHARE = 0.06  # of the budget
CLOSING = 12.0  # seconds kept for starting the workers and writing the page
FEWEST_STEPS = 10

Progress = Callable[[str, float, float], None]
"""What goes on, seconds so far, seconds left as far as can be told."""


@dataclass(frozen=True)
class Request:
    """What to compare. Either `seconds`, the budget of the whole, or `steps` of training is given."""

    arms: tuple[Arm, ...]
    out: Path
    text: Path | None = None
    seconds: float | None = 300.0
    steps: int | None = None
    seed: int = 0
    recipe: Recipe = field(default_factory=Recipe)

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.seed, self.seed + SEEDS))


def compare(request: Request, progress: Progress) -> dict[str, Any]:
    """Runs or resumes it and returns what results.json holds. Raises as `corpus.read` and `store.Store` do."""
    begun = time.perf_counter()
    texts = corpus.read(request.text, max(request.recipe.task.lengths) + 1)
    settings = {
        "encodings": [str(arm) for arm in request.arms],
        "budget": request.seconds,
        "steps": request.steps,
        "seeds": list(request.seeds),
        **_decisive(request.recipe, texts),
    }
    with store.Store(request.out, settings) as kept:
        run = _Run(request, texts, settings, kept, progress, begun)
        return run.whole()


def _decisive(recipe: Recipe, texts: Corpus) -> dict[str, Any]:
    """What every number depends on, besides arm, seed and steps."""
    return {
        "text": texts.sha256,
        "recipe": recipe.model_dump(mode="json"),
        "code": fingerprint_of([__name__, *(f"posenc.encodings.{name}" for name in catalogue.names())]),
        "torch": torch.__version__,
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
    }


class _Run:
    def __init__(
        self, request: Request, texts: Corpus, settings: dict[str, Any], kept: store.Store, progress: Progress, begun: float
    ) -> None:
        self.request, self.recipe, self.texts, self.settings, self.kept = request, request.recipe, texts, settings, kept
        self.decisive = _decisive(request.recipe, texts)
        self.progress, self.begun = progress, begun
        self.end = request.seconds or 60.0  # expected, in seconds from the beginning
        self.speeds: dict[str, tuple[float, float]] = {}  # seconds of a step and of scoring, the fastest seen
        self.failures: dict[str, str] = {}  # by arm: cannot be built here, or breaks at once

    def whole(self) -> dict[str, Any]:
        self.say("exact properties")
        properties = self.exact()
        whole = [arm for arm in self.request.arms if str(arm) not in self.failures]
        self.first_look(whole)
        measured = self.part("cost", {"encodings": list(map(str, whole))}, lambda: self.cost(whole))
        steps, trials = self.trials(whole)
        done = results(
            request=self.settings,
            text=self.texts.about(),
            pairs=self.recipe.task.baseline(self.texts),
            recipe=self.recipe,
            steps=steps,
            exact=properties,
            order_without=self.order_without(),
            cost=measured,
            trials=trials,
            failures=self.failures,
            machine=machine(),
            version=posenc.__version__,
        )
        self.write(done)
        self.end = self.now()
        self.say("done")
        return done

    def now(self) -> float:
        return time.perf_counter() - self.begun

    def say(self, what: str) -> None:
        self.progress(what, now := self.now(), max(self.end - now, 0.0))

    def part(self, name: str, inputs: dict[str, Any], compute: Callable[[], Any]) -> Any:
        inputs = {**self.decisive, **inputs}
        found = self.kept.get(name, inputs)
        return self.kept.put(name, inputs, compute()) if found is None else found

    # Measured in this process ---------------------------------------------------------------------------------------

    def exact(self) -> dict[str, Any]:
        found = {}
        for arm in self.request.arms:
            try:
                found[str(arm)] = self.part(f"exact-{arm}", {"arm": str(arm)}, functools.partial(exact, arm, self.recipe))
            except ModuleNotFoundError as error:
                self.failures[str(arm)] = f"cannot: {error}"
            except Exception as error:  # an encoding that breaks is a finding; the others go on
                self.failures[str(arm)] = f"failed: {_line(error)}"
        return found

    def order_without(self) -> dict[str, float]:
        nothing = PositionalEncoding()
        return {
            name: order_of(nothing, self.recipe.size, causal)
            for name, causal in (("bidirectional", False), ("causal", True))
        }

    def cost(self, arms: list[Arm]) -> dict[str, Any]:
        seconds = COST_SHARE * (self.request.seconds or 0.0)
        return cost(arms, self.recipe, self.texts, seconds, lambda _: self.say("cost of each encoding"))

    # Trained by the workers -----------------------------------------------------------------------------------------

    def trials(self, arms: list[Arm]) -> tuple[int, dict[str, Any]]:
        """The steps, and what every arm and seed came to, by "arm seed"."""
        if not arms:
            return self.request.steps or 0, {}
        plan = self.kept.get("plan", self.settings)
        wanted = list(itertools.product(arms, self.request.seeds))
        found = {} if plan is None else {pair: self.kept.get(*self.of(*pair, plan["steps"])) for pair in wanted}
        if plan is None or not all(found.values()):
            with self.workers(len(wanted)) as workers:
                if plan is None:
                    plan = self.kept.put("plan", self.settings, self.plan(workers, arms))
                    found = {pair: self.kept.get(*self.of(*pair, plan["steps"])) for pair in wanted}
                missing = [pair for pair in wanted if not found[pair]]
                found |= self.missing(workers, missing, plan)
        return plan["steps"], {f"{arm} {seed}": found[arm, seed] for arm, seed in wanted}

    def of(self, arm: Arm, seed: int, steps: int) -> tuple[str, dict[str, Any]]:
        return f"trial-{arm}-seed{seed}", {**self.decisive, "arm": str(arm), "seed": seed, "steps": steps}

    def workers(self, jobs: int) -> Workers:
        return Workers(min(cores(), jobs), (self.recipe, self.texts))

    def first_look(self, arms: list[Arm]) -> None:
        """Speeds before the cost is measured; `plan` looks again after it, lest a busy moment halve the training."""
        if arms and self.request.steps is None and self.kept.get("plan", self.settings) is None:
            with self.workers(len(arms) * SEEDS) as workers:
                self.look(workers, arms)

    def look(self, workers: Workers, arms: list[Arm]) -> None:
        """The speed of each, the faster of this time and those before."""
        for event in workers.run([Job(calibrate, (arm,)) for arm in arms]):
            if event.value is not None:
                name, (step, scoring) = str(arms[event.number]), event.value
                before = self.speeds.get(name, event.value)
                self.speeds[name] = (min(step, before[0]), min(scoring, before[1]))
            self.say("speed of each encoding")

    def plan(self, workers: Workers, arms: list[Arm]) -> dict[str, Any]:
        """One number of steps for all arms, such that all trials fit the time that is left."""
        self.look(workers, arms)
        slowest = max(self.speeds.values(), default=(1.0, 1.0))
        speeds = {str(arm): self.speeds.get(str(arm), slowest) for arm in arms}
        each = [speeds[str(arm)] for arm in arms for _ in self.request.seeds]
        steps = self.request.steps
        if steps is None:
            assert self.request.seconds is not None
            left = self.request.seconds - self.now() - CLOSING
            steps = steps_for(left, each, workers.count)
        return {"steps": steps, "speeds": speeds}

    def missing(self, workers: Workers, pairs: list[tuple[Arm, int]], plan: dict[str, Any]) -> dict[tuple[Arm, int], Any]:
        """Trains them, the longest first, and keeps each as it ends."""
        seconds = {pair: duration(plan["steps"], plan["speeds"][str(pair[0])]) for pair in pairs}
        pairs = sorted(pairs, key=lambda pair: -seconds[pair])
        begun, total = self.now(), sum(seconds.values())
        shares, found, what = dict.fromkeys(pairs, 0.0), dict[tuple[Arm, int], Any](), f"trained 0 of {len(pairs)}"
        for event in workers.run([Job(trial, (*pair, plan["steps"])) for pair in pairs]):
            pair = pairs[event.number]
            shares[pair] = event.share
            if event.failure is not None:
                found[pair] = {"state": f"failed: {event.failure}"}
            elif event.finished:
                found[pair] = self.kept.put(*self.of(*pair, plan["steps"]), event.value)
            if event.finished:
                what = f"trained {len(found)} of {len(pairs)}, last {pair[0]} seed {pair[1]}"
            done = sum(seconds[pair] * share for pair, share in shares.items()) / total
            if done > 0.02:
                self.end = begun + (self.now() - begun) / done + CLOSING / 4
            self.say(what)
        return found

    def write(self, done: dict[str, Any]) -> None:
        import json

        from posenc.lab.page import page

        self.say("writing the page")
        store.write(self.kept.folder / "results.json", json.dumps(done, indent=1, ensure_ascii=False, allow_nan=False))
        store.write(self.kept.folder / "index.html", page(done))
        try:
            from posenc.lab.picture import picture
        except ModuleNotFoundError:
            return  # matplotlib is an extra; the page has the same picture
        store.write(self.kept.folder / "summary.png", picture(done))


def duration(steps: int, speed: Iterable[float]) -> float:
    step, scoring = speed
    return steps * step + scoring


def steps_for(seconds: float, speeds: list[tuple[float, float]], workers: int) -> int:
    """The most steps with which all trials end within `seconds`, by halving; tens, so that the number is easy to say."""
    low, high = 1, 10**7
    while high - low > 1:
        middle = (low + high) // 2
        fits = makespan([duration(middle, speed) for speed in speeds], workers) <= seconds
        low, high = (middle, high) if fits else (low, middle)
    return max(FEWEST_STEPS, low // 10 * 10)


def makespan(seconds: list[float], workers: int) -> float:
    """When the last one ends if each, the longest first, goes to whichever worker is free."""
    free = [0.0] * workers
    for one in sorted(seconds, reverse=True):
        free[free.index(min(free))] += one
    return max(free)


def machine() -> dict[str, Any]:
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": cores(),
        "vector_instructions": torch.backends.cpu.get_cpu_capability(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": "one per training, one for cost",
    }


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
