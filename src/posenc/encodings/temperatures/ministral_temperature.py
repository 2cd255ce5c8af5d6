"""Ministral 3's temperature: as Llama 4's, by the position instead of the number of keys.

    q_i -> (1 + 0.1·ln(1 + ⌊i/L⌋))·q_i,   one token later than Llama 4's

The code of Ministral 3 and Mistral 4 (llama_4_scaling_beta), which have it in every layer.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.temperature import FloorLogTemperature
from posenc.support.checked import checked


@checked
def ministral_temperature(*, scale: float = 0.1, trained_length: int = 16384) -> FloorLogTemperature:
    """`FloorLogTemperature` of the position.

    scale           of the logarithm (llama_4_scaling_beta)
    trained_length  the trained length L (original_max_position_embeddings)
    """
    return FloorLogTemperature(scale, trained_length, offset=0)


ENTRY = Entry(
    name="ministral_temperature",
    class_name="FloorLogTemperature",
    builder="ministral_temperature",
    title="Temperature of Ministral 3",
    kind="tempered",
    published="2025-12",
    formula="(1 + β ln(1 + ⌊i/L⌋))·q·k",
    also_called=("llama_4_scaling_beta", "llama_4_attn_scale", "ministral3"),
    used_by=("Ministral 3", "Mistral 4"),
)
