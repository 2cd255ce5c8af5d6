"""posenc.configs.families.no_positions, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

from families.harness import Proof, build, calls, config_of, proof, spec_of


@proof("molmo2_adapter")
def molmo2_adapter(model_type: str) -> Proof:
    result = Proof(model_type, "no positions: pools a set of patches")
    config = config_of(model_type, vision_feature_layer=[0], head_dim=16, hidden_size=64, text_hidden_size=32)
    model = build(config, "Molmo2Adapter")
    patches, chosen = torch.randn(1, 12, 64), torch.tensor([[0, 1, 4, 5], [2, 3, 6, 7]])
    first, other = (
        calls(model, image_features=patches, pooled_patches_idx=order, fixed=False)
        for order in (chosen, chosen[..., [2, 0, 3, 1]])
    )
    assert len(first) == len(spec_of(config).layers)
    result.equal("keys in another order are the same keys", first[0].k[:, :, [2, 0, 3, 1]], other[0].k)
    result.close("queries do not change with order", other[0].q, first[0].q, 8.0)  # a mean, summed in another order
    return result


_SCAN = "order comes from the recurrence of a state space model; its code has no attention and reads no position"

RECURRENT = {
    "falcon_mamba": _SCAN,
    "mamba": _SCAN,
    "mamba2": _SCAN,
    "rwkv": "order comes from time mixing, a recurrence that decays at learned rates; its code has no other attention",
    "xlstm": "order comes from the recurrence of gated matrix memories; its code has no attention and reads no position",
}

STAGES = "attention has none; order comes from convolutions between the layers"

UNORDERED = {
    "cvt": "attention has none; queries, keys and values are made by convolutions",
    "glpn": STAGES,
    "segformer": STAGES,
    "pvt_v2": STAGES,
    "mobilevit": STAGES,
    "mobilevitv2": STAGES,
    "swiftformer": STAGES,
    "pp_ocrv5_server_rec": "attention has none, over the features of a convolutional backbone",
    "pp_ocrv5_mobile_rec": "attention has none, over the features of a convolutional backbone",
    "pp_ocrv6_small_rec": "attention has none, over the features of a convolutional backbone",
    "pp_ocrv6_tiny_rec": "a convolutional backbone, and a head without attention",
    "slanet": "a convolutional backbone, read by a recurrent cell",
    "superglue": "attention has none; a network of each point's coordinates and score is added to its features",
}

CONVOLUTIONAL_TYPES = (
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

CONVOLUTIONAL = dict.fromkeys(CONVOLUTIONAL_TYPES, "a convolutional network") | {
    "encodec": "convolutions and recurrent layers"
}

PARTS = {
    "glm_image_vqmodel": "a codebook between convolutions",
    "qwen2_5_omni_bigvgan": "transposed convolutions",
    "sapiens2_head": "convolutions",
    "vibevoice_diffusion": "each token is processed alone; its sinusoids encode diffusion time",
}

NO_POSITIONS = RECURRENT | UNORDERED | CONVOLUTIONAL | PARTS
