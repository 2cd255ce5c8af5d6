"""What is said about changes of RoPE's frequencies or positions after training, and which is best."""

from __future__ import annotations

from collections.abc import Iterable

from posenc.lab.findings.comparing import after_training
from posenc.lab.findings.wording import times, trains_on
from posenc.lab.report.cells import Task, unit, value
from posenc.lab.report.words import change_name, of, phrase
from posenc.support.languages import Words


def how_changed(tasks: Iterable[Task]) -> Words:
    """How the models were changed; with what some were trained on after it, if an experiment has `then`."""
    further = any(trains_on(changed["change"]) for task in tasks for changed in task["after"])
    return phrase("after text trained" if further else "after text")


def best_change(task: Task) -> Words:
    """The sentence for 4 times the trained length, or the longest length that all changes have.

    Empty if nothing can be compared.
    """
    compared = after_training(task)
    if compared is None or "" not in compared[1]:
        return Words("")
    length, means, unsure = compared
    first = next(iter(means))
    rivals = [other for better, other in unsure if better == first]
    undecided = phrase("after undecided", change=change_name(rivals[0])) if rivals else Words("")
    numbers = {"value": value(task, means[first]), "none": value(task, means[""]), "unit": unit(task)}
    change, ratio = _spaced(change_name(first)), times(task, length)
    return phrase("after best", task=of(task["title"]), times=ratio, change=change, undecided=undecided, **numbers)


def _spaced(name: Words) -> Words:
    """The name; in Chinese with a space behind Latin letters."""
    return Words(name.en, name.zh + " " * name.zh[-1].isascii())
