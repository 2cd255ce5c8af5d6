"""How are two people related, who are joined by a chain of relations? The kind of CLUTRR, in a grammar of our own.

    length 3: Ann's mother is Bea, Bea's brother is Cal, Cal's son is Dan; so Dan is Ann's cousin
    tokens    [ ^  Bea brother Cal  Ann mother Bea  Cal son Dan  ?  Ann  Dan ]      in any order; names are numbers
    targets   [ .  .   .       .    .   .      .    .   .   .    .  .    cousin ]

A length is the number of relations. Different names are different people: the brother of a sister is a brother. The table
NEXT says what follows, and has no entry where more than one answer is possible: an aunt's brother is an uncle or the
father. A chain visits the one mother, husband or father-in-law once at most, and no spouse's spouse. Sinha et al. 2019,
arXiv 1908.06177, train on 2 to 4 relations and test on up to 10, in sentences written by people.
"""

from __future__ import annotations

from functools import cache
from math import factorial, perm
from typing import ClassVar, Literal, NamedTuple

import torch
from pydantic import Field

from posenc.lab.say import say
from posenc.lab.tasks.drawn import Drawn, answered
from posenc.lab.tasks.task import Batch
from posenc.lab.tasks.worded import Numbers
from posenc.support.languages import Words

NAMES = 60
STEPS = {  # female, male
    "parent": ("mother", "father"),
    "child": ("daughter", "son"),
    "sibling": ("sister", "brother"),
    "spouse": ("wife", "husband"),
}
FURTHER = {
    "grandparent": ("grandmother", "grandfather"),
    "grandchild": ("granddaughter", "grandson"),
    "parent's sibling": ("aunt", "uncle"),
    "sibling's child": ("niece", "nephew"),
    "cousin": ("cousin", "cousin"),
    "parent-in-law": ("mother-in-law", "father-in-law"),
    "child-in-law": ("daughter-in-law", "son-in-law"),
    "sibling-in-law": ("sister-in-law", "brother-in-law"),
}
NEXT = {
    "": {kind: kind for kind in STEPS},
    "parent": {"parent": "grandparent", "child": "sibling", "sibling": "parent's sibling", "spouse": "parent"},
    "child": {"child": "grandchild", "sibling": "child", "spouse": "child-in-law"},
    "sibling": {"parent": "parent", "child": "sibling's child", "sibling": "sibling", "spouse": "sibling-in-law"},
    "spouse": {"parent": "parent-in-law", "child": "child", "sibling": "sibling-in-law"},
    "grandparent": {"spouse": "grandparent"},
    "grandchild": {"sibling": "grandchild"},
    "parent's sibling": {"parent": "grandparent", "child": "cousin", "spouse": "parent's sibling"},
    "sibling's child": {"sibling": "sibling's child"},
    "cousin": {"sibling": "cousin"},
    "parent-in-law": {"child": "sibling-in-law", "spouse": "parent-in-law"},
    "child-in-law": {"child": "grandchild"},
    "sibling-in-law": {"child": "sibling's child"},
}
ONLY_ONE = ("parent", "spouse", "parent-in-law")  # of each sex
RELATIONS = tuple(dict.fromkeys(word for words in (*STEPS.values(), *FURTHER.values()) for word in words))
BEGIN, ASK = NAMES + len(RELATIONS), NAMES + len(RELATIONS) + 1


class Chain(NamedTuple):
    """The relations from each person to the next one, and that from the first to the last."""

    steps: list[str]
    answer: str


class Kinship(Drawn):
    name: Literal["kinship"] = "kinship"
    length: int = Field(default=4, ge=2)
    lengths: tuple[int, ...] = (4, 6, 8, 10)

    title: ClassVar[Words] = say("Chains of relatives")
    unit: ClassVar[Words] = say("relations")
    shortest: ClassVar[int] = 2

    @property
    def vocabulary(self) -> int:
        return NAMES + len(RELATIONS) + 2

    def tokens(self, length: int) -> int:
        return 3 * length + 4

    def draw(self, rows: int, length: int, random: torch.Generator) -> Batch:
        if length >= NAMES:
            raise ValueError(f"lengths: expected below {NAMES}, one less than the names, got {length}")
        numbers = Numbers(random)
        names = torch.rand(rows, NAMES, generator=random).argsort(dim=1)[:, : length + 1].tolist()
        orders = torch.rand(rows, length, generator=random).argsort(dim=1).tolist()
        prompts, answers = list[list[int]](), list[list[int]]()
        for people, order in zip(names, orders, strict=True):
            steps, answer = chain(length, numbers)
            facts = [token for n in order for token in (people[n], _token(steps[n]), people[n + 1])]
            prompts.append([BEGIN, *facts, ASK, people[0], people[-1]])
            answers.append([_token(answer)])
        return answered(torch.tensor(prompts), torch.tensor(answers))

    def different(self, length: int) -> int:
        """At least: names and orders of one chain."""
        return perm(NAMES, length + 1) * factorial(length)

    def chance(self, length: int) -> float:
        """Chance: uniform over relations."""
        return 1 / len(RELATIONS)


def chain(length: int, numbers: Numbers) -> Chain:
    """The kind of the answer is uniform; then the kinds on the way are, among those that lead there. Begun again where the
    sexes or somebody who occurs twice forbid it.
    """
    target = numbers.of([kind for kind in NEXT if _ways("", "", kind, length)])
    while True:
        steps, kind, female, before, seen = list[str](), "", None, "", set[str]()
        while len(steps) < length:
            before = _weighted(_onward(kind, before, target, length - len(steps)), numbers)
            female = not female if before == "spouse" and female is not None else bool(numbers.below(2))
            kind = NEXT[kind][before]
            if (word := _word(kind, female)) in seen:
                break
            if kind in ONLY_ONE:
                seen.add(word)
            steps.append(_word(before, female))
        else:
            return Chain(steps, _word(kind, bool(female)))


@cache
def _ways(kind: str, before: str, target: str, length: int) -> int:
    """How many chains of that many kinds lead on from one, reached by the step `before`, to another."""
    if length == 0:
        return int(kind == target)
    return sum(_onward(kind, before, target, length).values())


def _onward(kind: str, before: str, target: str, length: int) -> dict[str, int]:
    """The same by the next step."""
    possible = {step: to for step, to in NEXT[kind].items() if not step == before == "spouse"}
    return {step: _ways(to, step, target, length - 1) for step, to in possible.items()}


def _weighted(weights: dict[str, int], numbers: Numbers) -> str:
    """A key, as likely as its weight says."""
    place = numbers.below(sum(weights.values()))
    for key, weight in weights.items():
        if place < weight:
            return key
        place -= weight
    raise AssertionError


def _word(kind: str, female: bool) -> str:
    words: tuple[str, str] = {**STEPS, **FURTHER}[kind]
    return words[0] if female else words[1]


def _token(relation: str) -> int:
    return NAMES + RELATIONS.index(relation)
