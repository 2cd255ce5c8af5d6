"""What stored findings say of the encodings in a table of `posenc choose`: who is ranked, and which are told apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.lab.findings.comparing import told_apart

RUN_AS = {"randomized": "rope+randomized", "abacus": "learned+abacus", "drope": "rope+dropped"}
RUN_AS |= {"axial_rope": "in_a_picture.py:AxialRoPE", "sinusoidal_2d": "in_a_picture.py:Sinusoidal2D"}
CHANGED = {"linear": "interpolation", "rope": "", "yarn": "yarn", "ntk": "ntk", "self_extend": "self_extend"}


def verdicts(name: str, measure: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[dict[str, str], list[list[str]]]:
    """The names that are not ranked, with the reason, and the pairs that are told apart, after Holm's correction over all
    pairs of the task; of changes of RoPE, over all pairs of these.
    """
    (task,) = (task for task in found["tasks"] if task["name"] == measure["task"])
    unranked = dict[str, str]()
    if name.startswith("changed"):
        cells = {changed["change"]: changed["cells"] for changed in task["after"]}
        names = {entry: CHANGED[entry] for entry in measure["figures"]}
    else:
        arms = {arm["name"]: arm for arm in task["arms"]}
        names = {entry: RUN_AS.get(entry, entry) for entry in measure["figures"]}
        for entry, arm in names.items():
            if not arms[arm]["learnt"]:
                unranked[entry] = "not learnt"
            elif arms[arm]["converged"] is False:
                unranked[entry] = "still improving"
        cells = {arm["name"]: arm["cells"] for arm in task["arms"] if arm["learnt"] and arm["converged"] is not False}
    far = {one: of[str(measure["at"][1])] for one, of in cells.items()}
    compared = [one for one, cell in far.items() if cell["mean"] is not None]
    pairs = {(compared[a], compared[b]) for a, b in told_apart(task, [far[one] for one in compared])}
    entries = sorted(names)
    return unranked, [[a, b] for a in entries for b in entries if (names[a], names[b]) in pairs]
