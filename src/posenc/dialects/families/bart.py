"""Two stacks, a learned table each, added to the embeddings; BART's two unused rows before position 0 in most."""

from __future__ import annotations

from typing import Any

from posenc.dialects.families.learned import table
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec, Use


def two_stacks(keys: Keys, encoder: Use | None, decoder: Use | None, **about: Any) -> PositionSpec:
    """Encoder and decoder of one configuration: encoder_layers, decoder_layers, d_model."""
    stacks = []
    for side, use, causal in (("encoder", encoder, False), ("decoder", decoder, True)):
        layers = [Layer(causal=causal)] * keys.whole(f"{side}_layers")
        spec = stack_of(
            keys, layers, embedding=[use] if use else [], width="d_model", heads=f"{side}_attention_heads", **about
        )
        stacks.append(spec.with_part(side))
    return PositionSpec(keys.family, parts=tuple(stacks))


@family("bart", "mbart", "plbart")
def _(keys: Keys) -> PositionSpec:
    """Row p + 2: two rows before position 0, of the fairseq padding."""
    sides = [
        table(keys, f"{side}.embed_positions.weight", width="d_model", row_offset=2) for side in ("encoder", "decoder")
    ]
    keys.find("note", "max_position_embeddings", "the tables have two rows more than positions: position p reads row p + 2")
    return two_stacks(keys, *sides)


@family("blenderbot", "blenderbot-small")
def _(keys: Keys) -> PositionSpec:
    sides = [table(keys, f"{side}.embed_positions.weight", width="d_model") for side in ("encoder", "decoder")]
    return two_stacks(keys, *sides)
