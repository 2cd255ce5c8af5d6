"""Perceiver: positions of the inputs only; latents have none. The model's class decides which inputs there are.

Fourier features of coordinates from -1 to 1 are concatenated to the channels of an input: cat([inputs, features], -1)."""

from __future__ import annotations

from posenc.configs.coordinates import SEQUENCE
from posenc.configs.errors import ConfigError
from posenc.configs.families.bert import learned_table
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import Words, clauses

CONSTANT = "constant of the code"

CLASSES = {
    "PerceiverForMaskedLM": ("text", "text_queries"),
    "PerceiverForSequenceClassification": ("text",),
    "PerceiverForImageClassificationLearned": ("image_learned",),
    "PerceiverForImageClassificationFourier": ("image_fourier",),
    "PerceiverForImageClassificationConvProcessing": ("image_convolved",),
    "PerceiverForOpticalFlow": ("flow",),
    "PerceiverForMultimodalAutoencoding": ("video", "audio"),
}


@family("perceiver")
def perceiver(keys: Keys) -> PositionSpec:
    """One part for each kind of input of the file's architectures; all kinds if it names none."""
    named = keys.names("architectures", ())
    kinds = {kind for name in named for kind in CLASSES.get(name, ())} or {kind for all in CLASSES.values() for kind in all}
    inputs = tuple(part for part in _inputs(keys) if part.part in kinds)
    count = keys.whole("num_self_attends_per_block", 26)
    if count > 2**14:
        raise ConfigError(f"{keys.where('num_self_attends_per_block')}: {count} is more than any model has")
    layers = [Layer((), "latents", causal=False)] * count
    d_model, n_heads = keys.whole("d_latents", 1280), keys.whole("num_self_attention_heads", 8)
    keys.note("num_blocks", say("the same layers are applied this many times to the latents"))
    return PositionSpec(
        keys.family,
        layers=tuple(layers),
        d_model=d_model,
        n_heads=n_heads,
        parts=inputs,
        coordinates=say("none: latents are learned vectors"),
    )


def _inputs(keys: Keys) -> list[PositionSpec]:
    side, frames = keys.whole("image_size", 56), keys.whole("num_frames", 16)
    samples = frames * keys.whole("audio_samples_per_frame", 1920)
    train = tuple(int(n) for n in keys.numbers("train_size", (368, 496)))
    image = Use(
        "encodings.bases.learned_grid.LearnedGrid",
        (("d_model", 256), ("height", side), ("width", side), ("mode", "bicubic")),
        (
            ("d_model", CONSTANT),
            ("height", keys.said_by("image_size")),
            ("width", keys.said_by("image_size")),
            ("mode", CONSTANT),
        ),
        (Weight("table", "input_preprocessor.position_embeddings.position_embeddings", reshape=True),),
        note=say("concatenated to the channels after a linear layer, positions_projection"),
    )
    spread = say("(row, column), each from -1 to 1: posenc.encodings.bases.fourier.spread(height, width)")
    queries = "decoder.output_position_encodings.position_embeddings"
    return [
        _part(
            keys, "text", learned_table(keys, "input_preprocessor.position_embeddings.weight", width="d_model"), SEQUENCE
        ),
        _part(
            keys,
            "text_queries",
            learned_table(keys, queries, width="d_model"),
            clauses(SEQUENCE, say("output queries only")),
        ),
        _part(keys, "image_learned", image, say("(row, column) of the pixel")),
        _part(keys, "image_fourier", _bands(64, (224, 224), CONSTANT), spread),
        _part(keys, "image_convolved", _bands(64, (56, 56), CONSTANT), clauses(spread, say("after a convolution"))),
        _part(
            keys,
            "flow",
            _bands(64, train, "train_size"),
            clauses(spread, say("both frames are in the channels; queries too")),
        ),
        _part(
            keys,
            "video",
            _bands(32, (frames, side, side), "num_frames, image_size"),
            say("(frame, row, column), each from -1 to 1 over patches of 4·4 pixels, for queries over output_shape"),
        ),
        _part(
            keys,
            "audio",
            _bands(192, (samples,), "num_frames · audio_samples_per_frame"),
            say("patches of samples_per_patch, from -1 to 1; queries too"),
        ),
    ]


def _bands(count: int, resolution: tuple[int, ...], origin: str) -> Use:
    return Use(
        "encodings.bases.fourier.FourierBands",
        (("n_bands", count), ("resolution", resolution)),
        (("n_bands", CONSTANT), ("resolution", origin)),
        note=say("concatenated to the channels of the input"),
    )


def _part(keys: Keys, name: str, use: Use, where: Words) -> PositionSpec:
    return PositionSpec(keys.family, part=name, layers=(Layer((use,), "embedding", causal=False),), coordinates=where)
