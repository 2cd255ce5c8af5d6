"""One query and one key, rotated by RoPE to every position: their score depends only on the difference of the positions.

The query is 正在 at position m; the key is a word of 人工 智能 正在 快速 发展 at position n. With four channels the vectors
are those of the worked example (posenc.learn.walk), with other widths they are random.
"""

from __future__ import annotations

from pydantic import Field

from posenc.explorer.data import Data, computed
from posenc.explorer.parameters import Parameters as Base
from posenc.learn import walk

ORDER = 110
POSITION = "m"

LENGTH = 41
ASKING = walk.AI_IS_GROWING.index("正在")
ARRAYS = (
    *("q", "k", "omega", "q_turned", "k_turned", "scores", "pair_scores", "lag_scores", "sentence", "lengths"),
    *("added_scores", "added_lengths"),
)


class Parameters(Base):
    d_head: int = Field(default=4, ge=2, le=128, multiple_of=2)
    base: float = Field(default=100.0, ge=1.01, le=1e6)
    word: int = Field(default=0, ge=0, le=4)


EXPORTED = (
    *(Parameters(word=word) for word in range(5)),
    Parameters(base=10000.0),
    Parameters(d_head=64, base=10000.0),
)


def data(asked: Parameters) -> Data:
    return computed(_python(asked), ARRAYS, {"words": walk.AI_IS_GROWING, "asking": ASKING})


def _python(asked: Parameters) -> str:
    d, base = asked.d_head, asked.base
    if d == len(walk.QUERY):
        vectors = """q = torch.tensor(posenc.learn.walk.QUERY, dtype=torch.float64)
keys = torch.tensor(posenc.learn.walk.KEYS, dtype=torch.float64)"""
    else:
        vectors = f"""drawn = torch.randn(6, {d}, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
q, keys = drawn[0], drawn[1:]"""
    return f"""import torch
import posenc
from posenc import measures

{vectors}
k = keys[{asked.word}]  # {walk.AI_IS_GROWING[asked.word]}

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

# 正在 at m, the words around it at m - 2 … m + 2
around = posenc.Positions.at(torch.arange({LENGTH}) + torch.arange(-2, 3)[:, None])
placed = rope.rotate(keys[:, None, None].expand(5, 1, {LENGTH}, {d}), around, "key")[:, 0]
sentence = (placed * q_turned).sum(dim=-1).T

# a position that is added instead
table = posenc.sinusoidal_table({LENGTH}, {d}, {base!r}, dtype=torch.float64)
added_scores = (q + table) @ (k + table).T
added_lengths = (q + table).norm(dim=-1)"""
