"""Who describes whom: in short Chinese sentences, name the adjective of every noun and the noun of every adjective.

    tokens    [ 这部 电影 很 无聊 ， 但 演员 表演 精彩 。 ]      bidirectional; a token is a word
    targets   [ .   无聊 .  电影 . .  .   精彩 表演 . ]

Any adjective suits any noun, so the words alone do not say which belong together: a model that cannot see order can only
guess among the nouns of the sentence. The adjective stands after its noun (电影 很 无聊, 演员 表演 精彩) or before it
(有 精彩 的 表演), so the nearest noun is not always the right one.

    sentence   [opening]  clause {joiner clause}  。          2 to 6 clauses
    opening    我 觉得 | 他 说 | 昨天 听说
    joiner     ， | ， 但 | ， 而
    clause     thing 很 A | part 很 A | owner part A | 这部 thing 很 A | 那部 thing 很 A | owner part 很 A | 有 A 的 noun
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import torch
from pydantic import Field

from posenc.lab.say import say
from posenc.lab.tasks.describing import Describing, Sentence
from posenc.lab.tasks.task import Batch
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.lab.text.corpus import Corpus

THINGS = ("电影", "小说", "动画", "话剧", "纪录片", "电视剧")
OWNERS = {"表演": "演员", "文笔": "作者", "手法": "导演", "嗓音": "歌手", "台词": "编剧", "画面": "摄影师"}
NOUNS = (*THINGS, *OWNERS)
ADJECTIVES = ("无聊", "精彩", "感人", "平淡", "新颖", "老套", "自然", "生硬", "有趣", "细腻", "粗糙", "出色")
OPENINGS = {0: ("",), 2: ("我 觉得", "他 说", "昨天 听说")}
JOINERS = {1: ("，",), 2: ("， 但", "， 而")}
CLAUSES = {3: ("T 很 A", "P 很 A", "O P A"), 4: ("这部 T 很 A", "那部 T 很 A", "O P 很 A", "有 A 的 T", "有 A 的 P")}
END = "。"
FEWEST, MOST = 2, 6  # clauses
SHORTEST, LONGEST = 8, 36  # words at which there are sentences, without gaps
HELD_OUT = 5  # one combination of nouns and adjectives in this many is held out
EXAMPLE = (("电影", "无聊"), ("表演", "精彩"))  # of the founding notes; sentences with both are held out
EXAMPLE_CLAUSES = ("这部 T 很 A", "O P A")
EXAMPLE_JOINER = "， 但"


class Skeleton(NamedTuple):
    """Numbers of words: of the opening, of every clause, and of the joiners between them."""

    opening: int
    clauses: tuple[int, ...]
    joiners: tuple[int, ...]


@cache
def vocabulary() -> tuple[str, ...]:
    """Every word of every sentence, in order; a word's token is its index."""
    patterns = [piece for pieces in (*OPENINGS.values(), *JOINERS.values(), *CLAUSES.values()) for piece in pieces]
    fixed = {word for pattern in patterns for word in pattern.split()} - set("TPOA")
    return tuple(sorted({*fixed, *NOUNS, *OWNERS.values(), *ADJECTIVES, END}))


class Descriptions(Describing):
    """An item is a sentence. One combination of nouns and adjectives in five is held out, and every sentence that says
    电影 无聊 and 表演 精彩; the first scored sentence says so, if the length permits.

    Half of the training batches have `length` words; the others have a uniform number up to it.
    """

    name: Literal["descriptions"] = "descriptions"
    length: int = Field(default=16, ge=SHORTEST)
    lengths: tuple[int, ...] = (10, 16, 24)

    title: ClassVar[Words] = say("Who describes whom")
    words = vocabulary()
    example = EXAMPLE
    shortest, longest = SHORTEST, LONGEST

    def training_batch(self, rows: int, random: torch.Generator, text: Corpus | None) -> Batch:
        length = self.length if _below(2, random) else SHORTEST + _below(self.length + 1 - SHORTEST, random)
        return self.batch(_drawn(rows, length, random, held_out=False))

    def scored(self, length: int, text: Corpus | None) -> Batch:
        random = torch.Generator().manual_seed(length)  # depends on the length only, not on the seed of training
        sentences = [*_examples(length, random), *_drawn(self.held_out, length, random, held_out=True)][: self.held_out]
        return replace(self.batch(sentences), item=torch.arange(len(sentences)))


