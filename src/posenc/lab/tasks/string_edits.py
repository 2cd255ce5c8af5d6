"""Work out nested operations on strings of letters: the kind of PCFG SET.

    reverse append a b , shift c d e        c e d b a

    reverse x      from the end to the beginning      append x , y      x y
    shift x        the first letter to the end        prepend x , y     y x
    swap x         the first letter for the last      first x , y       x
    echo x         the last letter twice              second x , y      y

A length is the number of operations; strings have one to three letters. Hupkes et al. 2020, arXiv 1908.08351, call longer
ones than trained on productivity. Their repeat is left out: repeated n times, an answer has 2^n times its letters.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from posenc.lab.say import say
from posenc.lab.tasks.worded import Example, Numbers, Worded
from posenc.support.languages import Words

if TYPE_CHECKING:
    from collections.abc import Callable

LETTERS, MOST = tuple("abcdefgh"), 3  # letters of a string
COMMA = ","
ONE: dict[str, Callable[[list[str]], list[str]]] = {
    "reverse": lambda x: x[::-1],
    "shift": lambda x: x[1:] + x[:1],
    "swap": lambda x: x if len(x) < 2 else [x[-1], *x[1:-1], x[0]],
    "echo": lambda x: x + x[-1:],
}
TWO: dict[str, Callable[[list[str], list[str]], list[str]]] = {
    "append": lambda x, y: x + y,
    "prepend": lambda x, y: y + x,
    "first": lambda x, y: x,
    "second": lambda x, y: y,
}


class StringEdits(Worded):
    name: Literal["string_edits"] = "string_edits"
    length: int = Field(default=6, ge=1)
    lengths: tuple[int, ...] = (6, 8, 12, 16)

    title: ClassVar[Words] = say("Operations on strings")
    unit: ClassVar[Words] = say("operations")
    words: ClassVar[tuple[str, ...]] = (*ONE, *TWO, COMMA, *LETTERS)

    def tokens(self, length: int) -> int:
        """Every operation but the innermost of two strings: a comma and a string, in the prompt and in the answer."""
        return 2 + length + length + 2 * MOST * (length + 1)

    def example(self, length: int, numbers: Numbers) -> Example:
        """Operations are uniform; one of two strings divides those that are left uniformly."""
        if length == 0:
            letters = [numbers.of(LETTERS) for _ in range(1 + numbers.below(MOST))]
            return Example(letters, letters)
        name = numbers.of((*ONE, *TWO))
        if name in ONE:
            x = self.example(length - 1, numbers)
            return Example([name, *x.prompt], ONE[name](x.answer))
        inner = numbers.below(length)
        x, y = self.example(inner, numbers), self.example(length - 1 - inner, numbers)
        return Example([name, *x.prompt, COMMA, *y.prompt], TWO[name](x.answer, y.answer))

    def different(self, length: int) -> int:
        return _expressions(length)

    def chance(self, length: int) -> float:
        """Chance: uniform over letters for the shortest answer, of one letter; its end is known."""
        return 1 / len(LETTERS)


@cache
def _expressions(length: int) -> int:
    if length == 0:
        return sum(len(LETTERS) ** n for n in range(1, MOST + 1))
    pairs = sum(_expressions(n) * _expressions(length - 1 - n) for n in range(length))
    return len(ONE) * _expressions(length - 1) + len(TWO) * pairs
