"""Carry out commands: the kind of SCAN, in words of our own.

    walk left twice and jump        L W L W J
    jump after turn around right    R R R R J

    command  ─►  phrase { and phrase | after phrase }           "… after b": b before all of …
    phrase   ─►  (walk | look | run | jump) [ way ] [ twice | thrice ]   or   turn way [ twice | thrice ]
    way      ─►  [ opposite | around ] (left | right)           left: L, opposite: L L, around: four times L and the action

A length is the number of actions. Trained on short ones and tested on long ones, it is the length split of Lake and Baroni
2018, arXiv 1711.00350, whose commands have two phrases at most; here there are as many as fill the length.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import ClassVar, Literal, NamedTuple

from pydantic import Field

from posenc.lab.say import say
from posenc.lab.tasks.worded import Example, Numbers, Worded
from posenc.support.languages import Words

ACTIONS = {"walk": "W", "look": "O", "run": "U", "jump": "J", "turn": ""}
TURNS = {"left": "L", "right": "R"}
TIMES = {"": 1, "twice": 2, "thrice": 3}
WAYS = ("", "opposite", "around")
AND, AFTER = "and", "after"


class Phrase(NamedTuple):
    words: tuple[str, ...]
    actions: str


class Actions(Worded):
    name: Literal["actions"] = "actions"
    length: int = Field(default=20, ge=1)
    lengths: tuple[int, ...] = (20, 24, 32, 48)

    title: ClassVar[Words] = say("Commands to actions")
    unit: ClassVar[Words] = say("actions")
    words: ClassVar[tuple[str, ...]] = (*ACTIONS, *TURNS, *("twice", "thrice", "opposite", "around", AND, AFTER), *"WOUJLR")

    def tokens(self, length: int) -> int:
        return 4 * length + 1  # "turn left and turn left": three words an action

    def example(self, length: int, numbers: Numbers) -> Example:
        """Each phrase is uniform among those that fit into the actions that are left."""
        words, done = list[str](), ""
        while len(done) < length:
            phrase = numbers.of(_fitting(length - len(done)))
            joint = numbers.of((AND, AFTER))
            words += [joint, *phrase.words] if words else phrase.words
            done = phrase.actions + done if joint == AFTER else done + phrase.actions
        return Example(words, list(done))

    def different(self, length: int) -> int:
        return _commands(length)

    def chance(self, length: int) -> float:
        """Chance: uniform over actions; the number of actions is known."""
        return 6.0**-length


@cache
def _phrases() -> tuple[Phrase, ...]:
    phrases = list[Phrase]()
    for (verb, action), way, (side, turn), (times, count) in product(ACTIONS.items(), WAYS, TURNS.items(), TIMES.items()):
        once = {"": turn + action, "opposite": turn * 2 + action, "around": (turn + action) * 4}[way]
        phrases.append(Phrase(tuple(word for word in (verb, way, side, times) if word), once * count))
    straight = [(verb, action) for verb, action in ACTIONS.items() if action]
    for (verb, action), (times, count) in product(straight, TIMES.items()):
        phrases.append(Phrase(tuple(word for word in (verb, times) if word), action * count))
    return tuple(phrases)


@cache
def _fitting(most: int) -> tuple[Phrase, ...]:
    return tuple(phrase for phrase in _phrases() if len(phrase.actions) <= most)


@cache
def _commands(length: int) -> int:
    """The number of commands with that many actions: a last phrase, alone or joined to a shorter command."""
    sizes = [len(phrase.actions) for phrase in _phrases()]
    return sizes.count(length) + 2 * sum(_commands(length - size) for size in sizes if size < length)
