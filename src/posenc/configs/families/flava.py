"""FLAVA, X-CLIP and BridgeTower: two towers, and further layers over both."""

from __future__ import annotations

from posenc.configs.families.clip import BETWEEN, towers, with_old_sections
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import clauses


@family("xclip")
def xclip(keys: Keys) -> PositionSpec:
    """Its own layers combine the frames of a video: a learned vector for each of num_frames frames."""
    keys = with_old_sections(keys, "text_config", "vision_config")
    vision = keys.section("vision_config")
    frames, width = vision.whole("num_frames"), vision.whole("mit_hidden_size")
    use = Use(
        "encodings.learned.Learned",
        (("d_model", width), ("max_positions", frames)),
        (("d_model", vision.said_by("mit_hidden_size")), ("max_positions", vision.said_by("num_frames"))),
        (Weight("table", "mit.position_embedding", reshape=True),),
    )
    keys.note("vision_config.num_frames", say("videos must have {frames} frames", frames=frames))
    first, other = Layer((use,), "frames", causal=False), Layer((), "frames", causal=False)
    layers = (first, *(other,) * (vision.whole("mit_num_hidden_layers") - 1))
    return PositionSpec(
        keys.family,
        layers=layers,
        parts=towers(keys),
        d_model=width,
        trained_length=frames,
        coordinates=clauses(BETWEEN, say("frames 0, 1, 2, …")),
    )


@family("bridgetower")
def bridgetower(keys: Keys) -> PositionSpec:
    """Cross-modal layers have no positions; both towers add their own."""
    count = keys.whole("num_hidden_layers")
    layers = (Layer((), "cross_modal", causal=False),) * (2 * count)
    where = say("each part counts its own tokens; cross-modal layers have no positions")
    return PositionSpec(keys.family, layers=layers, parts=parts(keys, "text_config", "vision_config"), coordinates=where)


@family("flava")
def flava(keys: Keys) -> PositionSpec:
    """A third stack reads the outputs of the two towers, image before text, and adds no positions."""
    names = ("text_config", "image_config", "multimodal_config", "image_codebook_config")
    where = say("each part counts its own tokens; the third stack adds no positions")
    return PositionSpec(keys.family, parts=parts(with_old_sections(keys, *names), *names), coordinates=where)


@family("flava_multimodal_model")
def flava_multimodal_model(keys: Keys) -> PositionSpec:
    count = keys.whole("num_hidden_layers")
    return PositionSpec(
        keys.family,
        layers=(Layer(causal=False),) * count,
        d_model=keys.whole("hidden_size"),
        n_heads=keys.whole("num_attention_heads"),
        coordinates=say("none: the towers' outputs already have positions"),
    )
