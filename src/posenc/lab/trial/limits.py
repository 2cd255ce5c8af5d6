"""How far an encoding reaches: how many positions from 0 it can represent, where that is limited."""

from __future__ import annotations

from posenc.encoding import PositionalEncoding
from posenc.encodings.learned import Learned
from posenc.encodings.xpos import XPos

TABLE_ENDS = "table ends at"


def position_limit(encoding: PositionalEncoding) -> int | None:
    if isinstance(encoding, Learned):
        return encoding.max_positions
    if isinstance(encoding, XPos):
        return encoding.largest_position() + 1
    return None
