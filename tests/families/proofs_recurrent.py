"""Families without attention."""

from __future__ import annotations

_SCAN = "order comes from the recurrence of a state space model; its code has no attention and reads no position"
NO_POSITIONS = {
    "falcon_mamba": _SCAN,
    "mamba": _SCAN,
    "mamba2": _SCAN,
    "rwkv": "order comes from time mixing, a recurrence that decays at learned rates; its code has no other attention",
    "xlstm": "order comes from the recurrence of gated matrix memories; its code has no attention and reads no position",
}
