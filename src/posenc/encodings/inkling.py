"""Inkling's bank: learned profiles of distance, mixed by every token for itself.

    logits += (r_hi·P)[i - j]  for 0 ≤ i - j < extent,   r_hi = W_h x_i

transformers, models/inkling: there is no paper. Its layers without a window also sharpen with position:
inkling_temperature.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.distance_bank import DistanceBank
from posenc.support.checked import checked


@checked
def inkling(n_heads: int, d_model: int, *, profiles: int = 16, extent: int = 1024) -> DistanceBank:
    """`DistanceBank` reading hidden states.

    n_heads   query heads
    d_model   channels of the hidden states
    profiles  rows of the bank
    extent    distances that it knows: 1024, or the window of a sliding layer

    Raises ValueError for sizes that are no counts.
    """
    return DistanceBank(n_heads, d_model, profiles=profiles, extent=extent)


ENTRY = Entry(
    name="inkling",
    class_name="DistanceBank",
    builder="inkling",
    title="Bank of Inkling",
    kind="biased",
    published="2026-05",
    needs=("parameters", "hidden_states"),
    per_layer=True,
    formula="q·k + (W x_i·P)[i-j]",
    also_called=("distance_bank", "InklingRelativeLogits", "relative_logits"),
    used_by=("Inkling", "Inkling 2"),
)
