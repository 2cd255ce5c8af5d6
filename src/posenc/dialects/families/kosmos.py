"""The text models of Kosmos 2 and 2.5, and TIPS 2's: sines first, then cosines, down to 1/10000."""

from __future__ import annotations

from posenc.dialects.families.padded import COUNTED
from posenc.dialects.families.sinusoids import fairseq, sinusoid
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec


@family("kosmos_2_text_model", "kosmos_2_5_text_model")
def _(keys: Keys) -> PositionSpec:
    """fairseq's: padding is not counted and gets nothing."""
    after = keys.whole("pad_token_id", least=0) + 1
    keys.find(
        "warning",
        "pad_token_id",
        "input_ids are compared with it to count, whatever attention_mask says; "
        f"position_ids, where given, are rows of the table: position p is p + {after}",
    )
    layers = [Layer()] * keys.whole("layers")
    return stack_of(
        keys,
        layers,
        embedding=[fairseq(keys, "embed_dim")],
        width="embed_dim",
        heads="attention_heads",
        coordinates=COUNTED,
    )


@family("tipsv2_text_model")
def _(keys: Keys) -> PositionSpec:
    """Every token is counted, and sees every token; the words are larger by √hidden_size before they are added."""
    use = sinusoid(keys, "hidden_size", layout="sin_cos", denominator="d/2-1", odd="zero")
    return stack_of(keys, [Layer(causal=False)] * keys.whole("num_hidden_layers"), embedding=[use])
