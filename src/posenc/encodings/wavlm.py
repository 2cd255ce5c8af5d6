"""WavLM's gated bias: T5's, multiplied by a gate that each hidden state computes.

    logits += g_hi·b[h, bucket(i - j)],   g_hi = α·(β·c_h - 1) + 2,   α and β from the head's slice of the hidden state

Chen et al. 2021, "WavLM: Large-Scale Self-Supervised Pre-Training for Full Stack Speech Processing", section 3.1.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.of_families.t5_gated import GatedT5
from posenc.support.checked import checked


@checked
def wavlm(n_heads: int, d_head: int, *, n_buckets: int = 320, max_distance: int = 800) -> GatedT5:
    """`GatedT5`, for attention both ways.

    n_heads, d_head  query heads and their channels; hidden states have n_heads·d_head
    n_buckets        rows of the table
    max_distance     from here on, everything falls into the last bucket

    Raises ValueError for sizes that do not fit.
    """
    return GatedT5(n_heads, d_head, n_buckets=n_buckets, max_distance=max_distance)


ENTRY = Entry(
    name="wavlm",
    class_name="GatedT5",
    builder="wavlm",
    title="Gated T5 of WavLM",
    kind="biased",
    published="2021-10",
    needs=("parameters", "hidden_states"),
    formula="q·k + g·b[bucket(i-j)]",
    also_called=("gated_relative_position_bias", "gated_t5", "gru_rel_pos"),
    used_by=("WavLM",),
)
