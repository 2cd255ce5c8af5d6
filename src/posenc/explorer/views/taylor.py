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
from posenc.explorer.template import program
from posenc.explorer.views import terms

ORDER = 135


class Parameters(terms.Parameters):
    pass


ARRAYS = ("orders", "score", "epsilon", "left_out")


def data(params: Parameters) -> Data:
    words = words_of(params.sentence)
    python = f"{terms.printed(params, words)}\n\n{program(__file__, count=len(words))}"
    here = run(python)
    facts: dict[str, Any] = {"words": words, "output_difference": float((here["exact"][-1] - here["library"]).abs().max())}
    return Data({name: here[name] for name in ARRAYS}, python, facts)
