"""The numbers of the start page's scene: one sentence from a bag of words to what attention sees.

    bag               the results of attention without positions, of the words as written and backwards
    omega, table      how far the clock hands turn at each position, and the rows of numbers that they write
    closest           the smallest distance between two rows of the table
    missed            max|M_k·PE(p) - PE(p + k)| over the positions, for each shift k
    rotated, added    scores with RoPE, and with the table's rows added, of the sentence placed at later and later positions
    logits, weights   scores with a causal mask and ALiBi's penalty, and their softmax; head 0 has no penalty
    seen              the results of that attention, of the words as written and backwards

Legend: t words, d channels, s starts, h heads, i query, j key.
"""

from __future__ import annotations

from posenc.explorer.data import Data, computed
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.sentences import opening, words_of
from posenc.explorer.template import program

SENTENCES = (
    ("我爱你，你爱我吗", "I love you, do you love me"),
    ("猫 追 老鼠", "The cat chases the mouse"),
    ("人工 智能 正在 快速 发展", "Artificial intelligence is rapidly growing"),
)
ARRAYS = (*("bag", "omega", "table", "closest", "missed", "rotated", "added"), *("slopes", "logits", "weights", "seen"))


class Parameters(Base):
    sentence: str = opening(*SENTENCES[0])


def data(params: Parameters) -> Data:
    words = words_of(params.sentence)
    return computed(program(__file__, words=words), ARRAYS, {"words": list(words)})
