"""The four terms of an attention score, from sinusoidal positions added to the embeddings to Transformer-XL.

    stages[0]  (x_i + p_i)ᵀ W_qᵀ W_k (x_j + p_j) = x_i…x_j + x_i…p_j + p_i…x_j + p_i…p_j
    stages[1]  the key's position becomes the distance: W_k p_j → W_R R_{i-j}
    stages[2]  the query's position becomes a learned vector in the third term: W_q p_i → u
    stages[3]  and another in the fourth, W_q p_i → v: q_i·k_j + q_i·W_R R_{i-j} + u·k_j + v·W_R R_{i-j}

q = W_q x, k = W_k x; everything is divided by √d. The program that the page prints is the one that runs here.
Legend: s stages, t tokens, d channels, n = 2t-1 distances i-j from 1-t to t-1.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field

from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.sentences import opening, words_of

ORDER = 130

SENTENCES = ("猫 追 老鼠 老鼠 追 猫", "cat chases mouse mouse chases cat")
D_MODEL = 4


class Parameters(Base):
    sentence: str = opening(*SENTENCES)
    projection: Literal["drawn", "identity"] = "drawn"
    base: float = Field(default=100.0, ge=2.0, le=10000.0)
    shift: int = Field(default=0, ge=0, le=1000)
    seed: int = Field(default=0, ge=0, le=99)


EXPORTED = (
    *(
        Parameters(sentence=sentence, shift=shift, projection=which)
        for sentence in SENTENCES
        for which in ("drawn", "identity")
        for shift in (0, 1, 10, 100)
    ),
    *(
        Parameters(sentence=sentence, shift=shift)
        for sentence in ("猫 吃 鱼", "这部 电影 很 无聊 但 表演 很 精彩")
        for shift in (0, 100)
    ),
)
ARRAYS = (
    "x",
    "p",
    "w_q",
    "w_k",
    "w_r",
    "u",
    "v",
    "q_x",
    "q_p",
    "k_x",
    "k_p",
    "r",
    "stages",
    "absolute_score",
    "relative_score",
    "absolute_weights",
    "relative_weights",
)


def data(params: Parameters) -> Data:
    words = words_of(params.sentence)
    program = _program(params, words)
    here = run(program)
    unmoved = run(_program(params.model_copy(update={"shift": 0}), words)) if params.shift else here
    stages: list[dict[str, Any]] = [
        {
            "moved": (terms - before).abs().amax(dim=(1, 2)).tolist(),
            "along_diagonals": [along_diagonals(term) for term in terms],
        }
        for terms, before in zip(here["stages"], unmoved["stages"], strict=True)
    ]
    sums = here["stages"].sum(dim=1)
    for stage, name in ((0, "absolute"), (3, "relative")):
        stages[stage]["difference"] = float((sums[stage] - here[f"{name}_score"]).abs().max())
    return Data({name: here[name] for name in ARRAYS}, program, {"words": words, "stages": stages})


def along_diagonals(term: torch.Tensor) -> float:
    """The largest difference between entries with the same i-j; 0 if the term depends only on the distance."""
    diagonals = [term.diagonal(offset) for offset in range(1 - len(term), len(term))]
    return max(float(diagonal.max() - diagonal.min()) for diagonal in diagonals)


def setup(params: Parameters, words: tuple[str, ...]) -> str:
    """The lines that make words, positions and projections, and what is projected."""
    d = D_MODEL
    weights = f"drawn(3, {d}, {d})" if params.projection == "drawn" else f"torch.eye({d}).double().expand(3, {d}, {d})"
    return f"""\
import torch
import posenc

random = torch.Generator().manual_seed({params.seed})

def drawn(*shape):
    return torch.randn(shape, generator=random, dtype=torch.float64).mul(7).round() / 10  # one decimal

words = {words!r}
vector = {{word: drawn({d}) for word in dict.fromkeys(words)}}
x = torch.stack([vector[word] for word in words])
u, v = drawn(2, {d})
w_q, w_k, w_r = {weights}
at = posenc.Positions.arange(1, {len(words)}, start={params.shift})

# sinusoidal positions, added to the words
p = posenc.sinusoidal_table({len(words)}, {d}, base={params.base!r}, start={params.shift}, dtype=torch.float64)
q_x, q_p, k_x, k_p = x @ w_q, p @ w_q, x @ w_k, p @ w_k
both = posenc.create("sinusoidal", d_model={d}, base={params.base!r}).embed(x[None], at)[0]
"""


def _program(params: Parameters, words: tuple[str, ...]) -> str:
    d, t, base = D_MODEL, len(words), params.base
    return f"""\
{setup(params, words)}absolute = torch.stack([q_x @ k_x.T, q_x @ k_p.T, q_p @ k_x.T, q_p @ k_p.T]) / {d} ** 0.5

# Transformer-XL: distances instead of positions
encoding = posenc.create("transformer_xl", d_model={d}, n_heads=1, base={base!r}).double().requires_grad_(False)
encoding.u[0], encoding.v[0], encoding.w_r[0] = u, v, w_r.T
q, k = q_x[None, None], k_x[None, None]
relative = torch.stack(encoding.terms(q, k, at, at))[:, 0, 0]
sines = posenc.create("sinusoidal", d_model={d}, base={base!r}, layout="sin_cos")
distances = posenc.Positions.at(torch.arange({1 - t}, {t})[None])
r = sines.embed(torch.zeros(1, {2 * t - 1}, {d}).double(), distances)[0] @ w_r

# from one to the other: first the key's position, then the query's, in one term after the other
between = r[torch.arange({t})[:, None] - torch.arange({t}) + {t - 1}]  # of query i and key j
by_word, by_place = (torch.einsum("id,ijd->ij", one, between) / {d} ** 0.5 for one in (q_x, q_p))
distanced = torch.stack([absolute[0], by_word, absolute[2], by_place])
stages = torch.stack([absolute, distanced, torch.stack([*distanced[:2], relative[2], by_place]), relative])

# the same scores from the library, and the weights that follow
absolute_score = (both @ w_q) @ (both @ w_k).T / {d} ** 0.5
bias = encoding.bias(q, k, at, at)
relative_score = q_x @ k_x.T / {d} ** 0.5 + bias(0, 0, torch.arange({t})[:, None], torch.arange({t}))
one_each = torch.eye({t}).double()[None, None]  # attention over unit vectors returns its weights
absolute_weights = posenc.attend(
    (both @ w_q)[None, None], (both @ w_k)[None, None], one_each, posenc.create("nope"), at, causal=False)[0, 0]
relative_weights = posenc.attend(q, k, one_each, encoding, at, causal=False)[0, 0]"""
