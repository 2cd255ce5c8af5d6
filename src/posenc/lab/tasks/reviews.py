"""Who describes whom, in English: name the adjective of every noun and the noun of every adjective.

    tokens    [ the film is very boring , but the actors' acting    is brilliant . ]      bidirectional; a token is a word
    targets   [ .   boring . .   film   . .   .   .       brilliant .  acting    . ]

As in `descriptions`, any adjective suits any noun, so the words alone do not say which belong together. The adjective
stands after its noun (the film is boring) or before it (it was a boring film), so the nearest noun is not always the right
one.

    sentence   [S B] clause {joiner clause} .      as many clauses as the length takes
    clause     D N V A | D N V I A | D O N V A | D O N V I A | S L D A N | it V a A T | it V a J A T
    joiner     , | , but | , and | but | and | while
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import Field

from posenc.lab.say import say
from posenc.lab.tasks.describing import Describing, Sentence
from posenc.lab.tasks.task import Batch
from posenc.support.languages import Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from posenc.lab.text.corpus import Corpus

# fmt: off
THINGS = (
    "film", "story", "book", "song", "meal", "hotel", "room", "phone", "car", "dog", "cat", "house", "city", "park", "game",
    "teacher",
)  # "a" may stand before them
NOUNS = (*THINGS, "food", "service", "music", "acting", "weather", "coffee", "ending", "view")
ADJECTIVES = (
    "good", "bad", "great", "boring", "brilliant", "awful", "terrible", "excellent", "nice", "funny", "sad", "happy",
    "slow", "fast", "cheap", "expensive", "old", "new", "big", "small", "long", "short", "loud", "quiet", "clean",
    "dirty", "warm", "cold", "friendly", "rude", "beautiful", "ugly", "strange", "simple", "strong", "weak",
    "interesting", "exciting", "fresh", "perfect",
)
SLOTS = {
    "N": NOUNS, "T": THINGS, "A": ADJECTIVES,
    "D": ("the", "the", "the", "this", "that", "my", "our", "their"),
    "O": ("actors'", "film's", "singer's", "writer's", "hotel's", "city's", "friend's"),
    "V": ("is", "was", "seems", "looks"),
    "I": ("very", "really", "quite", "so", "too", "not"),
    "J": ("very", "really"),
    "S": ("i", "we", "they"), "B": ("think", "thought", "said"),
    "L": ("like", "love", "liked", "loved", "hated", "saw", "had"),
}  # what each letter stands for; nouns and adjectives occur once in a sentence
# fmt: on
CLAUSES = ("D N V A", "D N V I A", "D O N V A", "D O N V I A", "S L D A N", "it V a A T", "it V a J A T")
FIRST = (*CLAUSES, *(f"S B {clause}" for clause in CLAUSES))
LATER = tuple(f"{joiner} {clause}" for joiner in (",", ", but", ", and", "but", "and", "while") for clause in CLAUSES)
END = "."
SHORTEST, LONGEST = 5, 40  # words
AT_ONCE = 256  # random numbers
HELD_OUT = 5  # one combination of nouns and adjectives in this many is held out
EXAMPLE = "the film is very boring , but the actors' acting is brilliant"  # sentences with both of its pairs are held out
EXAMPLE_PAIRS = (("film", "boring"), ("acting", "brilliant"))

Spelled = tuple[str, ...]  # the words of a sentence


@cache
def vocabulary() -> tuple[str, ...]:
    """Every word of every sentence, in order; a word's token is its index."""
    fixed = {word for pattern in (*FIRST, *LATER) for word in pattern.split()} - SLOTS.keys()
    return tuple(sorted({*fixed, "an", *(word for words in SLOTS.values() for word in words), END}))


