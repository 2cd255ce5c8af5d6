"""posenc.configs.families.phi4_multimodal, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, build, calls, config_of, proof, spec_of
from families.proofs_phi3 import LONG, LONGROPE, SHORT, at_both_lengths
from posenc.configs.weights import with_weights


@proof("phi4_multimodal")
def phi4_multimodal(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, part of the head; LongRoPE; image and audio tokens among the text")
    vision = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "image_size": 8,
        "patch_size": 2,
        "crop_size": 8,
    }
    audio = {
        "hidden_size": 32,
        "num_blocks": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "input_size": 16,
        "nemo_conv_channels": 8,
        "ext_pw_out_channel": 32,
        "depthwise_separable_out_channel": 32,
    }
    sizes = {
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "max_position_embeddings": 131072,
        "sliding_window": 4,
        "vision_config": vision,
        "audio_config": audio,
    }
    half = LONGROPE | {"partial_rotary_factor": 0.75, "short_factor": SHORT[:6], "long_factor": LONG[:6]}
    at_both_lengths(result, config_of(model_type, rope_parameters=half, **sizes))
    parts = {part.part: part.family for part in spec_of(config_of(model_type, **sizes)).parts}
    result.equal("its parts", parts, {"vision_config": "phi4_multimodal_vision", "audio_config": "phi4_multimodal_audio"})
    return result


@proof("phi4_multimodal_vision")
def phi4_multimodal_vision(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid; a patch reads the cell that holds its corner")
    config = config_of(model_type, num_hidden_layers=2, image_size=14, patch_size=2, crop_size=14)
    model, spec = build(config, "Phi4MultimodalVisionModel"), spec_of(config)
    assert len(spec.layers) == len(model.encoder.layers)
    assert not any(layer.uses for layer in spec.layers[1:])
    encoding = with_weights(spec, 0, model.state_dict())
    with torch.no_grad():
        for height, width in ((7, 7), (3, 5), (9, 2)):
            pixels = torch.rand(1, 3, height * 2, width * 2)
            patches = model.embeddings.patch_embedding(pixels).flatten(2).transpose(1, 2)
            theirs = model.embeddings(pixels, torch.ones(1, height, width, dtype=torch.bool))
            at = posenc.Positions.grid(height, width, sized=True)
            result.close("embedded patches of images of three shapes", encoding.embed(patches, at), theirs)
    return result


@proof("phi4_multimodal_audio")
def phi4_multimodal_audio(model_type: str) -> Proof:
    result = Proof(model_type, "a learned number for each head and clipped distance; padding stays visible")
    config = config_of(
        model_type,
        hidden_size=32,
        num_blocks=2,
        num_attention_heads=4,
        bias_max_distance=5,
        input_size=16,
        nemo_conv_channels=8,
        ext_pw_out_channel=32,
        depthwise_separable_out_channel=32,
    )
    model, spec = build(config, "Phi4MultimodalAudioModel"), spec_of(config)
    kept = torch.ones(2, 96, dtype=torch.bool)
    found = calls(model, torch.randn(2, 96, 16), kept)
    assert len(found) == len(spec.layers)
    n = found[0].q.shape[2]
    assert n > 10
    at = posenc.Positions.arange(2, n)
    b, h, i, j = torch.meshgrid(*(torch.arange(size) for size in (2, 4, n, n)), indexing="ij")
    for number, call in enumerate(found):
        bias = with_weights(spec, number, model.state_dict()).bias(call.q, call.k, at, at)
        result.close("bias of every pair of frames", bias(b, h, i, j).detach() + 1, call.mask.detach())
    kept[1, 40:] = False
    seen = calls(model, torch.randn(2, 96, 16), kept)[len(found) - 1]
    padded = bias(b, h, i, j)[1, :, :, -1].detach()
    result.close(
        "bias of padding, to which the mask adds nothing where it adds 1 to frames", padded, seen.mask[1, :, :, -1].detach()
    )
    return result
