"""Text models put together from two others, which count their tokens by themselves."""

from __future__ import annotations

from posenc.dialects.families.learned import table
from posenc.dialects.family import family, parts, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec


@family("encoder-decoder")
def _(keys: Keys) -> PositionSpec:
    """Any encoder, any decoder; both BERT where the file does not say."""
    return PositionSpec(
        keys.family, parts=parts(keys, encoder="bert", decoder="bert"), coordinates="each part counts its own tokens"
    )


@family("rag")
def _(keys: Keys) -> PositionSpec:
    """The generator reads each document and the question as one text."""
    return PositionSpec(
        keys.family,
        parts=parts(keys, question_encoder="dpr", generator="bart"),
        coordinates="each part counts its own tokens; a document stands before the question",
    )


@family("pp_formulanet")
def _(keys: Keys) -> PositionSpec:
    """The decoder asks the picture's patches, which bring their positions with them."""
    return PositionSpec(
        keys.family, parts=parts(keys, "text_config", "vision_config"), coordinates="each part counts its own tokens"
    )


@family("pp_formulanet_text")
def _(keys: Keys) -> PositionSpec:
    """BART's decoder alone: row p + 2."""
    keys.find("note", "max_position_embeddings", "the table has two rows more than positions: position p reads row p + 2")
    use = table(keys, "embed_positions.weight", width="d_model", row_offset=2)
    return stack_of(
        keys, [Layer()] * keys.whole("decoder_layers"), embedding=[use], width="d_model", heads="decoder_attention_heads"
    )
