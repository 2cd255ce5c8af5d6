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

ORDER = 10

SENTENCES = ("我爱你", "I love you")
MOST_AT_ONCE = 5  # words: 120 orders
D_MODEL, HEADS = 16, 4
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


BOTH = (False, True)
EXPORTED = (
    *(
        Parameters(sentence=sentence, encoding=name, causal=causal)
        for sentence in SENTENCES
        for name in ("nope", "sinusoidal", "alibi", "rope")
        for causal in BOTH
    ),
    *(Parameters(encoding=name, causal=True, layers=2) for name in ("nope", "rope")),
    *(Parameters(sentence="屡战屡败", encoding=name, causal=causal) for name in ("nope", "rope") for causal in BOTH),
)


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
    sided = "".join(f", {name}={value}" for name, value in directed(params.encoding, params.causal).items())
    sided = (f", n_layers={params.layers}" if "n_layers" in arguments_of(params.encoding) else "") + sided
    below = (
        ""
        if params.layers == 1
        else ("\nhidden = hidden + Layers(attention.weights[:1], attention.d_head)(sentences, drawn, at, causal)")
    )
    length = requested(params.encoding, len(words))
    orders = f"{_some(params, len(words))}" if len(words) > MOST_AT_ONCE else "itertools.permutations(range(len(words)))"
    return f"""import itertools
import torch
import posenc
from posenc import measures
from posenc.attention.backends.reference import probabilities
from posenc.pictures.measures.layers import Layers, redrawn, seeded

words, causal, layers = {words!r}, {params.causal}, {params.layers}
encoding = posenc.create("{params.encoding}", d_model={D_MODEL}, n_heads={HEADS}{sided}){length}
x = measures.order.word_vectors(words, {D_MODEL})
read = {{}}  # of orders that read the same, the first
for one in {orders}:
    read.setdefault(tuple(words[i] for i in one), one)
orders = torch.tensor(list(read.values()))

distance = [measures.order_sensitivity_of(encoding, x, one[None], n_heads={HEADS}, causal=causal, layers=layers)
            for one in orders]
rnn = [measures.rnn_sensitivity(measures.SentencePair(words, after), d_model={D_MODEL}) for after in read]

# The outputs themselves, with the weights that the measure draws.
random = seeded(1)
attention = Layers.draw({D_MODEL}, {HEADS}, None, layers, random)
drawn = redrawn(encoding, random).requires_grad_(False)
at = posenc.Positions.arange(1, len(words))
outputs = [attention(torch.stack([x, x[one]]), drawn, at, causal) for one in orders]
before, after = outputs[0][0], torch.stack([out for _, out in outputs])
moved = [attention(x[one][None], drawn, at.take(one), causal)[0] - before[one] for one in orders]
together = [float(one.abs().max()) for one in moved]

# Who looks at whom in the last layer.
sentences = torch.cat([x[None], x[orders]])
hidden, here = drawn.at_layer(0).embed(sentences, at), drawn.at_layer(layers - 1){below}
q, k = ((hidden @ weight.T).view(*hidden.shape[:2], {HEADS}, -1).transpose(1, 2) for weight in attention.weights[-1][:2])
at = at.expand(len(sentences))
weights = probabilities(here.rotate(q, at, "query"), here.rotate(k, at, "key"), here, at, at, causal)
weights_before, weights_after = weights[0], weights[1:]"""
