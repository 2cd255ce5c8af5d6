"""What kind of finish an encoding has: for pictures, pages and laws, which say it in words."""

from __future__ import annotations

from typing import Literal

import torch

from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.structure import Scores, addend_of

Finish = Literal["context", "weights", "value", "bypass"]


@torch.no_grad()
def own_finish(encoding: PositionalEncoding, n_heads: int, d_head: int) -> Finish | None:
    """What an encoding's own finish does, tried on two tokens; None: it has none.

    "context" changes the logits, "weights" takes the place of the softmax, "value" adds to the output by the weights,
    "bypass" adds to the output without them.
    """
    if "finish" not in encoding.seams:
        return None
    if addend_of(encoding) is not None:
        return "bypass"
    at = Positions.arange(1, 2)
    if encoding.axes > 1:
        at = at.replaced(coords=at.coords[..., None].expand(-1, -1, encoding.axes))
    like = next(encoding.parameters(), torch.zeros(1))
    x, at = like.new_zeros(1, n_heads, 2, d_head), at.to(like.device)
    scores = Scores(x @ x.mT, x, x, at, at, torch.ones(1, 1, 2, 2, dtype=torch.bool, device=x.device).tril())
    encoding.finish(scores)
    if "logits" not in scores.kept:
        return "weights"
    return "value" if scores.kept["logits"] is scores.logits else "context"
