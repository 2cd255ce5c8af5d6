"""SegFormer, CvT, MobileViT and similar: attention without positions over convolutional features."""

from __future__ import annotations

from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec

CONVOLUTIONS = say("none: order comes from the convolutions between attention layers")


def unordered(keys: Keys, kinds: list[str], **about: object) -> PositionSpec:
    layers = tuple(Layer((), kind, causal=False) for kind in kinds)
    return PositionSpec(keys.family, layers=layers, coordinates=CONVOLUTIONS, **about)  # type: ignore[arg-type]


@family("segformer", "cvt", "glpn", "pvt_v2")
def segformer(keys: Keys) -> PositionSpec:
    """Convolutions make the patches, and are part of the projections (CvT) or between the layers."""
    depths = keys.wholes("depth" if keys.family == "cvt" else "depths")
    return unordered(keys, [f"stage {n}" for n, depth in enumerate(depths) for _ in range(depth)])


@family("mobilevit")
def mobilevit(keys: Keys) -> PositionSpec:
    """2, 4 and 3 layers in the last three stages, constants of the code.

    Attention among pixels at the same place in a patch.
    """
    return unordered(keys, [f"stage {n}" for n, depth in ((2, 2), (3, 4), (4, 3)) for _ in range(depth)])


@family("mobilevitv2")
def mobilevitv2(keys: Keys) -> PositionSpec:
    """Attention by one context vector for all pixels at the same place in a patch."""
    depths = keys.wholes("n_attn_blocks", (2, 4, 3), length=3, least=0)
    return unordered(keys, [f"stage {n + 2}" for n, depth in enumerate(depths) for _ in range(depth)])


@family("swiftformer")
def swiftformer(keys: Keys) -> PositionSpec:
    """One additive attention at the end of each stage."""
    return unordered(keys, [f"stage {n}" for n, _ in enumerate(keys.wholes("depths"))])


@family("pp_ocrv5_server_rec", "pp_ocrv5_mobile_rec", "pp_ocrv6_small_rec")
def pp_ocrv5_server_rec(keys: Keys) -> PositionSpec:
    """A convolutional backbone, then a few layers over the columns of a line of text."""
    return unordered(keys, ["full_attention"] * keys.whole("depth", 2), parts=parts(keys, "backbone_config"))


@family("superglue")
def superglue(keys: Keys) -> PositionSpec:
    """A network of a point's coordinates and score is added to its descriptor; attention has no positions."""
    keys.note(
        "keypoint_encoder_sizes", say("coordinates are features: a network of (x, y, score); posenc has no encoding for it")
    )
    kinds = keys.names("gnn_layers_types", ("self", "cross") * 9)
    return unordered(keys, list(kinds), parts=parts(keys, "keypoint_detector_config"))
