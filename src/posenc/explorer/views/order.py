"""Outputs of attention, with and without positions, for the orders of a sentence, which the reader may type.

Up to five words all orders are computed at once; of a longer sentence as written, reversed, all but the last reversed,
and the one that is asked for.

    distance   max|A(PX + p) − P·A(X + p)|   the words move, the positions stay
    together   max|A(P(X + p)) − P·A(X + p)| the positions move with the words

Legend: t tokens, d channels, h heads, r re-orderings, i query, j key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from posenc.catalogue.description import requested
from posenc.catalogue.lookup import arguments_of, directed
from posenc.explorer.data import Data, computed
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.parameters import encodings
from posenc.explorer.sentences import opening, words_of
from posenc.explorer.template import program

ORDER = 10

SENTENCES = ("我爱你", "I love you")
MOST_AT_ONCE = 5  # words: 120 orders
ARRAYS = ("orders", "before", "after", "weights_before", "weights_after", "distance", "together", "rnn")


if TYPE_CHECKING:
    Method = str
else:
    Method = encodings(lambda entry: "causal" not in entry.needs)


class Parameters(Base):
    sentence: str = opening(*SENTENCES)
    encoding: Method = "nope"
    causal: bool = False
    layers: int = Field(default=1, ge=1, le=2)
    asked: str = Field(default="", max_length=80, pattern=r"^(\d+(,\d+)*)?$")  # an order of a longer sentence


def data(params: Parameters) -> Data:
    words = words_of(params.sentence)
    return computed(_python(params, words), ARRAYS, {"words": list(words)})


def _some(params: Parameters, count: int) -> list[tuple[int, ...]]:
    """Orders of a long sentence: as written, reversed, all but the last reversed, and the one that is asked for."""
    written = tuple(range(count))
    typed = tuple(int(number) for number in params.asked.split(",") if number)
    typed_order = [typed] if sorted(typed) == list(written) else []
    return list(dict.fromkeys([written, written[::-1], (*written[-2::-1], count - 1), *typed_order]))


def _python(params: Parameters, words: tuple[str, ...]) -> str:
    several = {"n_layers": params.layers} if "n_layers" in arguments_of(params.encoding) else {}
    own = "".join(f", {name}={value}" for name, value in (several | directed(params.encoding, params.causal)).items())
    return program(
        __file__,
        "two" if params.layers == 2 else "one",
        **params.model_dump(),
        words=words,
        own=own,
        requested=requested(params.encoding, len(words)),
        orders=_some(params, len(words)) if len(words) > MOST_AT_ONCE else "itertools.permutations(range(len(words)))",
    )
