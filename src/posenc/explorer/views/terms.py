"""The four terms of an attention score, with sinusoidal positions added to the embeddings and in Transformer-XL.

    absolute   (x_i + p_i)ᵀ W_qᵀ W_k (x_j + p_j) = x_i…x_j + x_i…p_j + p_i…x_j + p_i…p_j
    relative   q_i·k_j + q_i·W_R R_{i-j} + u·k_j + v·W_R R_{i-j}                           q = W_q x, k = W_k x

Everything is divided by √d. A score has degree two in the positions, so the four terms are its whole Taylor expansion. The
output of attention has no last order: its first and second order, and what they leave out.

    f(X + εP) = f(X) + ε·first + ε²·(own + mixed) + left out          own: p_m with itself; mixed: p_m with p_n

The program that the page prints is the one that runs here.
Legend: t tokens, d channels, n = 2t-1 distances i-j from 1-t to t-1, e values of ε.
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
MOST_WORDS = 8
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
    "absolute",
    "relative",
    "absolute_score",
    "relative_score",
    "absolute_weights",
    "relative_weights",
    "orders",
    "epsilon",
    "left_out",
)


def data(asked: Parameters) -> Data:
    words = words_of(asked.sentence, MOST_WORDS)
    program = _program(asked, words)
    here = run(program)
    unmoved = run(_program(asked.model_copy(update={"shift": 0}), words)) if asked.shift else here
    facts: dict[str, Any] = {"words": words, "output_difference": float((here["exact"][-1] - here["library"]).abs().max())}
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


def _program(asked: Parameters, words: tuple[str, ...]) -> str:
    d, t, base = D_MODEL, len(words), asked.base
    weights = f"drawn(3, {d}, {d})" if asked.projection == "drawn" else f"torch.eye({d}).double().expand(3, {d}, {d})"
    return f"""\
import torch
import posenc

random = torch.Generator().manual_seed({asked.seed})

def drawn(*shape):
    return torch.randn(shape, generator=random, dtype=torch.float64).mul(7).round() / 10  # one decimal

words = {words!r}
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
relative_weights = posenc.attend(q, k, one_each, encoding, at, causal=False)[0, 0]

# Taylor: the output is a softmax of a quadratic, times words that are their own values
def orders_of(p):  # coefficients of ε⁰, ε¹ and ε² if every position is multiplied by ε
    def score(a, b):
        return (a @ w_q) @ (b @ w_k).T / {d} ** 0.5
    weights, slope, curve = score(x, x).softmax(-1), score(x, p) + score(p, x), score(p, p)
    slope = slope - (weights * slope).sum(-1, keepdim=True)
    curve = curve + slope**2 / 2
    w1, w2 = weights * slope, weights * (curve - (weights * curve).sum(-1, keepdim=True))
    return torch.stack([weights @ x, weights @ p + w1 @ x, w1 @ p + w2 @ x])

def output(epsilon):
    here = x + epsilon * p
    return ((here @ w_q) @ (here @ w_k).T / {d} ** 0.5).softmax(-1) @ here

value, first, second = orders_of(p)
own = sum(orders_of(p * alone[:, None])[2] for alone in torch.eye({t}).double())  # a position with itself
mixed = second - own
epsilon = torch.logspace(-2, 0, 9, dtype=torch.float64)
e, exact = epsilon[:, None, None], torch.stack([output(one) for one in epsilon])
after_first = exact - value - e * first
after_second = after_first - e**2 * (own + mixed)
without_half = after_first - e**2 * (2 * own + mixed)  # as note 002 writes it
left_out = torch.stack([after_first, after_second, without_half]).flatten(2).norm(dim=-1)
orders = torch.stack([value, first, own, mixed, after_second[-1]]).flatten(1).norm(dim=-1)
library = posenc.attend((both @ w_q)[None, None], (both @ w_k)[None, None], both[None, None], posenc.create("nope"), at,
                        causal=False)[0, 0]"""