@cache
def skeletons(length: int) -> tuple[Skeleton, ...]:
    return tuple(
        Skeleton(opening, clauses, joiners)
        for count in range(FEWEST, MOST + 1)
        for opening in OPENINGS
        for clauses in product(CLAUSES, repeat=count)
        for joiners in product(JOINERS, repeat=count - 1)
        if opening + sum(clauses) + sum(joiners) + 1 == length
    )


def _drawn(rows: int, length: int, random: torch.Generator, *, held_out: bool) -> list[Sentence]:
    sentences = list[Sentence]()
    possible = skeletons(length)
    while len(sentences) < rows:
        for numbers in torch.randint(2**31, (rows, 2 + 4 * MOST), generator=random).tolist():
            sentence = _written(possible[numbers[0] % len(possible)], numbers[1:])
            if is_held_out(sentence) == held_out:
                sentences.append(sentence)
    return sentences[:rows]


def _examples(length: int, random: torch.Generator) -> list[Sentence]:
    """A sentence of that length that begins like the note's, if there is one."""
    sizes = tuple(len(clause.split()) for clause in EXAMPLE_CLAUSES)
    joiner = len(EXAMPLE_JOINER.split())
    possible = [s for s in skeletons(length) if s.clauses[:2] == sizes and s.joiners[0] == joiner]
    if not possible:
        return []
    first, *numbers = torch.randint(2**31, (2 + 4 * MOST,), generator=random).tolist()
    return [_written(possible[first % len(possible)], numbers, EXAMPLE)]


def _written(skeleton: Skeleton, numbers: Sequence[int], example: tuple[tuple[str, str], ...] = ()) -> Sentence:
    """The sentence of these random numbers: one for the opening, then four for every clause; begins like the example."""
    opening, taken = OPENINGS[skeleton.opening], {word for pair in example for word in pair}
    words = opening[numbers[0] % len(opening)].split()
    nouns, adjectives = ([word for word in some if word not in taken] for some in (NOUNS, ADJECTIVES))
    pairs = list[tuple[int, int]]()
    for n, size in enumerate(skeleton.clauses):
        a, b, c, d = numbers[1 + 4 * n : 5 + 4 * n]
        if n:
            joiners = JOINERS[skeleton.joiners[n - 1]]
            words += (EXAMPLE_JOINER if n < len(example) else joiners[d % len(joiners)]).split()
        if n < len(example):
            clause, (noun, adjective) = EXAMPLE_CLAUSES[n], example[n]
        else:
            clause = CLAUSES[size][a % len(CLAUSES[size])]
            fitting = [word for word in nouns if (word in THINGS) == ("T" in clause)]
            noun, adjective = fitting[b % len(fitting)], adjectives[c % len(adjectives)]
            nouns.remove(noun)
            adjectives.remove(adjective)
        words_of_parts = {"T": noun, "P": noun, "O": OWNERS.get(noun, ""), "A": adjective}
        begin, parts = len(words), clause.split()
        words += [words_of_parts.get(part, part) for part in parts]
        pairs.append((begin + next(i for i, part in enumerate(parts) if part in "TP"), begin + parts.index("A")))
    return Sentence((*words, END), tuple(pairs))


def is_held_out(sentence: Sentence) -> bool:
    digest = hashlib.sha256(" ".join(map("".join, sentence.words_of_pairs)).encode()).hexdigest()
    return set(EXAMPLE) <= set(sentence.words_of_pairs) or int(digest[:8], 16) % HELD_OUT == 0


def _below(n: int, random: torch.Generator) -> int:
    return int(torch.randint(n, (), generator=random))
