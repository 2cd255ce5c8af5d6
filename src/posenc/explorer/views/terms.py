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
from posenc.explorer.template import program

ORDER = 130

SENTENCES = ("猫 追 老鼠 老鼠 追 猫", "cat chases mouse mouse chases cat")


class Parameters(Base):
    sentence: str = opening(*SENTENCES)
    projection: Literal["drawn", "identity"] = "drawn"
    base: float = Field(default=100.0, ge=2.0, le=10000.0)
    shift: int = Field(default=0, ge=0, le=1000)
    seed: int = Field(default=0, ge=0, le=99)


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
    python = printed(params, words, "terms")
    here = run(python)
    unmoved = run(printed(params.model_copy(update={"shift": 0}), words, "terms")) if params.shift else here
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
    return Data({name: here[name] for name in ARRAYS}, python, {"words": words, "stages": stages})


def along_diagonals(term: torch.Tensor) -> float:
    """The largest difference between entries with the same i-j; 0 if the term depends only on the distance."""
    diagonals = [term.diagonal(offset) for offset in range(1 - len(term), len(term))]
    return max(float(diagonal.max() - diagonal.min()) for diagonal in diagonals)


def printed(params: Parameters, words: tuple[str, ...], *parts: str) -> str:
    """The lines that make words, positions and projections, and what is projected; then the parts."""
    values = {"seed": params.seed, "words": words, "count": len(words), "shift": params.shift, "base": params.base}
    return program(__file__, params.projection, *parts, **values)
