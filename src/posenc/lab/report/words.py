"""Every sentence that the report adds to the findings, in both languages.

phrase("lead", tasks=2, …)      a value that is Words is filled in language by language
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.lab.experiment.change import Change
from posenc.lab.findings.titles import with_factor, with_training
from posenc.lab.say import say
from posenc.support.data_files import beside
from posenc.support.languages import Words, joined

PROSE: dict[str, Words] = beside(__file__, say)["words"] | {
    "change ": say("none", context="change"),
    "cost training": say("Training step", context="cost"),
}


def phrase(key: str, /, **values: object) -> Words:
    """The sentence of that key with its values filled in."""
    return PROSE[key].filled(**values)


def change_name(word: str) -> Words:
    """A change after training as a heading: none; YaRN; YaRN (factor 2); YaRN, 200 steps at 512."""
    change = Change.parse(word) if word else None
    return with_training(with_factor(phrase(f"change {change.method if change else ''}"), word), word)


def measured_in(measure: str) -> Words:
    """What the scores of a task are, and which is better."""
    return phrase("bits low" if measure == "bits" else "exact high")


def of(text: Mapping[str, Any]) -> Words:
    """A text of the findings, from its JSON form."""
    return Words(text["en"], text["zh"])


def same(text: object) -> Words:
    """A text that is the same in both languages."""
    return Words(str(text))


def listed(parts: list[Words]) -> Words:
    return joined(parts, ", ", "、")
