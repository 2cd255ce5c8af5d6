"""The rows of a batch on the device of the model.

Legend: b rows, t tokens, n positions that have a target, d channels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.lab.tasks.task import IGNORE
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int


class Placed:
    """Tokens, their positions and their targets. Not a dataclass, because Lightning Fabric would rebuild it."""

    def __init__(
        self, tokens: Int[Tensor, "b t"], targets: Int[Tensor, "b t"], at: Positions, device: torch.device
    ) -> None:
        flat = targets.flatten()
        scored = flat != IGNORE
        self.indices = None if bool(scored.all()) else scored.nonzero()[:, 0].to(device)
        self.targets = flat[scored].to(device)
        self.tokens, self.at = tokens.to(device), at.to(device)

    def at_targets(self, hidden: Float[Tensor, "b t d"]) -> Float[Tensor, "n d"]:
        """The positions that have a target; the head is computed only there."""
        flat = hidden.flatten(0, 1)
        return flat if self.indices is None else flat.index_select(0, self.indices)
