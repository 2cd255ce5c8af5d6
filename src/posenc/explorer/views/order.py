"""Outputs of attention, with and without positions, for every order of a sentence (S7, S20).

    distance   max|A(PX + p) − P·A(X + p)|   the words move, the positions stay
    together   max|A(P(X + p)) − P·A(X + p)| the positions move with the words

Legend: t tokens, d channels, h heads, r re-orderings, i query, j key.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal

import torch
from pydantic import Field
from torch import Tensor

from posenc import measures
from posenc.backends.reference import probabilities
from posenc.catalogue import arguments_of, create, directed
from posenc.encoding import PositionalEncoding
from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.parameters import encodings
from posenc.measures.layers import Layers, redrawn, seeded
from posenc.measures.order import word_vectors
from posenc.positions import Positions

ORDER = 60

SENTENCES = {
    "love": ("我", "爱", "你"),
    "chase": ("猫", "追", "老鼠"),
    "eat": ("猫", "吃", "鱼"),
    "like": ("我", "喜欢", "猫"),
    "spicy": ("不", "怕", "辣"),
    "again": ("屡", "战", "屡", "败"),
}
D_MODEL, HEADS = 16, 4


if TYPE_CHECKING:
    Method = str
else:
    Method = encodings(lambda entry: "causal" not in entry.needs)


class Parameters(Base):
    sentence: Literal["love", "chase", "eat", "like", "spicy", "again"] = "love"
    encoding: Method = "nope"
    causal: bool = False
    layers: int = Field(default=1, ge=1, le=2)


BOTH = (False, True)
EXPORTED = (
    *(Parameters(encoding=name, causal=causal) for name in ("nope", "sinusoidal", "alibi", "rope") for causal in BOTH),
    *(Parameters(encoding=name, causal=True, layers=2) for name in ("nope", "rope")),
    *(Parameters(sentence="again", encoding=name, causal=causal) for name in ("nope", "rope") for causal in BOTH),
)


def data(asked: Parameters) -> Data:
    words = SENTENCES[asked.sentence]
    orders = torch.tensor(_orders(words))
    sizes = {"d_model": D_MODEL, "n_heads": HEADS, "n_layers": asked.layers}
    encoding = create(asked.encoding, **sizes, **directed(asked.encoding, asked.causal))
    x = word_vectors(words, D_MODEL)
    distance = [
        measures.order_sensitivity_of(encoding, x, one[None], n_heads=HEADS, causal=asked.causal, layers=asked.layers)
        for one in orders
    ]
    # The same weights and parameters as in posenc.measures, drawn in the same order.
    random = seeded(1)
    attention = Layers.draw(D_MODEL, HEADS, None, asked.layers, random)
    drawn = redrawn(encoding, random)
    at = Positions.arange(1, len(words))
    with torch.no_grad():
        outputs = [attention(torch.stack([x, x[one]]), drawn, at, asked.causal) for one in orders]
        weights = _weights(attention, torch.cat([x[None], x[orders]]), drawn, at, asked.causal)
        moved = [attention(x[one][None], drawn, at.take(one), asked.causal)[0] - outputs[0][0][one] for one in orders]
    pairs = [measures.SentencePair(words, tuple(words[i] for i in one)) for one in orders]
    arrays = {
        "orders": orders,
        "before": outputs[0][0],
        "after": torch.stack([after for _, after in outputs]),
        "weights_before": weights[0],
        "weights_after": weights[1:],
        "distance": distance,
        "together": [float(one.abs().max()) for one in moved],
        "rnn": [measures.rnn_sensitivity(pair, d_model=D_MODEL) for pair in pairs],
    }
    return Data(arrays, _python(asked, words), {"words": list(words)})


def _orders(words: tuple[str, ...]) -> list[tuple[int, ...]]:
    """Position i holds word orders[r][i]. Of orders with equal text, only the one that keeps equal words in order."""
    found: dict[tuple[str, ...], tuple[int, ...]] = {}
    for order in itertools.permutations(range(len(words))):
        found.setdefault(tuple(words[i] for i in order), order)
    return list(found.values())


def _weights(attention: Layers, x: Tensor, encoding: PositionalEncoding, at: Positions, causal: bool) -> Tensor:
    """Attention weights in the last of at most two layers, [r h i j]."""
    *below, (query, key, _, _) = attention.weights
    hidden = encoding.at_layer(0).embed(x, at)
    if below:
        hidden = hidden + Layers(tuple(below), attention.d_head)(x, encoding, at, causal)
    here = encoding.at_layer(len(below))
    q, k = ((hidden @ weight.T).view(*x.shape[:2], HEADS, -1).transpose(1, 2) for weight in (query, key))
    at = at.expand(len(x))
    return probabilities(*here.rotate_both(q, k, at, at), here, at, at, causal)


def _python(asked: Parameters, words: tuple[str, ...]) -> str:
    sided = "".join(f", {name}={value}" for name, value in directed(asked.encoding, asked.causal).items())
    sided = (f", n_layers={asked.layers}" if "n_layers" in arguments_of(asked.encoding) else "") + sided
    below = (
        ""
        if asked.layers == 1
        else ("\nhidden = hidden + Layers(attention.weights[:1], attention.d_head)(sentences, drawn, at, causal)")
    )
    return f"""import itertools
import torch
import posenc
from posenc import measures
from posenc.backends.reference import probabilities
from posenc.measures.layers import Layers, redrawn, seeded

words, causal, layers = {words!r}, {asked.causal}, {asked.layers}
encoding = posenc.create("{asked.encoding}", d_model={D_MODEL}, n_heads={HEADS}{sided})
x = measures.order.word_vectors(words, {D_MODEL})
read = {{}}  # of orders that read the same, the first
for one in itertools.permutations(range(len(words))):
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
weights = probabilities(*here.rotate_both(q, k, at, at), here, at, at, causal)
weights_before, weights_after = weights[0], weights[1:]"""
