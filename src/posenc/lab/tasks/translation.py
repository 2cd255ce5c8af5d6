"""Translate one English sentence into Chinese, whose words come in another order.

    tokens    [ the red car is parked outside the building . → 红色 的 汽车 停 在 建筑物 外面 。 ]      a token is a word
    targets   [ .   .   .   .  .      .       .   .        . 红色 的 汽车 停 在 建筑物 外面 。 . ]

    the {A} noun is verb preposition the {A} noun .     →     {A 的} noun verb 在 {A 的} noun preposition 。

Both nouns take the same adjectives, so the words alone do not say which noun an adjective belongs to. Shorter sentences
end in repeated stops, which are not predicted. Longer ones have more adjectives before a noun.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import torch
from pydantic import Field, model_validator

from posenc.lab.say import say
from posenc.lab.tasks.task import IGNORE, Batch, Link, Task
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.lab.text.corpus import Corpus

COLOURS = {"red": "红色", "blue": "蓝色", "white": "白色", "black": "黑色"}
STATES = {"old": "旧", "new": "新", "big": "大", "small": "小", "clean": "干净", "dirty": "脏"}
ADJECTIVES = COLOURS | STATES
VEHICLES = {"car": "汽车", "bus": "公交车", "truck": "卡车", "bicycle": "自行车", "van": "面包车", "taxi": "出租车"}
VERBS = {"parked": "停", "hidden": "藏", "stuck": "卡", "abandoned": "丢"}
PREPOSITIONS = {"outside": "外面", "behind": "后面", "beside": "旁边", "inside": "里面"}
BUILDINGS = {
    "building": "建筑物",
    "school": "学校",
    "station": "车站",
    "hotel": "酒店",
    "factory": "工厂",
    "garage": "车库",
}
STOP, ARROW, END = ".", "→", "。"
GLUE = ("the", "is", "的", "在")  # words that translate none of the other language
HELD_OUT = 5  # one combination of words in this many is held out
FIXED = 8, 6  # words of a sentence without adjectives, with the stop
EXAMPLE = ((("red",), "car"), "parked", "outside", ((), "building"))

Thing = tuple[tuple[str, ...], str]  # adjectives and a noun
Meaning = tuple[Thing, str, str, Thing]


class Pair(NamedTuple):
    """Two sentences with the same meaning; `aligned`: the index of the English word of each Chinese one."""

    english: tuple[str, ...]
    chinese: tuple[str, ...]
    aligned: tuple[int | None, ...]


class Translation(Task):
    """An item is a sentence with its translation. One combination of words in five is held out, and the red car."""

    name: Literal["translation"] = "translation"
    length: int = Field(default=1, ge=1)
    lengths: tuple[int, ...] = (1,)
    held_out: int = Field(default=256, ge=1)

    title: ClassVar[Words] = say("Translation with another word order")
    unit: ClassVar[Words] = say("adjectives before a noun")
    measure: ClassVar[Literal["bits", "exact"]] = "exact"
    shows_attention: ClassVar[bool] = True

    @model_validator(mode="after")
    def _adjectives_suffice(self) -> Translation:
        if self.lengths[-1] > len(ADJECTIVES):
            raise ValueError(f"lengths: expected at most {len(ADJECTIVES)} adjectives, got {self.lengths}")
        return self

    @property
    def vocabulary(self) -> int:
        return len(vocabulary())

    def tokens(self, length: int) -> int:
        return sum(FIXED) + 2 * length + 1 + 4 * length

    def training_batch(self, rows: int, random: torch.Generator, text: Corpus | None) -> Batch:
        return _batch(_drawn(rows, self.length, random, held_out=False), self.tokens(self.length))

    def scored(self, length: int, text: Corpus | None) -> Batch:
        random = torch.Generator().manual_seed(length)  # depends on the length only, not on the seed of training
        pairs = [written(EXAMPLE), *_drawn(self.held_out, length, random, held_out=True)][: self.held_out]
        batch = _batch(pairs, self.tokens(length))
        start = len(pairs[0].english)  # the arrow; the word at n is predicted at n - 1
        links = tuple(
            Link(f"{word}→{pairs[0].english[there]}", 0, start + here, there)
            for here, (word, there) in enumerate(zip(pairs[0].chinese, pairs[0].aligned, strict=True))
            if there is not None
        )
        return Batch(batch.tokens, batch.targets, torch.arange(len(pairs)), links)

    def chance(self, length: int) -> float:
        return 0.0


@cache
def dictionary() -> dict[str, str]:
    """The Chinese word of every English one that has a meaning of its own."""
    return ADJECTIVES | VEHICLES | VERBS | PREPOSITIONS | BUILDINGS


@cache
def vocabulary() -> tuple[str, ...]:
    """Every word of both languages; a word's token is its index."""
    return (STOP, ARROW, END, *GLUE, *sorted(dictionary()), *sorted(dictionary().values()))


