"""Why a result differs from a published claim, the trial that shows it, and the experiment that would decide it.

    too few seeds were compared ─► budget
    what is known of the paper's setting ─► task
    an encoding of an inequality that does not hold still improved at its end, or did not learn the task ─► budget
    a statement of the notes that our numbers contradict ─► theirs
    what the setting of the paper had and these results lack ─► task
    the seeds do not separate the encodings ─► budget
    otherwise it is not known ─► scale

The first that applies is given. `ours` is a mistake of this lab that is known and not corrected yet; there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from judging.deciding import Ours
from judging.say import say
from posenc.lab.experiment import read_experiment
from posenc.lab.findings.criteria import FEWEST, MISSING
from posenc.lab.findings.titles import title
from posenc.lab.findings.wording import numbered
from posenc.support.languages import Words, clauses, joined

Kind = Literal["scale", "budget", "task", "theirs", "ours"]
Consulted = Sequence[tuple[str, str]]  # task and encoding of the results that a check has read
TEXT = "language_model"
NOTES = "notes"  # a source that begins so is the founding notes, which are not published

KINDS: Mapping[Kind, Words] = {
    "scale": say("scale"),
    "budget": say("budget"),
    "task": say("other setting"),
    "theirs": say("their mistake"),
    "ours": say("our mistake"),
}
DECIDED_BY: Mapping[Kind, Sequence[str]] = {"budget": ("study", "gpu"), "scale": ("gpu",)}  # presets, of text
SMALLER = say("not known; their models are larger and trained for far longer")
NOT_MEASURED = say("the notes state it without a measurement")


class Cause(NamedTuple):
    """`experiment` is a command that would decide it; "" where the trials decide it already."""

    kind: Kind
    why: Words
    experiment: str = ""


def cause_of(known: Cause | None, source: str, findings: Mapping[str, Any], consulted: Consulted, ours: Ours) -> Cause:
    """The cause of a disagreement or of an open verdict. `known` is what is known of the paper's setting."""
    undecided = ours.holds is None
    if undecided and ours.seeds is not None and ours.seeds < FEWEST:
        return Cause("budget", only(ours.seeds))
    if known is not None:
        return known
    of_open = [(task, name) for task, name in consulted if not ours.open or name in ours.open]
    if why := growing(findings, of_open):
        return Cause("budget", why, decided_by("budget", findings, consulted))
    if source.startswith(NOTES) and not undecided:
        return Cause("theirs", NOT_MEASURED)
    if ours.setting.en:
        return Cause("task", ours.setting)
    if undecided:
        return Cause("budget", say("more seeds are needed"))
    return Cause("scale", SMALLER, decided_by("scale", findings, consulted))


def only(seeds: int) -> Words:
    return say("only {seeds}", seeds=numbered(seeds, "seed", "seeds"))


def decided_by(kind: Kind, findings: Mapping[str, Any], consulted: Consulted) -> str:
    """The command of the first preset that trains the encodings of a claim about text on more tokens; "" without one."""
    if any(task != TEXT for task, _ in consulted):
        return ""
    trained = max((task["trained_tokens"] or 0 for task in findings["tasks"] if task["name"] == TEXT), default=0)
    for preset in DECIDED_BY[kind]:
        experiment = read_experiment(preset)
        (plan,) = (plan for plan in experiment.tasks if plan.task.name == TEXT)
        tokens = plan.training.steps * plan.training.rows * plan.task.length
        if tokens > trained and {name for _, name in consulted} <= set(experiment.of(plan)):
            return f"posenc lab run {preset}"
    return ""


def growing(findings: Mapping[str, Any], consulted: Consulted) -> Words | None:
    """The encodings of the claim whose training loss still fell at the end, or that did not learn the trained length."""
    unlearnt = [name for name, arm in _run(findings, consulted).items() if not arm["learnt"]]
    lists = [(say("not learnt", context="state"), unlearnt), (say("still improving"), improving(findings, consulted))]
    told = [_list(what, names) for what, names in lists if names]
    return joined(told, "; ", "；") if told else None


def improving(findings: Mapping[str, Any], consulted: Consulted) -> list[str]:
    """The encodings of the claim that learnt the trained length and still improved at the end of training."""
    run = _run(findings, consulted)
    return [name for name, arm in run.items() if arm["learnt"] and arm["converged"] is False]


def _run(findings: Mapping[str, Any], consulted: Consulted) -> dict[str, Any]:
    arms = {(task["name"], arm["name"]): arm for task in findings["tasks"] for arm in task["arms"]}
    read = {name: arms[task, name] for task, name in consulted}
    return {name: arm for name, arm in read.items() if arm["state"] != MISSING}


def _list(what: Words, names: Sequence[str]) -> Words:
    listed = joined(map(title, names), ", ", "、")
    return say("{what}: {listed}", what=what, listed=listed)


def trial_of(findings: Mapping[str, Any], consulted: Consulted, ours: Ours) -> str | None:
    """The trial that contradicts the claim, in the words that posenc lab repeat takes; None where no seed contradicts it.

    Of a claim that is not about seeds it is the first seed's, of the encoding that contradicts it or that was read first.
    """
    if ours.seeds is not None and ours.against is None:
        return None
    task, name = next((pair for pair in reversed(consulted) if pair[1] == ours.shows), next(iter(consulted), ("", "")))
    seed = findings["seeds"][0] if ours.against is None else ours.against
    return f"{task} {name} seed {seed}" if task else None


def told(cause: Cause, trial: str | None = None) -> Words:
    """The cause and the trial in one sentence. OUT stands for the folder of the results."""
    kind = KINDS[cause.kind]
    parts = [say("{kind}: {why}", kind=kind, why=cause.why)]
    if trial:
        command = f"posenc lab repeat {trial} --in OUT"
        parts.append(say("seen in: {command}", command=command))
    return clauses(*parts)
