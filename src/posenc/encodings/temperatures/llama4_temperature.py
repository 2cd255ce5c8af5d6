"""Llama 4's temperature: a logarithm that steps at every multiple of 8192 keys.

    q_i -> (1 + 0.1·ln(1 + ⌊(i + 1)/8192⌋))·q_i

The code of Llama 4 (attn_temperature_tuning), which has it in layers without rotation only: see irope.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.temperature import FloorLogTemperature
from posenc.support.checked import checked


@checked
def llama4_temperature(*, scale: float = 0.1, trained_length: int = 8192) -> FloorLogTemperature:
    """`FloorLogTemperature` of the number of keys.

    scale           of the logarithm (attn_scale)
    trained_length  keys from one step to the next (floor_scale)
    """
    return FloorLogTemperature(scale, trained_length, offset=1)


ENTRY = Entry(
    name="llama4_temperature",
    class_name="FloorLogTemperature",
    builder="llama4_temperature",
    title="Temperature of Llama 4",
    kind="tempered",
    published="2025-04",
    formula="(1 + β ln(1 + ⌊(i+1)/L⌋))·q·k",
    also_called=("attn_temperature_tuning", "attn_scale", "floor_scale", "inference-time temperature scaling"),
    used_by=("Llama 4",),
)
