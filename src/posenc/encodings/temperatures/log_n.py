"""Log-n scaling: beyond the trained length, scores grow with the logarithm of the position.

    q_i -> max(1, ln(i + 1)/ln L)·q_i

Su 2021, "Attention scaling from the invariance of entropy" (a post); use_logn_attn of the first Qwen.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.temperature import LogLengthTemperature
from posenc.support.checked import checked


@checked
def log_n(*, trained_length: int = 2048) -> LogLengthTemperature:
    """`LogLengthTemperature`.

    trained_length  the trained length L, in positions, from 2
    """
    return LogLengthTemperature(trained_length)


ENTRY = Entry(
    name="log_n",
    class_name="LogLengthTemperature",
    builder="log_n",
    title="Log-n scaling",
    kind="tempered",
    published="2021-12",
    formula="max(1, ln(i+1)/ln L)·q·k",
    also_called=("logn", "logn_attn", "use_logn_attn", "entropy_invariance"),
    used_by=("Qwen (the first)",),
)
