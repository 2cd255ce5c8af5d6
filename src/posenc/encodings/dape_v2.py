"""DAPE version 2: the scores are a map of features, which convolutions over neighbouring keys process.

    logits = s + b + W₂ * leaky_relu(W₁ * [s ; b] + c₁) + c₂      * a convolution over the keys, s = q·k/√d

Zheng et al. 2024, "DAPE V2: Process Attention Score as Feature Map for Length Extrapolation", section 3. See dape.py for
what keys are read. The authors' code zeroes what the first convolution reads, but not what the second does: in training a
query's own key reads one hidden value of the next key, which is not there when a token is decoded with a cache. Here it is
never there.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.dape import DAPE, Over
from posenc.support.checked import checked


@checked
def dape_v2(n_heads: int, *, over: Over = "kerple", width: int = 32, kernel: int = 3) -> DAPE:
    """`DAPE` with a convolution over neighbouring keys.

    n_heads  query heads
    over     the bias of the distance: "kerple", "alibi" or "fire"
    width    hidden units of the network
    kernel   keys that each of its two layers reads, an odd number

    Raises ValueError for an even kernel.
    """
    return DAPE(n_heads, over=over, width=width, kernel=kernel)


ENTRY = Entry(
    name="dape_v2",
    class_name="DAPE",
    builder="dape_v2",
    title="DAPE V2",
    kind="contextual",
    published="2024-10",
    needs=("parameters",),
    per_layer=True,
    formula="s + b + conv(leaky_relu(conv([s ; b])))",
    also_called=("dapev2", "attention_score_as_feature_map", "Kerple_DAPEV2", "Alibi_DAPEV2", "FIRE_DAPEV2"),
    used_by=("research: length extrapolation by its authors",),
)
