"""Decoders of text out of sound, and of sound out of text: a table or sinusoids added to the embeddings."""

from __future__ import annotations

from dataclasses import replace

from posenc.dialects.families.bart import two_stacks
from posenc.dialects.families.learned import table
from posenc.dialects.families.sinusoids import fairseq, sinusoid
from posenc.dialects.family import family, head_width, parts, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight

FRAMES = "0, 1, 2, … over frames after the convolutions that are not padding"


@family("canary_decoder")
def _(keys: Keys) -> PositionSpec:
    """The paper's sinusoid, sines first, divided by √d as NeMo has it."""
    waves = sinusoid(keys, "hidden_size", layout="sin_cos", amplitude=keys.whole("hidden_size") ** -0.5)
    return _decoder(keys, waves)


@family("cohere_asr")
def _(keys: Keys) -> PositionSpec:
    """The decoder is this configuration itself; its encoder stands inside."""
    own = _decoder(keys, table(keys, "pos_emb.weight")).with_part("decoder")
    return PositionSpec(keys.family, parts=(*parts(keys, "encoder_config"), own))


@family("musicgen_decoder")
def _(keys: Keys) -> PositionSpec:
    """A position is one step of the delay pattern, all codebooks summed."""
    return _decoder(
        keys,
        sinusoid(keys, "hidden_size", layout="cos_sin", denominator="d/2-1", odd="zero"),
        "0, 1, 2, … over steps; codebook n is delayed by n of them",
    )


@family("musicgen_melody_decoder")
def _(keys: Keys) -> PositionSpec:
    """As MusicGen's, but text and melody stand before the sound and are counted with it."""
    return _decoder(
        keys,
        sinusoid(keys, "hidden_size", layout="cos_sin", denominator="d/2-1", odd="zero"),
        "0, 1, 2, … over melody and text, then steps of sound, all in one row",
    )


def _decoder(keys: Keys, added: Use, where: str = "0, 1, 2, … along the sequence") -> PositionSpec:
    layers = [Layer()] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, embedding=[added], d_head=head_width(keys), coordinates=where)


@family("speech_to_text")
def _(keys: Keys) -> PositionSpec:
    """fairseq's sinusoids. Frames are counted by a mask of zeros and ones that is compared with pad_token_id."""
    words, padding = fairseq(keys), keys.whole("pad_token_id", least=0)
    frames, where = words, FRAMES
    if padding != 1:
        frames = sinusoid(keys, layout="sin_cos", denominator="d/2-1", offset=padding + 1, odd="zero")
        where = "0, 1, 2, … over frames after the convolutions, padding included"
        keys.find(
            "error" if padding == 0 else "warning",
            "pad_token_id",
            f"{padding}: the encoder compares it with 0 for "
            "frames and 1 for padding; only where it is 1 does padding count as padding"
            + ("; with 0 real frames all get row 0, which is zero" if padding == 0 else ""),
        )
    for name in ("max_source_positions", "max_target_positions"):
        keys.get(name, None)
        keys.find("note", name, "no limit: sinusoids are made for whatever length comes")
    both = two_stacks(keys, None if padding == 0 else frames, words, length=None)
    return _placed(both, where, "0, 1, 2, … over tokens that are not padding")


def _placed(both: PositionSpec, *where: str) -> PositionSpec:
    made = tuple(replace(part, coordinates=text) for part, text in zip(both.parts, where, strict=True))
    return replace(both, parts=made)


@family("semantic", "coarse_acoustics", "fine_acoustics")
def _(keys: Keys) -> PositionSpec:
    """Bark's three models: a table of block_size rows. The third sees all of its window, later tokens too."""
    rows = keys.whole("block_size", 1024)
    arguments = (("d_model", keys.whole("hidden_size", 768)), ("max_positions", rows))
    said = (("d_model", keys.said_by("hidden_size")), ("max_positions", keys.said_by("block_size")))
    use = Use("encodings.learned.Learned", arguments, said, (Weight("table", "position_embeds_layer.weight"),))
    heads = "num_heads" if "num_heads" in keys.data else "num_attention_heads"
    count = "num_layers" if "num_layers" in keys.data else "num_hidden_layers"
    keys.whole(heads, 12)
    layers = [Layer(causal=keys.family != "fine_acoustics")] * keys.whole(count, 12)
    return stack_of(keys, layers, embedding=[use], heads=heads, length=rows)


@family("bark")
def _(keys: Keys) -> PositionSpec:
    keys.find("note", "semantic_config", "the first 256 places of the semantic model hold the sum of text and history")
    return PositionSpec(
        keys.family,
        parts=parts(
            keys,
            semantic_config="semantic",
            coarse_acoustics_config="coarse_acoustics",
            fine_acoustics_config="fine_acoustics",
            codec_config="encodec",
        ),
    )
