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
from posenc.explorer.template import program
from posenc.learn import walk

ORDER = 110
POSITION = "m"

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


def data(params: Parameters) -> Data:
    words = words_of(params.sentence)
    asking, word = min(params.asking, len(words) - 1), min(params.word, len(words) - 1)
    of_the_note = asking == ASKING and words in [words_of(sentence) for sentence in SENTENCES]
    vectors = ("note" if params.d_head == len(walk.QUERY) else "drawn") if of_the_note else "words"
    python = program(
        __file__,
        vectors,
        words=words,
        word=word,
        key_word=words[word],
        asking=asking,
        asking_word=words[asking],
        after_asking=asking + 1,
        first=-asking,
        last=len(words) - asking,
        count=len(words),
        d=params.d_head,
        pairs=params.d_head // 2,
        base=params.base,
    )
    return computed(python, ARRAYS, {"words": words, "asking": asking, "word": word})
