"""MusicGen, Canary and Cohere ASR: decoders with sinusoids or a learned table."""

from __future__ import annotations

from posenc.configs.coordinates import SEQUENCE
from posenc.configs.families.bert import learned_table
from posenc.configs.families.marian import sinusoid
from posenc.configs.family import family, head_width, parts, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use
from posenc.support.languages import Words


@family("canary_decoder")
def canary_decoder(keys: Keys) -> PositionSpec:
    """Sinusoids, sines first, divided by √d as in NeMo."""
    waves = sinusoid(keys, "hidden_size", layout="sin_cos", amplitude=keys.whole("hidden_size") ** -0.5)
    return _decoder(keys, waves)


@family("cohere_asr")
def cohere_asr(keys: Keys) -> PositionSpec:
    """The decoder is this configuration itself; its encoder is a section of it."""
    decoder = _decoder(keys, learned_table(keys, "pos_emb.weight")).with_part("decoder")
    return PositionSpec(keys.family, parts=(*parts(keys, "encoder_config"), decoder))


@family("musicgen_decoder")
def musicgen_decoder(keys: Keys) -> PositionSpec:
    """A position is one step of the delay pattern, all codebooks summed."""
    return _decoder(
        keys,
        sinusoid(keys, "hidden_size", layout="cos_sin", denominator="d/2-1", odd="zero"),
        say("0, 1, 2, … over steps; codebook n is delayed by n steps"),
    )


@family("musicgen_melody_decoder")
def musicgen_melody_decoder(keys: Keys) -> PositionSpec:
    """As MusicGen, but text and melody precede the audio and are counted with it."""
    return _decoder(
        keys,
        sinusoid(keys, "hidden_size", layout="cos_sin", denominator="d/2-1", odd="zero"),
        say("0, 1, 2, … over melody and text, then audio steps"),
    )


def _decoder(keys: Keys, added: Use, where: Words = SEQUENCE) -> PositionSpec:
    layers = [Layer()] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, embedding=[added], d_head=head_width(keys), coordinates=where)
