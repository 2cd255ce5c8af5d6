"""Networks without attention and without positions."""

from __future__ import annotations

CONVOLUTIONAL = (
    "bit", "convnext", "convnextv2", "dinov3_convnext", "efficientnet", "focalnet", "hgnet_v2", "mobilenet_v1",
    "mobilenet_v2", "poolformer", "regnet", "resnet", "rt_detr_resnet", "textnet", "superpoint", "uvdoc", "uvdoc_backbone",
    "pp_lcnet", "pp_lcnet_v3", "pp_lcnet_v4", "pp_ocrv5_mobile_det", "pp_ocrv5_server_det", "pp_ocrv6_medium_det",
    "pp_ocrv6_small_det", "dac", "univnet", "speecht5_hifigan", "fastspeech2_conformer_hifigan",
    "vibevoice_acoustic_tokenizer", "vibevoice_acoustic_tokenizer_decoder", "vibevoice_acoustic_tokenizer_encoder",
)  # fmt: skip
NO_POSITIONS = dict.fromkeys(CONVOLUTIONAL, "a convolutional network") | {"encodec": "convolutions and recurrent layers"}
