"""Classify short Chinese sentences whose label depends only on the order of the characters; `grammar` generates them.

    tokens    [ ? 猫 追 老 鼠 ]      [ ? 老 鼠 追 猫 ]      bidirectional; a token is a character
    targets   [ ✓ .  .  .  . ]      [ ✗ .  .  .  . ]      the label is predicted at the first token

Every sentence is as frequent as its twin, which has the same characters and the other label, so a model that cannot see
order is right in exactly half of them. Longer sentences have more adjuncts around the same cores.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import Field, model_validator

from posenc.lab.say import say
from posenc.lab.tasks import grammar
from posenc.lab.tasks.grammar import KINDS, Pair
from posenc.lab.tasks.task import IGNORE, Batch, Link, Task
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.lab.text.corpus import Corpus

ASK, NO, YES = range(3)  # tokens before the characters
# The least number of characters of a sentence in training, and of a scored one, at which every kind has sentences.
LEAST, SHORTEST = 4, 12
LINKS = (("追", "猫"), ("追", "老鼠"), ("无聊", "电影"), ("精彩", "演员表演"), ("精彩", "电影"))


class WordOrder(Task):
    """An item is a sentence; 2n and 2n+1 are twins, of which the first is labelled yes. The kinds alternate.

    One combination of words in five is held out. Half of the training batches have `length` characters; the others have
    a uniform number up to it. (If all were uniform, the last rows of a learned table would be trained rarely.)
    """

    name: Literal["word_order"] = "word_order"
    length: int = Field(default=16, ge=SHORTEST)
    lengths: tuple[int, ...] = (16, 24, 32, 48)
    held_out: int = Field(default=256, ge=2, multiple_of=2)

    title: ClassVar[Words] = say("Word order in Chinese sentences")
    unit: ClassVar[Words] = say("characters")
    measure: ClassVar[Literal["bits", "exact"]] = "exact"
    causal: ClassVar[bool] = False
    shows_attention: ClassVar[bool] = True

    @model_validator(mode="after")
    def _sentences_exist(self) -> WordOrder:
        longest = longest_sentence()
        if self.lengths[0] < SHORTEST or self.lengths[-1] > longest:
            raise ValueError(f"lengths: expected from {SHORTEST} to {longest} characters, got {self.lengths}")
        return self

    @property
    def vocabulary(self) -> int:
        return YES + 1 + len(grammar.alphabet())

    def tokens(self, length: int) -> int:
        return 1 + length

    def training_batch(self, rows: int, random: torch.Generator, text: Corpus | None) -> Batch:
        """Pairs of twins; if `rows` is odd, one sentence has no twin."""
        length = LEAST + _below(self.length + 1 - LEAST, random) if _below(2, random) else self.length
        kinds = [fitting for kind in KINDS if (fitting := _fitting(kind, length, False))]
        drawn = []
        for _ in range((rows + 1) // 2):
            fitting = kinds[_below(len(kinds), random)]
            drawn.append(fitting[_below(len(fitting), random)])
        return _batch(drawn, length, random, rows)

    def scored(self, length: int, text: Corpus | None) -> Batch:
        batch = _batch(self._held_out(), length, torch.Generator().manual_seed(length), self.held_out)
        return Batch(batch.tokens, batch.targets, torch.arange(len(batch.tokens)), batch.links)

    def chance(self, length: int) -> float:
        return 0.5

    def _held_out(self) -> list[Pair]:
        """The held-out rows, examples first; all fit the shortest length, so that they are the same at every length."""
        random = torch.Generator().manual_seed(0)
        kinds = []
        for kind in KINDS:
            fitting = _fitting(kind, self.lengths[0], True)
            order = torch.randperm(len(fitting), generator=random).tolist()
            kinds.append(sorted((fitting[n] for n in order), key=lambda pair: pair.words not in grammar.EXAMPLES))
        turns = [(kinds[n % len(kinds)], n // len(kinds)) for n in range(self.held_out // 2)]
        return [fitting[n % len(fitting)] for fitting, n in turns]


@cache
def longest_sentence() -> int:
    """The largest number of characters up to which every core can be extended to every length."""
    shortest = {kind: min(len(pair) for pair in grammar.pairs() if pair.kind == kind) for kind in KINDS}
    return min(_filled(kind) + shortest[kind] for kind in KINDS)


def _filled(kind: str) -> int:
    """The largest room such that it and every smaller room can be filled."""
    room = 0
    while room + 1 in grammar.fillings(kind):
        room += 1
    return room


@cache
def _fitting(kind: str, length: int, held_out: bool) -> list[Pair]:
    return [p for p in grammar.pairs() if p.kind == kind and len(p) <= length and p.held_out == held_out]


@cache
def _numbers() -> dict[str, int]:
    return {character: YES + 1 + n for n, character in enumerate(grammar.alphabet())}


def _batch(pairs: list[Pair], length: int, random: torch.Generator, rows: int) -> Batch:
    numbers, tokens, links = _numbers(), list[list[int]](), list[Link]()
    for pair in pairs:
        before, after = grammar.adjuncts(pair.kind, length - len(pair), lambda n: _below(n, random))
        for core in (pair.yes, pair.no):
            if pair.words in grammar.EXAMPLES:
                links += _links(core, len(tokens), 1 + len(before))
            tokens.append([ASK, *(numbers[character] for character in before + core + after)])
    targets = torch.full((len(tokens), 1 + length), IGNORE)
    targets[0::2, 0], targets[1::2, 0] = YES, NO
    return Batch(torch.tensor(tokens)[:rows], targets[:rows], links=tuple(links))


def _links(core: str, row: int, start: int) -> list[Link]:
    """Links from every character of one word to every character of the other, if both are in the core."""
    return [
        Link(f"{word}→{other}", row, start + core.index(word) + i, start + core.index(other) + j)
        for word, other in LINKS
        if word in core and other in core
        for i in range(len(word))
        for j in range(len(other))
    ]


def _below(n: int, random: torch.Generator) -> int:
    return int(torch.randint(n, (), generator=random))
