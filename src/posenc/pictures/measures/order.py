"""Order sensitivity: the words are re-ordered, the positions stay.

    max | A(PX + p) - P·A(X + p) |

Without positions attention is equivariant, A(PX) = P·A(X), and the number is rounding error. With positions it is not
equivariant, because p does not move with the words; A(P(X + p)) would again equal P·A(X + p). A causal mask alone also
breaks the equivariance, although the last token of one causal layer does not see the order of its prefix.

Legend: t tokens, d d_model, r re-orderings.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from posenc.encoding import PositionalEncoding
from posenc.pictures.measures.layers import Layers, normal, redrawn, seeded
from posenc.positions import Positions
from posenc.support.checked import checked

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int

REORDERINGS = 6


class SentencePair(NamedTuple):
    """The same words in two orders."""

    before: tuple[str, ...]
    after: tuple[str, ...]


SENTENCE_PAIRS = (
    SentencePair(("我", "爱", "你"), ("你", "爱", "我")),
    SentencePair(("猫", "追", "老鼠"), ("老鼠", "追", "猫")),
    SentencePair(("猫", "吃", "鱼"), ("鱼", "吃", "猫")),
    SentencePair(("我", "喜欢", "猫"), ("猫", "喜欢", "我")),
)


@checked
def order_sensitivity(
    encoding: PositionalEncoding,
    *,
    d_model: int,
    n_heads: int,
    n_kv_heads: int | None = None,
    length: int = 6,
    causal: bool,
    layers: int = 1,
    seed: int = 0,
) -> float:
    """max|A(PX + p) - P·A(X + p)| over the reversal and five random re-orderings of `length` random words, in fp64.

    A is `layers` layers of attention with random projections and a residual between them; the encoding acts in each as
    `at_layer(n)`. Its parameters are drawn anew, N(0, 0.5²), so that a table that starts at or near zero does not hide its
    seam. NoPE gives about 1e-15 bidirectionally, and a number of size one under a causal mask.
    Raises ValueError for bidirectional use of a causal-only encoding.
    """
    if length < 2:
        raise ValueError(f"length: expected at least two words to re-order, got {length}")
    random = seeded(seed)
    words = normal(length, d_model, random=random)
    orders = _orders(length, random)
    return order_sensitivity_of(
        encoding, words, orders, n_heads=n_heads, n_kv_heads=n_kv_heads, causal=causal, layers=layers, seed=seed
    )


@checked
def order_sensitivity_of(
    encoding: PositionalEncoding,
    words: Float[Tensor, "t d"],
    orders: Int[Tensor, "r t"],
    *,
    n_heads: int,
    n_kv_heads: int | None = None,
    causal: bool,
    layers: int = 1,
    seed: int = 0,
) -> float:
    """The same for given words and re-orderings: position i of re-ordering r holds word orders[r, i]."""
    length, d_model = words.shape
    if d_model < n_heads or d_model % n_heads:
        raise ValueError(f"words: expected d_model a multiple of n_heads={n_heads}, got the shape {list(words.shape)}")
    if not orders.numel() or not torch.equal(orders.long().sort(dim=1).values, torch.arange(length).expand_as(orders)):
        raise ValueError(f"orders: expected re-orderings of 0 … {length - 1}, one in each row")
    words, orders = words.double(), orders.long()
    before, after = _outputs(encoding, words, orders, n_heads, n_kv_heads, causal, layers, seed)
    return float((after - before[orders]).abs().max())


@checked
def sentence_sensitivity(
    encoding: PositionalEncoding,
    pair: SentencePair,
    *,
    d_model: int,
    n_heads: int,
    n_kv_heads: int | None = None,
    causal: bool,
    layers: int = 1,
    seed: int = 0,
) -> float:
    """The same for two sentences of the same words, with one random vector for each word, the same in both.

    The built-in pairs are reversals. A bias of |i - j| alone, such as ALiBi's without a mask, does not change under
    reversal: it gives rounding error here, but not in `order_sensitivity`.
    """
    return order_sensitivity_of(
        encoding,
        word_vectors(pair.before, d_model, seed),
        _order_of(pair)[None],
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        causal=causal,
        layers=layers,
        seed=seed,
    )


@checked
def last_token_sensitivity(
    encoding: PositionalEncoding,
    *,
    d_model: int,
    n_heads: int,
    n_kv_heads: int | None = None,
    length: int = 6,
    layers: int = 1,
    seed: int = 0,
) -> float:
    """How much the last token's output changes under a causal mask when only the words before it are re-ordered.

    Without an encoding one layer gives rounding error: the last token sees its prefix as a multiset. In two layers each
    word of the prefix has attended to a different prefix, so the output depends on the order.
    """
    if length < 3:
        raise ValueError(f"length: expected at least two words before the last, got {length}")
    random = seeded(seed)
    words = normal(length, d_model, random=random)
    prefix = _orders(length - 1, random)
    orders = torch.cat([prefix, torch.full_like(prefix[:, :1], length - 1)], dim=1)
    before, after = _outputs(encoding, words, orders, n_heads, n_kv_heads, True, layers, seed)
    return float((after[:, -1] - before[-1]).abs().max())


class OrderBlindness(NamedTuple):
    """How far apart one summary of a sentence lies from that of its re-ordering, for two kinds of network."""

    rnn: float
    attention: float


@checked
def rnn_sensitivity(pair: SentencePair = SENTENCE_PAIRS[0], *, d_model: int = 16, seed: int = 0) -> OrderBlindness:
    """The largest difference of a recurrent network's final state, and of attention's mean output without positions.

        h_t = tanh(W x_t + U h_{t-1})            depends on order: every step reads the previous state
        mean over tokens of A(X)                 does not: equivariant, and invariant after pooling

    Both read the same random word vectors. Raises ValueError where the two sentences differ in their words.
    """
    _order_of(pair)
    random = seeded(seed)
    w, u = (normal(d_model, d_model, random=random) * d_model**-0.5 for _ in range(2))
    sentences = torch.stack([word_vectors(sentence, d_model, seed) for sentence in pair])
    state = torch.zeros(2, d_model, dtype=torch.float64)
    for word in sentences.unbind(dim=1):
        state = torch.tanh(word @ w.T + state @ u.T)
    attention = Layers.draw(d_model, 1, None, 1, random)
    at = Positions.arange(2, len(pair.before))
    pooled = attention(sentences, PositionalEncoding(), at, causal=False).mean(dim=1)
    return OrderBlindness(*(float((state_of - other).abs().max()) for state_of, other in (state, pooled)))


@checked
def word_vectors(words: tuple[str, ...], d_model: int, seed: int = 0) -> Float[Tensor, "t d"]:
    """A random vector for every word, the same at every position."""
    return torch.stack([normal(d_model, random=seeded(seed + zlib.crc32(word.encode()))) for word in words])


@torch.no_grad()
def _outputs(
    encoding: PositionalEncoding,
    words: Tensor,
    orders: Tensor,
    n_heads: int,
    n_kv_heads: int | None,
    causal: bool,
    layers: int,
    seed: int,
) -> tuple[Float[Tensor, "t d"], Float[Tensor, "r t d"]]:
    """Attention's output for the words as they stand, and for each re-ordering of them."""
    random = seeded(seed + 1)
    attention = Layers.draw(words.shape[-1], n_heads, n_kv_heads, layers, random)
    drawn = redrawn(encoding, random)
    at = drawn.prepare(Positions.arange(1, len(words)), torch.float64)
    out = attention(torch.cat([words[None], words[orders]]), drawn, at, causal)
    return out[0], out[1:]


def _orders(length: int, random: torch.Generator) -> Int[Tensor, "r t"]:
    """The reversal and random re-orderings."""
    shuffled = [torch.randperm(length, generator=random) for _ in range(REORDERINGS - 1)]
    return torch.stack([torch.arange(length).flip(0), *shuffled])


def _order_of(pair: SentencePair) -> Int[Tensor, "t"]:
    """The index in `before` of each word of `after`; repeated words are matched occurrence by occurrence."""
    if sorted(pair.before) != sorted(pair.after):
        raise ValueError(
            f"pair: expected the same words in two orders, got {' '.join(pair.before)} and {' '.join(pair.after)}"
        )
    left = list(enumerate(pair.before))
    order = []
    for word in pair.after:
        place = next(entry for entry in left if entry[1] == word)
        left.remove(place)
        order.append(place[0])
    return torch.tensor(order)
