"""Beam's temperature: a power of the number of keys.

    q_i -> (1 + (i + 1)/2048)^0.1·q_i

transformers, models/beam, in layers without rotation. Its docstring says i, its code i + 1.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.temperature import PowerTemperature
from posenc.support.checked import checked


@checked
def beam_temperature(*, exponent: float = 0.1, trained_length: int = 2048) -> PowerTemperature:
    """`PowerTemperature`.

    exponent        of the power
    trained_length  keys after which the number under the power is 2
    """
    return PowerTemperature(exponent, trained_length)


ENTRY = Entry(
    name="beam_temperature",
    class_name="PowerTemperature",
    builder="beam_temperature",
    title="Temperature of Beam",
    kind="tempered",
    published="2026-03",
    formula="(1 + (i+1)/L)^a·q·k",
    also_called=("power_temperature", "beam"),
    used_by=("Beam",),
)
