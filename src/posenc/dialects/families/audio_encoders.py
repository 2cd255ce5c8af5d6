"""Encoders of audio frames that turn and look both ways."""

from __future__ import annotations

from posenc.dialects.families.encoders import both_ways
from posenc.dialects.family import decoder, family, head_width
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.schedule import FULL
from posenc.dialects.spec import PositionSpec


@family("nemotron3_diarization_audio")
def _(keys: Keys) -> PositionSpec:
    """Halves are paired; the whole head turns unless partial_rotary_factor says otherwise."""
    use = rope(keys, d_head=head_width(keys), partial=True)
    kinds = [FULL] * keys.whole("num_hidden_layers")
    return both_ways(decoder(keys, use, kinds=kinds, coordinates="0, 1, 2, … over frames after subsampling"))
