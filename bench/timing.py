"""Times contenders in rounds. They take turns in random order, so that a slow period of the machine affects all of them.

    ratio of a round = a contender's time / another's in the same round;   reported: median and quartiles over the rounds

Slow contenders skip rounds once their time is used; the contenders that others are compared with run in every round.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.cpu_contention import TICK, Contention
from posenc.pictures.process import Spread, no_garbage_collection, spread

FEWEST, MOST = 5, 400  # rounds of a contender
LONG, FEWEST_LONG = 3.0, 2  # if one turn takes this many seconds, fewer rounds are enough
PATIENCE = 3  # on a busy machine a contender gets up to this many times its seconds, to reach enough undisturbed rounds


@dataclass
class Round:
    seconds: dict[str, float] = field(default_factory=dict)
    undisturbed: bool = True


@dataclass(frozen=True)
class Measured:
    """`rounds` are those that count. `kept`: nearly all were disturbed, so disturbed rounds count too."""

    rounds: list[Round]
    disturbed: int
    kept: bool

    def times(self, name: str) -> Spread | None:
        return spread(r.seconds[name] for r in self.rounds if name in r.seconds)

    def ratio(self, name: str, base: str) -> Spread | None:
        """Round by round; not the quotient of two medians."""
        return spread(r.seconds[name] / r.seconds[base] for r in self.rounds if {name, base} <= r.seconds.keys())


def take_turns(
    calls: dict[str, Callable[[], object]],
    floor: str,
    seconds: float,
    *,
    always: frozenset[str] = frozenset(),
    repeat: int = 1,
    fewest: int = FEWEST,
    most: int = MOST,
    clock: Callable[[], float] = time.perf_counter,
    settle: Callable[[], object] = lambda: None,
    contention: Contention | None = None,
    report: Callable[[float], None] = lambda share: None,
) -> Measured:
    """Runs rounds for about `seconds` per contender; the floor and those in `always` run in every round. All are warm.

    `settle` waits until the device has finished. Time per call: a turn's time over its `repeat` calls.
    """
    shuffle, contention = random.Random(0), contention or Contention()
    turns, undisturbed_turns = dict.fromkeys(calls, 0), dict.fromkeys(calls, 0)
    spent, undisturbed_seconds = dict.fromkeys(calls, 0.0), dict.fromkeys(calls, 0.0)
    rounds, unread = list[Round](), list[Round]()
    contenders = [name for name in calls if name != floor] or [floor]
    contention.undisturbed()
    begun = clock()

    def least(name: str) -> int:
        return min(fewest, FEWEST_LONG) if spent[name] > LONG * turns[name] else fewest

    def needs_turns(name: str) -> bool:
        if turns[name] >= most:
            return False
        complete = undisturbed_turns[name] >= least(name) and undisturbed_seconds[name] >= seconds
        given_up = turns[name] >= least(name) and spent[name] >= seconds * PATIENCE
        return not (complete or given_up)

    def read_contention() -> None:
        undisturbed = contention.undisturbed()
        for r in unread:
            r.undisturbed = undisturbed
            for name, taken in r.seconds.items() if undisturbed else ():
                undisturbed_turns[name] += 1
                undisturbed_seconds[name] += taken * repeat
        unread.clear()

    with no_garbage_collection():
        while any(needs_turns(name) for name in contenders):
            order = [name for name in calls if name == floor or name in always or needs_turns(name)]
            shuffle.shuffle(order)
            this_round = Round()
            for name in order:
                settle()
                start = clock()
                for _ in range(repeat):
                    calls[name]()
                settle()
                this_round.seconds[name] = (clock() - start) / repeat
                turns[name] += 1
                spent[name] += this_round.seconds[name] * repeat
            rounds.append(this_round)
            unread.append(this_round)
            if clock() - begun >= TICK:
                read_contention()
                begun = clock()
                report(min(min(spent[name] / max(seconds, 1e-9), turns[name] / fewest, 1.0) for name in contenders))
        read_contention()
    undisturbed = [r for r in rounds if r.undisturbed]
    enough = all(undisturbed_turns[name] >= least(name) for name in calls)
    return Measured(undisturbed if enough else rounds, len(rounds) - len(undisturbed), kept=not enough)
