"""Windows with an answer that stands in them once: what a trained model finds in long text, without training.

    passkey     one number in five sentences that repeat                    Mohtashami and Jaggi 2023, arXiv 2305.16300
    needle      one sentence "The number of the barn is 41920." among sentences that differ   RULER, arXiv 2404.06654
    keys        such a sentence about every few sentences; one is asked for
    variables   "Let A be 41920.", "Let B be A.", … and a second such chain; the last name of the first is asked for

    window      [ filler … fact … filler   question   answer ]     up to n tokens, less by less than one sentence
    exact       1 if each token of the answer is the model's first choice after those before it: greedy decoding is right
    answer      minus the mean log-probability of the answer's tokens, in nats

The text is plain, without a chat template: the question ends with the beginning of the sentence that the answer ends.
Sample s of S has its fact at depth (s + ½)/S of the filler. Its names and numbers are the same at every length. All
sentences are posenc's own.
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

REPEATED = (
    "The mill stands by the river.",
    "The road goes up the hill.",
    "The wind is cold tonight.",
    "A dog barks behind the wall.",
    "We go on in the morning.",
)
WHO = (
    "The baker",
    "A tired clerk",
    "My uncle",
    "The young doctor",
    "An old sailor",
    "The teacher",
    "Our neighbour",
    "The gardener",
)
DID = ("carried", "painted", "repaired", "sold", "found", "described", "wanted", "forgot")
WHAT = (
    "a wooden chair",
    "the grey coat",
    "two letters",
    "the broken clock",
    "some apples",
    "a map",
    "the long rope",
    "her bicycle",
)
WHEN = (
    "before noon",
    "on Monday",
    "after the rain",
    "in the winter",
    "last year",
    "without a word",
    "near the station",
    "at once",
)
PLACES = (
    "barn",
    "bakery",
    "bridge",
    "castle",
    "chapel",
    "church",
    "farm",
    "forge",
    "garden",
    "harbour",
    "hospital",
    "hotel",
    "house",
    "inn",
    "library",
    "market",
    "museum",
    "office",
    "palace",
    "prison",
    "school",
    "shop",
    "stable",
    "theatre",
    "tower",
    "tunnel",
    "village",
    "warehouse",
    "well",
    "windmill",
)
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
HOPS = 2  # from the first name of a chain to the last one
EVERY = 6  # sentences of filler for each further key

Rows = Sequence[str]


@dataclass(frozen=True)
class Planted:
    """Sentences that stand in the filler in this order, and the sentence that the answer ends.

    facts   those that the answer follows from stand at the depth of the sample; `others` are spread over the whole
    """

    facts: Rows
    others: Rows
    question: str
    answer: str


def passkey(draw: random.Random, _: int) -> Planted:
    key = _number(draw)
    fact = f"The pass key is {key}. Remember it. {key} is the pass key."
    return Planted([fact], [], "What is the pass key? The pass key is", f" {key}.")


def needle(draw: random.Random, _: int) -> Planted:
    return keys(draw, 0)


def keys(draw: random.Random, sentences: int) -> Planted:
    """One place in EVERY sentences has a number of its own, up to all places that have a name."""
    places = draw.sample(PLACES, len(PLACES))
    numbers = draw.sample(range(10_000, 100_000), len(places))
    facts = [f"The number of the {place} is {number}." for place, number in zip(places, numbers, strict=True)]
    place = places[0]
    others = facts[1 : 1 + sentences // EVERY]
    return Planted(facts[:1], others, f"What is the number of the {place}? The number of the {place} is", f" {numbers[0]}.")


def variables(draw: random.Random, _: int) -> Planted:
    names, number, other = draw.sample(LETTERS, 2 * (HOPS + 1)), _number(draw), _number(draw)
    chain, not_asked = names[: HOPS + 1], names[HOPS + 1 :]
    question = f"Which number is {chain[-1]}? {chain[-1]} is"
    return Planted(_chain(chain, number), _chain(not_asked, other), question, f" {number}.")


def _number(draw: random.Random) -> int:
    return draw.randrange(10_000, 100_000)


def _chain(names: Sequence[str], number: int) -> list[str]:
    return [f"Let {name} be {before}." for name, before in zip(names, [str(number), *names], strict=False)]


TASKS: dict[str, Callable[[random.Random, int], Planted]] = {
    "passkey": passkey,
    "needle": needle,
    "keys": keys,
    "variables": variables,
}


def filler(task: str, count: int, draw: random.Random) -> list[str]:
    if task == "passkey":
        return [REPEATED[n % len(REPEATED)] for n in range(count)]
    return [" ".join(map(draw.choice, (WHO, DID, WHAT, WHEN))) + "." for _ in range(count)]


def written(task: str, sample: int, samples: int, sentences: int) -> tuple[str, str]:
    """A window of that many sentences of filler up to the end of its question, and the answer.

    Facts stand at the depth of the sample, in their order, one sentence of filler between them while there is one. The
    others are spread evenly.
    """
    planted = TASKS[task](random.Random(f"{task} {sample}"), sentences)
    sentences_written = filler(task, sentences, random.Random(f"filler {task} {sample}"))
    first = min(int((sample + 0.5) / samples * (sentences + 1)), max(0, sentences - len(planted.facts) + 1))
    at = [(min(first + n, sentences), fact) for n, fact in enumerate(planted.facts)]
    at += [((2 * n + 1) * sentences // (2 * len(planted.others)), other) for n, other in enumerate(planted.others)]
    for place, fact in sorted(at, key=lambda pair: pair[0], reverse=True):
        sentences_written.insert(place, fact)
    return " ".join([*sentences_written, planted.question]), planted.answer


@dataclass(frozen=True)
class Retrieved:
    """One window. `end` is the number of its sample; `key` names the model, the task and the settings."""

    key: str
    method: str
    length: int
    end: int
    exact: int
    answer: float | None
    seconds: float


@dataclass(frozen=True)
class Retrieval:
    """The windows of a task, with the tokenizer of the model that reads them."""

    task: str
    tokenizer: Any
    samples: int = 10

    row: ClassVar[type[Retrieved]] = Retrieved

    def check(self, lengths: Sequence[int]) -> None:
        """Raises ValueError for lengths that do not hold the facts and the question."""
        least = max(len(self._tokens(self._text(sample, 0))) for sample in range(self.samples))
        for n in lengths:
            if n < least:
                raise ValueError(f"--lengths: expected at least {least} tokens, which {self.task} needs, got {n}")

    def ends(self) -> list[int]:
        return list(range(self.samples))

    def identity(self) -> bytes:
        """Names the windows and what reads them."""
        read = [self._tokens(self._text(sample, 2 * len(PLACES))) for sample in range(self.samples)]
        return repr((self.task, self.samples, read)).encode()

    def window(self, length: int, sample: int) -> tuple[Tensor, int]:
        """At most `length` tokens, and how many of them, the last ones, are the answer."""

        def tokens(sentences: int) -> int:
            return len(self._tokens(self._text(sample, sentences)))

        sentences = bisect.bisect_right(range(length + 1), length, key=tokens) - 1
        prompt, answer = written(self.task, sample, self.samples, sentences)
        before, whole = self._tokens(prompt), self._tokens(prompt + answer)
        same = next((n for n, (a, b) in enumerate(zip(before, whole, strict=False)) if a != b), len(before))
        return torch.tensor(whole), len(whole) - same

    def measured(self, model: nn.Module, length: int, sample: int) -> dict[str, float]:
        """Of one pass: whether every token of the answer is the first choice, and their mean loss in nats."""
        tokens, n_answer = self.window(length, sample)
        window = tokens.to(next(model.parameters()).device)
        logits = model(window[None], logits_to_keep=n_answer + 1, use_cache=False).logits[0, -n_answer - 1 : -1].float()
        answer = window[-n_answer:]
        loss = nn.functional.cross_entropy(logits.double(), answer)
        return {"exact": int((logits.argmax(-1) == answer).all()), "answer": loss.item()}

    def _text(self, sample: int, sentences: int) -> str:
        return "".join(written(self.task, sample, self.samples, sentences))

    def _tokens(self, text: str) -> list[int]:
        """With what the tokenizer puts before every text, and without an end token."""
        begin = [token for token in self.tokenizer("").input_ids if token == self.tokenizer.bos_token_id]
        return begin + list(self.tokenizer(text, add_special_tokens=False, verbose=False).input_ids)
