"""No attention and no positions: convolutional networks, whose order is in which neighbours a kernel reads."""

from __future__ import annotations

from posenc.dialects.family import family
from posenc.dialects.keys import Keys
from posenc.dialects.spec import PositionSpec

CONVOLUTION = "none: a convolutional network; order is in which neighbours a kernel reads"


@family(
    "bit",
    "convnext",
    "convnextv2",
    "dinov3_convnext",
    "efficientnet",
    "focalnet",
    "hgnet_v2",
    "mobilenet_v1",
    "mobilenet_v2",
    "poolformer",
    "regnet",
    "resnet",
    "rt_detr_resnet",
    "textnet",
    "superpoint",
    "uvdoc",
    "uvdoc_backbone",
    "pp_lcnet",
    "pp_lcnet_v3",
    "pp_lcnet_v4",
    "pp_ocrv5_mobile_det",
    "pp_ocrv5_server_det",
    "pp_ocrv6_medium_det",
    "pp_ocrv6_small_det",
    "dac",
    "univnet",
    "speecht5_hifigan",
    "fastspeech2_conformer_hifigan",
    "vibevoice_acoustic_tokenizer",
    "vibevoice_acoustic_tokenizer_decoder",
    "vibevoice_acoustic_tokenizer_encoder",
)
def _(keys: Keys) -> PositionSpec:
    keys.get("out_point_positions2D", None)  # UVDoc's sizes of convolutions that say where points go
    return PositionSpec(keys.family, coordinates=CONVOLUTION)


@family("encodec")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, coordinates="none: convolutions, and recurrent layers that carry a state along")
