"""LFM2 and LFM3: RoPE in attention layers among short convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from posenc.configs.assumed import settings_by_kind, with_assumed
from posenc.configs.errors import ConfigError
from posenc.configs.families.jamba import CONV, rotary_among
from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.schedule import FULL, SLIDING, attention_among, schedule
from posenc.configs.spec import PositionSpec


@family("lfm2", "lfm2_moe")
def lfm2(keys: Keys) -> PositionSpec:
    """layer_types, or the numbers of the attention layers in old files of LFM2."""
    count = keys.whole("num_hidden_layers")
    if keys.family == "lfm2_moe":
        if keys.names("layer_types", None, length=count) is None:
            raise ConfigError(f"{keys.where('layer_types')}: missing; the class assumes nothing and fails without")
        at: Sequence[float] = ()
    else:
        at = keys.numbers("full_attn_idxs", tuple(range(count)))
    return rotary_among(keys, schedule(keys, lambda n: FULL if n in at else "conv", (FULL, "conv")), CONV)


@family("lfm3")
def lfm3(keys: Keys) -> PositionSpec:
    """Sliding layers rotate whole heads with a small base.

    Full layers rotate the faster half of all pairs with a large base.
    """
    kinds = schedule(
        keys, lambda n: FULL if n % 4 == 2 else SLIDING if n and n % 4 == 0 else "conv", (FULL, SLIDING, "conv")
    )
    keys = with_assumed(keys)
    settings_by_kind(keys, (SLIDING, FULL))
    kept = attention_among(keys, kinds, ("conv",), CONV)
    by_kind = {
        kind: rope(keys, d_head=head_width(keys), label=kind, labels=(SLIDING, FULL))
        for kind in dict.fromkeys(kept)
        if kind != "conv"
    }
    return decoder(keys, None, kinds=kept, by_kind=by_kind)
