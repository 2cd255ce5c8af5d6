"""Taylor's split of attention with positions: how large each order is, and what is left out after it.

A score has degree two in the positions, so its four terms are its whole expansion. The output of attention has no last
order: its first and second order, and what they leave out.

    f(X + εP) = f(X) + ε·first + ε²·(own + mixed) + left out          own: p_m with itself; mixed: p_m with p_n

orders    [5]     sizes of the value, first, own and mixed, and of what is left out after the second order at ε = 1
score     [3]     sizes of the score's value, first and second order
epsilon   [e]     factors of every position
left_out  [3, e]  after the first order, after the second, and after the second without the factor 1/2
Legend: e values of ε.
"""

from __future__ import annotations

from typing import Any

from posenc.explorer.data import Data, run
from posenc.explorer.sentences import words_of
from posenc.explorer.views import terms
from posenc.explorer.views.terms import D_MODEL, SENTENCES

ORDER = 135


class Parameters(terms.Parameters):
    pass


EXPORTED = tuple(
    Parameters(sentence=sentence, projection=which) for sentence in SENTENCES for which in ("drawn", "identity")
)
ARRAYS = ("orders", "score", "epsilon", "left_out")


def data(params: Parameters) -> Data:
    words = words_of(params.sentence)
    program = _program(params, words)
    here = run(program)
    facts: dict[str, Any] = {"words": words, "output_difference": float((here["exact"][-1] - here["library"]).abs().max())}
    return Data({name: here[name] for name in ARRAYS}, program, facts)


def _program(params: Parameters, words: tuple[str, ...]) -> str:
    d = D_MODEL
    return f"""\
{terms.setup(params, words)}
def score_of(a, b):
    return (a @ w_q) @ (b @ w_k).T / {d} ** 0.5

score = torch.stack([one.norm() for one in (score_of(x, x), score_of(x, p) + score_of(p, x), score_of(p, p))])

# The output is a softmax of a quadratic, times words that are their own values.
def orders_of(p):  # coefficients of ε⁰, ε¹ and ε² if every position is multiplied by ε
    weights, slope, curve = score_of(x, x).softmax(-1), score_of(x, p) + score_of(p, x), score_of(p, p)
    slope = slope - (weights * slope).sum(-1, keepdim=True)
    curve = curve + slope**2 / 2
    w1, w2 = weights * slope, weights * (curve - (weights * curve).sum(-1, keepdim=True))
    return torch.stack([weights @ x, weights @ p + w1 @ x, w1 @ p + w2 @ x])

def output(epsilon):
    here = x + epsilon * p
    return score_of(here, here).softmax(-1) @ here

value, first, second = orders_of(p)
own = sum(orders_of(p * alone[:, None])[2] for alone in torch.eye({len(words)}).double())  # a position with itself
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
