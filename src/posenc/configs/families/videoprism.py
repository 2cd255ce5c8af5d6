"""VideoPrism: a table of patches, then a table of frames; sinusoids for text."""

from __future__ import annotations

from posenc.configs.coordinates import OTHER_SIZES
from posenc.configs.errors import ConfigError
from posenc.configs.families.vit import ON_REQUEST
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import RASTER, grid, pair
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use
from posenc.support.languages import clauses


@family("videoprism_vision_model")
def videoprism_vision_model(keys: Keys) -> PositionSpec:
    """A grid before the spatial layers; a table of frames before the temporal layers."""
    (high, wide), tubelet = pair(keys, "image_size"), keys.numbers("tubelet_size", length=3)
    if not all(isinstance(size, int) and size > 0 for size in tubelet):
        raise ConfigError(f"{keys.where('tubelet_size')}: expected whole numbers from 1, got {list(tubelet)}")
    origin, frames = f"{keys.said_by('image_size')} / {keys.said_by('tubelet_size')}", keys.whole("num_frames")
    keys.note("image_size", ON_REQUEST)
    if tubelet[0] != 1:
        keys.warning(
            "tubelet_size", say("the code has a row for each of num_frames frames, not for each tubelet, and fails")
        )
    places = grid(
        keys,
        "spatial_embeddings.position_embeddings",
        high // tubelet[1],
        wide // tubelet[2],
        origin,
        mode="bilinear",
        antialias=True,
        reshape=True,
    )
    times = grid(
        keys,
        "temporal_embeddings.position_embeddings",
        frames,
        1,
        keys.said_by("num_frames"),
        mode="bilinear",
        antialias=True,
        reshape=True,
    )
    layers = [Layer((places,) if n == 0 else (), "spatial", causal=False) for n in range(keys.whole("num_spatial_layers"))]
    layers += [
        Layer((times,) if n == 0 else (), "temporal", causal=False) for n in range(keys.whole("num_temporal_layers"))
    ]
    where = clauses(
        RASTER,
        OTHER_SIZES,
        say("in temporal layers (frame, 0), or (frame, 0, frames, 1) for another number of frames"),
        say("further layers have no positions of their own"),
    )
    return stack_of(keys, layers, length=None, coordinates=where)


@family("videoprism_text_model")
def videoprism_text_model(keys: Keys) -> PositionSpec:
    """Causal only if the call gives an attention mask."""
    arguments = (("d_model", keys.whole("hidden_size")), ("layout", "sin_cos"), ("silent", "negative"))
    said_by = (
        ("d_model", keys.said_by("hidden_size")),
        ("base", "constant of the code"),
        ("layout", "constant of the code"),
    )
    use = Use("encodings.sinusoidal.Sinusoidal", arguments, said_by)
    keys.warning(
        "num_hidden_layers",
        say("without an attention mask attention is bidirectional: later tokens and the class token are visible"),
    )
    layers = [Layer()] * keys.whole("num_hidden_layers")
    return stack_of(
        keys, layers, embedding=[use], coordinates=say("0, 1, 2, … along the text; the class token comes last, at -1")
    )
