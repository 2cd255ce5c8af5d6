"""Models and parts without positions: convolutions, recurrence, sets, and models of the timm library."""

from __future__ import annotations

from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Grade, Layer, PositionSpec

# Where order comes from, and the model types.
TABLE = {
    say("convolutions"): """
        align_vision_model apertus1p5_vision_tokenizer bit chameleon_vqgan convnext convnextv2 dac dinov3_convnext
        efficientnet emu3_vqgan
        fastspeech2_conformer_hifigan flava_image_codebook focalnet glm_image_vqmodel hgnet_v2 janus_vqgan mobilenet_v1
        mobilenet_v2 muse_spark_audio poolformer pp_lcnet pp_lcnet_v3 pp_lcnet_v4 pp_ocrv5_mobile_det pp_ocrv5_server_det
        pp_ocrv6_medium_det pp_ocrv6_small_det qwen2_5_omni_bigvgan regnet resnet rt_detr_resnet sapiens2_head
        speecht5_hifigan superpoint textnet univnet uvdoc uvdoc_backbone vibevoice_acoustic_tokenizer
        vibevoice_acoustic_tokenizer_decoder vibevoice_acoustic_tokenizer_encoder""",
    say("convolutions and recurrent layers"): "encodec wavtokenizer wavtokenizer_encoder",
    say("the input features, which learned queries attend to"): "idefics_perciever",
    say("linear layers that merge the pixels of each patch in order"): "inkling_vision",
    say("each token is processed alone"): "gemma4_unified_audio inkling_audio vibevoice_diffusion",
}
ORDER = {name: why for why, names in TABLE.items() for name in names.split()}


@family(*ORDER)
def no_positions(keys: Keys) -> PositionSpec:
    keys.get("out_point_positions2D", None)  # UVDoc: sizes of convolutions
    return PositionSpec(keys.family, coordinates=say("none: {order}", order=ORDER[keys.family]))


@family("molmo2_adapter")
def molmo2_adapter(keys: Keys) -> PositionSpec:
    """One attention layer pools a few patches into one; their order has no effect."""
    return PositionSpec(
        keys.family, layers=(Layer((), "pooling", causal=False),), coordinates=say("none: a set of patches")
    )


@family("timm_backbone", "timm_wrapper", "gemma3n_vision")
def timm_backbone(keys: Keys) -> PositionSpec:
    """A model of the timm library, given by its name."""
    key = "backbone" if keys.family == "timm_backbone" else "architecture"
    grade: Grade = "note" if keys.family == "gemma3n_vision" else "warning"  # a convolutional MobileNetV5
    name = keys.text(key, None)
    keys.remark(grade, key, say("{name}: a model of timm; its positions are not read here", name=name or say("no name")))
    return PositionSpec(keys.family, coordinates=say("not read: a model of timm"))