def written(meaning: Meaning) -> Pair:
    (first, vehicle), verb, preposition, (second, building) = meaning
    english = ("the", *first, vehicle, "is", verb, preposition, "the", *second, building, STOP)
    there = {"first": 1, "vehicle": 1 + len(first)}
    there |= {"verb": there["vehicle"] + 2, "preposition": there["vehicle"] + 3, "second": there["vehicle"] + 5}
    chinese = list[tuple[str, int | None]]()
    for n, word in enumerate(first):
        chinese += [(ADJECTIVES[word], there["first"] + n), ("的", None)]
    chinese += [(VEHICLES[vehicle], there["vehicle"]), (VERBS[verb], there["verb"]), ("在", None)]
    for n, word in enumerate(second):
        chinese += [(ADJECTIVES[word], there["second"] + n), ("的", None)]
    chinese += [(BUILDINGS[building], there["second"] + len(second)), (PREPOSITIONS[preposition], there["preposition"])]
    chinese += [(END, len(english) - 1)]
    return Pair(english, tuple(word for word, _ in chinese), tuple(where for _, where in chinese))


def _drawn(rows: int, most: int, random: torch.Generator, *, held_out: bool) -> list[Pair]:
    drawn = list[Pair]()
    while len(drawn) < rows:
        for numbers in torch.randint(2**31, (rows, 6 + 2 * most), generator=random).tolist():
            meaning = _meaning(numbers, most)
            if is_held_out(meaning) == held_out:
                drawn.append(written(meaning))
    return drawn[:rows]


def _meaning(numbers: Sequence[int], most: int) -> Meaning:
    def chosen(words: Sequence[str], number: int) -> str:
        return words[number % len(words)]

    def adjectives(count: int, numbers: Sequence[int]) -> tuple[str, ...]:
        left = list(ADJECTIVES)
        return tuple(left.pop(number % len(left)) for number in numbers[: count % (most + 1)])

    v, a, w, p, b, c, *rest = numbers
    first = adjectives(a, rest[:most]), chosen(tuple(VEHICLES), v)
    second = adjectives(c, rest[most:]), chosen(tuple(BUILDINGS), b)
    return first, chosen(tuple(VERBS), w), chosen(tuple(PREPOSITIONS), p), second


def is_held_out(meaning: Meaning) -> bool:
    digest = hashlib.sha256(repr(meaning).encode()).hexdigest()
    return meaning == EXAMPLE or int(digest[:8], 16) % HELD_OUT == 0


@cache
def _numbers() -> dict[str, int]:
    return {word: number for number, word in enumerate(vocabulary())}


def _batch(pairs: Sequence[Pair], width: int) -> Batch:
    numbers = _numbers()
    tokens = torch.full((len(pairs), width), numbers[END])
    targets = torch.full_like(tokens, IGNORE)
    for row, pair in enumerate(pairs):
        words = torch.tensor([numbers[word] for word in (*pair.english, ARROW, *pair.chinese)])
        start = len(pair.english)
        tokens[row, : len(words)] = words
        targets[row, start : len(words) - 1] = words[start + 1 :]
    return Batch(tokens, targets)
