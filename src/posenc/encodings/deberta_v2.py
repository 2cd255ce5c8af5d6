"""DeBERTa with logarithmic buckets of distance, versions 2 and 3.

    logits as in DeBERTa,   distance exact up to 128, then logarithmic up to 512;   the table goes through a layer norm

He et al. 2020, "DeBERTa", and the code of version 2; He et al. 2021, "DeBERTaV3".
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.deberta import DeBERTa
from posenc.support.checked import checked


@checked
def deberta_v2(
    d_model: int, n_heads: int, *, d_head: int | None = None, n_buckets: int = 256, max_distance: int = 512
) -> DeBERTa:
    """`DeBERTa` with buckets and a normalised table.

    d_model, n_heads  channels of the table and query heads
    d_head            channels of a head, d_model / n_heads if left out
    n_buckets         rows a side of logarithmic buckets
    max_distance      the largest distance told apart

    Raises ValueError for sizes that do not fit.
    """
    return DeBERTa(d_model, n_heads, d_head=d_head, n_buckets=n_buckets, max_distance=max_distance, norm_eps=1e-7)


ENTRY = Entry(
    name="deberta_v2",
    class_name="DeBERTa",
    builder="deberta_v2",
    title="DeBERTa v2",
    kind="relative",
    published="2021-11",
    needs=("parameters",),
    formula="(q·k + q·W_K p + k·W_Q p)/√(3d), log buckets",
    also_called=("deberta_v3", "deberta-v2", "make_log_bucket_position"),
    used_by=("DeBERTa v2", "DeBERTaV3", "mDeBERTa"),
)
