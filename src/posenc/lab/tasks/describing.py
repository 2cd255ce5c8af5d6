"""Who describes whom: what the tasks of each language share. Nouns ask for their adjectives, adjectives for their nouns.

words     [ this film is boring , but the acting    is brilliant . ]
targets   [ .    boring . film  . .   .   brilliant .  acting    . ]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import torch
from pydantic import model_validator

from posenc.lab.say import say
from posenc.lab.tasks.task import IGNORE, Batch, Link, Task
from posenc.support.languages import Words


class Sentence(NamedTuple):
    """The words, and for each pair of noun and adjective where they stand."""

    words: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def words_of_pairs(self) -> list[tuple[str, str]]:
        """The words of the pairs."""
        return [(self.words[noun], self.words[adjective]) for noun, adjective in self.pairs]


class Describing(Task):
    """Subclasses give the words, the lengths at which there are sentences, and the sentences."""

    words: ClassVar[tuple[str, ...]]  # in order: a word's token is its index
    example: ClassVar[tuple[tuple[str, str], ...]]  # pairs; sentences with all of them are held out, and show attention
    shortest: ClassVar[int]
    longest: ClassVar[int]
    unit: ClassVar[Words] = say("words")
    measure: ClassVar[Literal["bits", "exact"]] = "exact"
    causal: ClassVar[bool] = False
    shows_attention: ClassVar[bool] = True

    @model_validator(mode="after")
    def _sentences_exist(self) -> Describing:
        if self.lengths[0] < self.shortest or self.lengths[-1] > self.longest:
            raise ValueError(f"lengths: expected from {self.shortest} to {self.longest} words, got {self.lengths}")
        return self

    @property
    def vocabulary(self) -> int:
        return len(self.words)

    @cached_property
    def token(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    def tokens(self, length: int) -> int:
        return length

    def chance(self, length: int) -> float:
        return 0.0

    def batch(self, sentences: Sequence[Sentence]) -> Batch:
        tokens = torch.tensor([[self.token[word] for word in sentence.words] for sentence in sentences])
        targets = torch.full_like(tokens, IGNORE)
        for row, sentence in enumerate(sentences):
            for noun, adjective in sentence.pairs:
                targets[row, noun], targets[row, adjective] = tokens[row, adjective], tokens[row, noun]
        links = tuple(link for row, sentence in enumerate(sentences) for link in self._links(row, sentence))
        return Batch(tokens, targets, links=links)

    def _links(self, row: int, sentence: Sentence) -> Iterator[Link]:
        """Both directions of the pairs of the example."""
        places = dict(zip(sentence.words_of_pairs, sentence.pairs, strict=True))
        if not set(self.example) <= places.keys():
            return
        for pair in self.example:
            noun, adjective = places[pair]
            yield Link(f"{pair[1]}→{pair[0]}", row, adjective, noun)
            yield Link(f"{pair[0]}→{pair[1]}", row, noun, adjective)