class Reviews(Describing):
    """An item is a sentence. One combination of nouns and adjectives in five is held out, and every sentence that says
    boring film and brilliant acting; the first scored sentence says so, if the length permits.

    Half of the training batches have `length` words; the others have a uniform number up to it.
    """

    name: Literal["reviews"] = "reviews"
    length: int = Field(default=20, ge=SHORTEST)
    lengths: tuple[int, ...] = (13, 20, 28)

    title: ClassVar[Words] = say("Who describes whom, in English")
    words = vocabulary()
    example = EXAMPLE_PAIRS
    shortest, longest = SHORTEST, LONGEST

    def training_batch(self, rows: int, random: torch.Generator, text: Corpus | None) -> Batch:
        numbers = Numbers(random)
        length = self.length if numbers.below(2) else SHORTEST + numbers.below(self.length + 1 - SHORTEST)
        return self.batch([paired(words) for words in _drawn(rows, length, numbers, held_out=False)])

    def scored(self, length: int, text: Corpus | None) -> Batch:
        numbers = Numbers(torch.Generator().manual_seed(length))  # depends on the length only, not on the seed of training
        drawn = [*_examples(length, numbers), *_drawn(self.held_out, length, numbers, held_out=True)][: self.held_out]
        return replace(self.batch([paired(words) for words in drawn]), item=torch.arange(len(drawn)))


class Numbers:
    """Random choices from a generator of torch; the same on every machine and for every version of Python."""

    def __init__(self, random: torch.Generator) -> None:
        self.random, self.left = random, list[int]()

    def below(self, n: int) -> int:
        """One of 0 … n-1."""
        if not self.left:
            self.left = torch.randint(2**53, (AT_ONCE,), generator=self.random).tolist()
        return self.left.pop() % n

    def of(self, some: Sequence[str]) -> str:
        return some[self.below(len(some))]


@cache
def _fitting(words: int, patterns: tuple[str, ...] = LATER) -> tuple[str, ...]:
    """The patterns after which later ones can fill exactly that many words."""
    rests = ((pattern, words - len(pattern.split())) for pattern in patterns)
    return tuple(pattern for pattern, rest in rests if rest == 0 or (rest > 0 and _fitting(rest)))


def _written(length: int, numbers: Numbers, begun: str = "") -> Spelled:
    """A random sentence of that many words."""
    pattern = begun or numbers.of(_fitting(length - 1, FIRST))
    while rest := length - 1 - len(pattern.split()):
        pattern = f"{pattern} {numbers.of(_fitting(rest))}"
    words = list[str]()
    for slot in pattern.split():
        known = SLOTS.get(slot, (slot,))
        words.append(numbers.of([word for word in known if word not in words] if slot in "NTA" else known))
        if words[-2:-1] == ["a"] and words[-1][0] in "aeiou":
            words[-2] = "an"
    return (*words, END)


def _drawn(rows: int, length: int, numbers: Numbers, *, held_out: bool) -> list[Spelled]:
    drawn = list[Spelled]()
    while len(drawn) < rows:
        words = _written(length, numbers)
        if is_held_out(words) == held_out:
            drawn.append(words)
    return drawn


def _examples(length: int, numbers: Numbers) -> list[Spelled]:
    """A sentence of that length that begins with the example, if there is one."""
    rest = length - 1 - len(EXAMPLE.split())
    return [_written(length, numbers, EXAMPLE)] if rest == 0 or (rest > 0 and _fitting(rest)) else []


def paired(words: Spelled) -> Sentence:
    """The sentence with its pairs: a clause has one noun and one adjective."""
    nouns, adjectives = ([n for n, word in enumerate(words) if word in some] for some in (NOUNS, ADJECTIVES))
    return Sentence(words, tuple(zip(nouns, adjectives, strict=True)))


def is_held_out(words: Spelled) -> bool:
    pairs = paired(words).words_of_pairs
    digest = hashlib.sha256(" ".join(map(" ".join, pairs)).encode()).hexdigest()
    return set(EXAMPLE_PAIRS) <= set(pairs) or int(digest[:8], 16) % HELD_OUT == 0
