"""Text models with parts for pictures or sound, whose outputs stand in the places of tokens and are counted like them."""

from __future__ import annotations

from posenc.dialects.families.llama import alike
from posenc.dialects.family import decoder, family, head_width, parts, read
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.spec import PositionSpec

PLACES = "0, 1, 2, … along the sequence, tokens of images and sound included"


@family("gemma3")
def _(keys: Keys) -> PositionSpec:
    keys.find("note", "text_config", "tokens of one image see each other both ways")
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"), coordinates=PLACES)


@family("gemma3n")
def _(keys: Keys) -> PositionSpec:
    inside = parts(keys, "text_config", "vision_config", "audio_config")
    return PositionSpec(keys.family, parts=inside, coordinates=PLACES)


@family("gemma4", "gemma4_unified", "embedding_gemma2")
def _(keys: Keys) -> PositionSpec:
    """Towers are there where the file has them."""
    towers = [name for name in ("vision_config", "audio_config") if keys.has(name)]
    return PositionSpec(keys.family, parts=parts(keys, "text_config", *towers), coordinates=PLACES)


@family("gemma4_assistant", "gemma4_unified_assistant")
def _(keys: Keys) -> PositionSpec:
    """A drafting model whose layers all turn queries only: the keys, turned, are those of the model it helps."""
    keys.find(
        "note",
        "text_config",
        "keys and values are the other model's, position_ids continue its sequence; masks "
        "look both ways, since every key is earlier",
    )
    inner = keys.section("text_config")
    if not inner.whole("num_kv_shared_layers", 0, least=0):  # 0 here means all of them
        inner.data["num_kv_shared_layers"] = inner.whole("num_hidden_layers")
    keys.find(
        "warning",
        "text_config.num_kv_shared_layers",
        "transformers 5.23 fails to build this model: its check of shared keys wants a layer that makes its own",
    )
    return PositionSpec(keys.family, parts=(read(inner, "text_config"),), coordinates=PLACES)


@family("emu3")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vq_config"), coordinates=PLACES)


@family("chameleon")
def _(keys: Keys) -> PositionSpec:
    return decoder(
        keys, rope(keys, d_head=head_width(keys)), kinds=alike(keys), parts=parts(keys, "vq_config"), coordinates=PLACES
    )


@family("idefics")
def _(keys: Keys) -> PositionSpec:
    """Attention to images, in layers between these, has no positions."""
    names = ("vision_config", "perceiver_config") if keys.flag("use_resampler") else ("vision_config",)
    return decoder(
        keys,
        rope(keys, d_head=head_width(keys)),
        kinds=alike(keys),
        parts=parts(keys, *names),
        coordinates="0, 1, 2, … over the tokens that the mask keeps; padding stands at 1",
    )


@family("chameleon_vqgan", "emu3_vqgan")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, coordinates="none: convolutions; attention among their outputs has no positions")


@family("idefics_perciever")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(
        keys.family, coordinates="none: learned vectors ask the image features, which have positions already"
    )


@family("gemma3n_vision")
def _(keys: Keys) -> PositionSpec:
    """A tower of timm, MobileNetV5 unless `architecture` says another: nothing in transformers knows its positions."""
    keys.find("note", "architecture", "timm builds this tower; its positions, if it has any, are its own")
    return PositionSpec(keys.family, coordinates="none that transformers knows: a convolutional tower of timm")
