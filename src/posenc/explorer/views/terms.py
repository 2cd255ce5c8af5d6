"""The four terms of an attention score, with sinusoidal positions added to the embeddings and in Transformer-XL.

    absolute   (x_i + p_i)ᵀ W_qᵀ W_k (x_j + p_j) = x_i…x_j + x_i…p_j + p_i…x_j + p_i…p_j
    relative   q_i·k_j + q_i·W_R R_{i-j} + u·k_j + v·W_R R_{i-j}                           q = W_q x, k = W_k x

Everything is divided by √d. The program that the page prints is the one that runs here.
Legend: t tokens, d channels, n = 2t-1 distances i-j from 1-t to t-1.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field

from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base

ORDER = 130

Sentence = Literal[
    "猫 追 老鼠 老鼠 追 猫", "猫 吃 鱼", "我 喜欢 猫", "人工 智能 正在 快速 发展", "这部 电影 很 无聊 但 表演 很 精彩"
]


D_MODEL = 4


class Parameters(Base):
    sentence: Sentence = "猫 追 老鼠 老鼠 追 猫"
    projection: Literal["drawn", "identity"] = "drawn"
    base: float = Field(default=100.0, ge=2.0, le=10000.0)
    shift: int = Field(default=0, ge=0, le=1000)
    seed: int = Field(default=0, ge=0, le=99)


EXPORTED = (
    *(Parameters(shift=shift, projection=which) for which in ("drawn", "identity") for shift in (0, 1, 10, 100)),
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
    "absolute",
    "relative",
    "absolute_score",
    "relative_score",
    "absolute_weights",
    "relative_weights",
)


def data(asked: Parameters) -> Data:
    program = _program(asked)
    here, unmoved = run(program), run(_program(asked.model_copy(update={"shift": 0})))
    facts: dict[str, Any] = {"words": asked.sentence.split()}
    for kind in ("absolute", "relative"):
        terms = here[kind]
        facts[kind] = {
            "moved": (terms - unmoved[kind]).abs().amax(dim=(1, 2)).tolist(),
            "along_diagonals": [along_diagonals(term) for term in terms],
            "difference": float((terms.sum(dim=0) - here[f"{kind}_score"]).abs().max()),
        }
    return Data({name: here[name] for name in ARRAYS}, program, facts)


def along_diagonals(term: torch.Tensor) -> float:
    """The largest difference between entries with the same i-j; 0 if the term depends only on the distance."""
    diagonals = [term.diagonal(offset) for offset in range(1 - len(term), len(term))]
    return max(float(diagonal.max() - diagonal.min()) for diagonal in diagonals)


def _program(asked: Parameters) -> str:
    d, t, base = D_MODEL, len(asked.sentence.split()), asked.base
    weights = f"drawn(3, {d}, {d})" if asked.projection == "drawn" else f"torch.eye({d}).double().expand(3, {d}, {d})"
    return f"""\
import torch
import posenc

random = torch.Generator().manual_seed({asked.seed})

def drawn(*shape):
    return torch.randn(shape, generator=random, dtype=torch.float64).mul(7).round() / 10  # one decimal

words = "{asked.sentence}".split()
vector = {{word: drawn({d}) for word in dict.fromkeys(words)}}
x = torch.stack([vector[word] for word in words])
u, v = drawn(2, {d})
w_q, w_k, w_r = {weights}
at = posenc.Positions.arange(1, {t}, start={asked.shift})

# sinusoidal positions, added to the words
p = posenc.sinusoidal_table({t}, {d}, base={base!r}, start={asked.shift}, dtype=torch.float64)
q_x, q_p, k_x, k_p = x @ w_q, p @ w_q, x @ w_k, p @ w_k
absolute = torch.stack([q_x @ k_x.T, q_x @ k_p.T, q_p @ k_x.T, q_p @ k_p.T]) / {d} ** 0.5

# Transformer-XL: distances instead of positions
encoding = posenc.create("transformer_xl", d_model={d}, n_heads=1, base={base!r}).double().requires_grad_(False)
encoding.u[0], encoding.v[0], encoding.w_r[0] = u, v, w_r.T
q, k = q_x[None, None], k_x[None, None]
relative = torch.stack(encoding.terms(q, k, at, at))[:, 0, 0]
sines = posenc.create("sinusoidal", d_model={d}, base={base!r}, layout="sin_cos")
distances = posenc.Positions.at(torch.arange({1 - t}, {t})[None])
r = sines.embed(torch.zeros(1, {2 * t - 1}, {d}).double(), distances)[0] @ w_r

# the same scores from the library, and the weights that follow
both = posenc.create("sinusoidal", d_model={d}, base={base!r}).embed(x[None], at)[0]
absolute_score = (both @ w_q) @ (both @ w_k).T / {d} ** 0.5
bias = encoding.bias(q, k, at, at)
relative_score = q_x @ k_x.T / {d} ** 0.5 + bias(0, 0, torch.arange({t})[:, None], torch.arange({t}))
one_each = torch.eye({t}).double()[None, None]  # attention over unit vectors returns its weights
absolute_weights = posenc.attend(
    (both @ w_q)[None, None], (both @ w_k)[None, None], one_each, posenc.create("nope"), at, causal=False)[0, 0]
relative_weights = posenc.attend(q, k, one_each, encoding, at, causal=False)[0, 0]"""
