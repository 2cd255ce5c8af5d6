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

SENTENCES = (
    ("我爱你，你爱我吗", "I love you, do you love me"),
    ("猫 追 老鼠", "The cat chases the mouse"),
    ("人工 智能 正在 快速 发展", "Artificial intelligence is rapidly growing"),
)
ARRAYS = (*("bag", "omega", "table", "closest", "missed", "rotated", "added"), *("slopes", "logits", "weights", "seen"))


class Parameters(Base):
    sentence: str = opening(*SENTENCES[0])


EXPORTED = tuple(Parameters(sentence=sentence) for pair in SENTENCES for sentence in pair)


def data(params: Parameters) -> Data:
    words = words_of(params.sentence)
    return computed(_python(words), ARRAYS, {"words": list(words)})


def _python(words: tuple[str, ...]) -> str:
    return f"""import torch
import posenc
from posenc.attention.backends.reference import probabilities
from posenc.pictures.measures.order import word_vectors

words = {words!r}
count = len(words)
q, k, v = (word_vectors(words, 8, seed=seed)[None, None] for seed in (1, 2, 0))  # random, the same for the same word
backwards = torch.arange(count).flip(0)


def results(encoding, n_heads, causal):  # h 2 t d
    heads = [torch.stack([one[0, 0], one[0, 0, backwards]])[:, None].repeat(1, n_heads, 1, 1) for one in (q, k, v)]
    return posenc.attend(*heads, encoding, posenc.Positions.arange(2, count), causal=causal).transpose(0, 1)


bag = results(posenc.create("nope"), 1, causal=False)[0]

omega = torch.tensor(posenc.frequencies.rotary(8, 100.0).values, dtype=torch.float64)
table = posenc.sinusoidal_table(64, 8, base=100.0, dtype=torch.float64)
closest = torch.pdist(table).min()
matrices = [posenc.shift_matrix(shift, 8, 100.0) for shift in range(9)]
missed = torch.stack([(table[:55] @ one.T - table[shift:55 + shift]).abs().max() for shift, one in enumerate(matrices)])

rope = posenc.create("rope", d_head=8, base=100.0)
positions = [posenc.Positions.at(torch.arange(start, start + count)[None]) for start in range(33)]
rotated = torch.cat([rope.rotate(q, at, "query") @ rope.rotate(k, at, "key").mT for at in positions])[:, 0] / 8**0.5
rows = [table[start:start + count] for start in range(33)]
added = torch.cat([(q + row) @ (k + row).mT for row in rows])[:, 0] / 8**0.5

slopes = (0.0, *posenc.create("alibi", n_heads=8).slopes)
alibi, at = posenc.create("alibi", n_heads=9, slopes=slopes), posenc.Positions.arange(1, count)
distance = (torch.arange(count)[:, None] - torch.arange(count)).flatten()
penalty = alibi.at_distance(distance).view(9, count, count)
logits = ((q @ k.mT)[0] / 8**0.5 + penalty).masked_fill(torch.ones(count, count).triu(1).bool(), -torch.inf)
weights = probabilities(q.repeat(1, 9, 1, 1), k.repeat(1, 9, 1, 1), alibi, at, at, True)[0]
seen = results(alibi, 9, causal=True)"""
