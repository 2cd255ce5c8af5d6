"""Inkling's temperature: one up to a number of keys, then a logarithm.

    q_i -> (1 + 0.1·ln max((i + 1)/n, 1))·q_i,   and the bias of the same layer alike

transformers, models/inkling (log_scaling_alpha and log_scaling_n_floor), in layers without a window.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.temperature import LogTemperature
from posenc.support.checked import checked


@checked
def inkling_temperature(*, scale: float = 0.1, trained_length: int = 8192) -> LogTemperature:
    """`LogTemperature`; `encodings.temperature.TemperedBias` multiplies a bias with it too.

    scale           of the logarithm
    trained_length  n: keys up to which nothing changes
    """
    return LogTemperature(scale, trained_length)


ENTRY = Entry(
    name="inkling_temperature",
    class_name="LogTemperature",
    builder="inkling_temperature",
    title="Temperature of Inkling",
    kind="tempered",
    published="2026-05",
    formula="(1 + α ln max((i+1)/n, 1))·q·k",
    also_called=("log_scaling_alpha", "log_scaling_n_floor"),
    used_by=("Inkling", "Inkling 2"),
)
