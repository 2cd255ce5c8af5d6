"""One query and one key, rotated by RoPE to every position: their score depends only on the difference of the positions.

The query is one word of a sentence at position m; the key is a word of it at position n. With 正在 asking in 人工 智能 正在
快速 发展, or is in its translation, and four channels, the vectors are those of the worked example (posenc.learn.walk);
otherwise they are random, the same for the same word.
"""

from __future__ import annotations

from pydantic import Field

from posenc.explorer.data import Data, computed
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.sentences import MOST_WORDS, opening, words_of
from posenc.learn import walk

ORDER = 110
POSITION = "m"

LENGTH = 41
ASKING = walk.AI_IS_GROWING.index("正在")
SENTENCES = (" ".join(walk.AI_IS_GROWING), "Artificial intelligence is rapidly growing")
ARRAYS = (
    *("q", "k", "omega", "q_turned", "k_turned", "scores", "pair_scores", "lag_scores", "sentence", "lengths"),
    *("added_scores", "added_lengths"),
)


class Parameters(Base):
    """`asking` and `word` number the query's word and the key's; the last word where there are fewer."""

    sentence: str = opening(*SENTENCES)
    d_head: int = Field(default=4, ge=2, le=128, multiple_of=2)
    base: float = Field(default=100.0, ge=1.01, le=1e6)
    asking: int = Field(default=ASKING, ge=0, le=MOST_WORDS - 1)
    word: int = Field(default=0, ge=0, le=MOST_WORDS - 1)


EXPORTED = (
    *(Parameters(sentence=sentence, word=word) for sentence in SENTENCES for word in range(5)),
    *(Parameters(sentence=sentence, base=10000.0) for sentence in SENTENCES),
    *(Parameters(sentence=sentence, d_head=64, base=10000.0) for sentence in SENTENCES),
)


def data(params: Parameters) -> Data:
    words = words_of(params.sentence)
    asking, word = min(params.asking, len(words) - 1), min(params.word, len(words) - 1)
    return computed(_python(params, words, asking, word), ARRAYS, {"words": words, "asking": asking, "word": word})


def _python(params: Parameters, words: tuple[str, ...], asking: int, word: int) -> str:
    d, base = params.d_head, params.base
    of_the_note = asking == ASKING and words in [words_of(sentence) for sentence in SENTENCES]
    if of_the_note and d == len(walk.QUERY):
        vectors = """q = torch.tensor(posenc.learn.walk.QUERY, dtype=torch.float64)
keys = torch.tensor(posenc.learn.walk.KEYS, dtype=torch.float64)"""
    elif of_the_note:
        vectors = f"""drawn = torch.randn(6, {d}, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
q, keys = drawn[0], drawn[1:]"""
    else:
        vectors = f"""words = {words!r}  # a random query and key for every word, the same for the same word
q = measures.order.word_vectors(words[{asking}:{asking + 1}], {d})[0]
keys = measures.order.word_vectors(words, {d}, seed=1)"""
    first, last = -asking, len(words) - asking
    return f"""import torch
import posenc
from posenc import measures

{vectors}
k = keys[{word}]  # {words[word]}

rope = posenc.create("rope", d_head={d}, base={base!r})
omega = torch.tensor(rope.frequencies, dtype=torch.float64)
at = posenc.Positions.arange(1, {LENGTH})
q_turned = rope.rotate(q.expand(1, 1, {LENGTH}, {d}), at, "query")[0, 0]
k_turned = rope.rotate(k.expand(1, 1, {LENGTH}, {d}), at, "key")[0, 0]
scores = q_turned @ k_turned.T  # scores[m, n]
lengths = q_turned.norm(dim=-1)

# the same from m - n alone, for all pairs together and for each
lags = torch.arange({1 - LENGTH}, {LENGTH})
lag_scores = measures.rope_score_of(q[None], k[None], lags, {base!r})[0]
pairs = torch.eye({d // 2}, dtype=torch.float64).repeat_interleave(2, dim=1)
pair_scores = measures.rope_score_of(q * pairs, k * pairs, lags, {base!r})

# {words[asking]} at m, the other words around it
around = posenc.Positions.at(torch.arange({LENGTH}) + torch.arange({first}, {last})[:, None])
placed = rope.rotate(keys[:, None, None].expand({len(words)}, 1, {LENGTH}, {d}), around, "key")[:, 0]
sentence = (placed * q_turned).sum(dim=-1).T

# a position that is added instead
table = posenc.sinusoidal_table({LENGTH}, {d}, {base!r}, dtype=torch.float64)
added_scores = (q + table) @ (k + table).T
added_lengths = (q + table).norm(dim=-1)"""
