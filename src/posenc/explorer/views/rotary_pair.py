"""One query and one key, rotated by RoPE to every position: their score depends only on the difference of the positions.

The query is 正在 at position m; the key is a word of 人工 智能 正在 快速 发展 at position n. With four channels the vectors
are those of the worked example (posenc.learn.walk), with other widths they are random.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.encodings.sinusoidal import sinusoidal_table
from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters as Base
from posenc.learn import walk
from posenc.measures import rope_score_of
from posenc.positions import Positions

ORDER = 90

LENGTH = 41
ASKING = walk.AI_IS_GROWING.index("正在")


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
    d, base = asked.d_head, asked.base
    q, keys = _vectors(d)
    k = keys[asked.word]
    rope, at = RoPE(d, base=base), Positions.arange(1, LENGTH)
    q_turned = rope.rotate(q.expand(1, 1, LENGTH, d), at, "query")[0, 0]
    k_turned = rope.rotate(k.expand(1, 1, LENGTH, d), at, "key")[0, 0]
    around = torch.arange(LENGTH) + torch.arange(5)[:, None] - ASKING
    placed = rope.rotate(keys[:, None, None].expand(5, 1, LENGTH, d), Positions.at(around), "key")[:, 0]
    lags = torch.arange(1 - LENGTH, LENGTH)
    pairs = torch.eye(d // 2, dtype=q.dtype).repeat_interleave(2, dim=1)
    table = sinusoidal_table(LENGTH, d, base, dtype=q.dtype)
    return Data(
        {
            "q": q,
            "k": k,
            "omega": frequencies.rotary(d, base).values,
            "q_turned": q_turned,
            "k_turned": k_turned,
            "scores": q_turned @ k_turned.T,
            "pair_scores": rope_score_of(q * pairs, k * pairs, lags, base),
            "lag_scores": rope_score_of(q[None], k[None], lags, base)[0],
            "sentence": (placed * q_turned).sum(dim=-1).T,
            "added_scores": (q + table) @ (k + table).T,
            "lengths": q_turned.norm(dim=-1),
            "added_lengths": (q + table).norm(dim=-1),
        },
        _python(asked),
        {"words": walk.AI_IS_GROWING, "asking": ASKING},
    )


def _vectors(d_head: int) -> tuple[Tensor, Tensor]:
    """The query, and the keys of the five words."""
    if d_head == len(walk.QUERY):
        return torch.tensor(walk.QUERY, dtype=torch.float64), torch.tensor(walk.KEYS, dtype=torch.float64)
    drawn = torch.randn(6, d_head, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return drawn[0], drawn[1:]


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
