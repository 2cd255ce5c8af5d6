"""V2PE: a visual token advances the position by a fraction of what a word does.

    p_1 = 0,   p_i = p_(i-1) + 1  for a word,   p_i = p_(i-1) + δ  for a visual token

Ge et al. 2024, "V2PE: Improving Multimodal Long-Context Capability of Vision-Language Models with Variable Visual Position
Encoding", section 3.2. In training the paper draws δ from 1, 1/2, 1/4, …, 1/256 for every image; in use it is chosen. The
authors' code rounds the last position of an image up before the next word (`rounded`). That is the same where an image's
tokens times δ are a whole number, as they are with 256 tokens and these δ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import with_values

if TYPE_CHECKING:
    from posenc.support.shapes import Bool


@checked
def v2pe(visual: Bool[Tensor, "b t"], *, delta: float = 1 / 16, rounded: bool = False) -> Positions:
    """Real positions of words and visual tokens.

    visual   [b, t], True where a token comes from an image
    delta    what a visual token advances the position by, above 0 and up to 1
    rounded  words after an image begin at a whole number, as in the authors' code

    Raises ValueError for a delta out of range and a mask without tokens.
    """
    checks.positive(delta=delta)
    if delta > 1:
        raise ValueError(f"delta: expected a number above 0 and up to 1, got {delta}")
    with_values(visual=visual)
    words = (~visual).cumsum(dim=1)
    index = torch.arange(1, visual.shape[1] + 1, device=visual.device).expand_as(visual)
    run = index - index.masked_fill(visual, 0).cummax(dim=1).values  # visual tokens since the last word
    advance = run.double() * delta
    ended = torch.zeros_like(advance)
    ended[:, 1:] = advance[:, :-1] * ~visual[:, 1:]  # of the image that a word follows at once
    past = (ended.ceil() if rounded else ended).cumsum(dim=1)
    position = words + past + advance
    return Positions.at(position - position[:, :1])
