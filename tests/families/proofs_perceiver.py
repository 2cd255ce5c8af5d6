"""posenc.configs.families.perceiver, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, build, config_of, proof, spec_of, tokens
from posenc.configs.weights import with_weights
from posenc.encodings.bases.fourier import spread

TINY: dict[str, Any] = {
    "num_latents": 4,
    "d_latents": 32,
    "d_model": 64,
    "num_self_attends_per_block": 2,
    "num_self_attention_heads": 2,
    "num_cross_attention_heads": 1,
    "max_position_embeddings": 12,
    "image_size": 8,
    "train_size": [6, 10],
    "num_frames": 3,
    "audio_samples_per_frame": 16,
    "samples_per_patch": 4,
    "output_shape": [1, 3, 8, 8],
    "output_num_channels": 8,
    "_label_trainable_num_channels": 8,
    "num_labels": 4,
    "hidden_size": None,
    "num_hidden_layers": None,
    "num_attention_heads": None,
}


def line(*sizes: int) -> posenc.Positions:
    """Coordinates from -1 to 1 along each axis."""
    axes = torch.meshgrid(*(torch.linspace(-1, 1, size, dtype=torch.float64) for size in sizes), indexing="ij")
    coords = torch.stack(axes, dim=-1).view(1, -1, len(sizes))
    return posenc.Positions.at(coords if len(sizes) > 1 else coords[..., 0])


@proof("perceiver")
def perceiver(model_type: str) -> Proof:
    result = Proof(model_type, "learned tables for text and images, Fourier features for images, flow, video and audio")

    def made(name: str) -> tuple[torch.nn.Module, Any]:
        config = config_of(model_type, **TINY)
        return build(config, name, attention=None), spec_of(config)

    @torch.no_grad()
    def bands(spec: Any, part: str, theirs: Tensor, at: posenc.Positions) -> None:
        encoding = spec[part].encoding(0)
        got = encoding.embed(torch.zeros(1, at.length, encoding.d_model), at)
        # coordinates and angles are fp32's: half a rounding of the largest angle, π·resolution / 2
        most = 4 + 3.2 * max(dict(spec[part].layers[0].uses[0].arguments)["resolution"])
        result.close("Fourier bands beside images, flow, video and sound", got, theirs, most)

    model, spec = made("PerceiverForMaskedLM")
    own, text = model.perceiver, tokens((2, 12))
    assert len(own.encoder.self_attends) == len(spec.layers)
    with torch.no_grad():
        x = own.input_preprocessor.embeddings(text)
        got = with_weights(spec["text"], 0, model.state_dict()).embed(x, posenc.Positions.arange(2, 12))
        result.equal("text", got, own.input_preprocessor(text)[0])
        queries = own.decoder.decoder_query(x, None, x)
        got = with_weights(spec["text_queries"], 0, model.state_dict()).embed(
            torch.zeros_like(x), posenc.Positions.arange(2, 12)
        )
        result.equal("queries of text", got, queries)
    model, spec = made("PerceiverForImageClassificationLearned")
    own = model.perceiver.input_preprocessor
    with torch.no_grad():
        at = posenc.Positions.grid(8, 8)
        got = with_weights(spec["image_learned"], 0, model.state_dict()).embed(torch.zeros(1, 64, 256), at)
        result.equal("pixels of images", got, own.position_embeddings(1))
        beside = own(torch.randn(1, 3, 8, 8))[0][..., -256:]
        result.equal("pixels of images", own.positions_projection(got), beside)
    for name, part, image, size in (
        ("ImageClassificationFourier", "image_fourier", torch.randn(1, 3, 6, 5), (6, 5)),
        ("ImageClassificationConvProcessing", "image_convolved", torch.randn(1, 3, 16, 24), (4, 6)),
        ("OpticalFlow", "flow", torch.randn(1, 2, 27, 6, 10), (6, 10)),
    ):
        model, spec = made(f"PerceiverFor{name}")
        with torch.no_grad():
            found = model.perceiver.input_preprocessor(image)[0]
            if part == "image_convolved":
                size = tuple(model.perceiver.input_preprocessor.convnet(image).shape[-2:])
        bands(spec, part, found[..., -spec[part].encoding(0).d_model :], spread(*size))
    model, spec = made("PerceiverForMultimodalAutoencoding")
    inside = model.perceiver.input_preprocessor.modalities
    video, audio = (inside[name].position_embeddings for name in ("image", "audio"))
    for part, module, sizes in (("video", video, (3, 2, 2)), ("audio", audio, (12,))):
        bands(spec, part, module(sizes, 1, torch.device("cpu"), torch.float32), line(*sizes))
    asked = spec_of(config_of(model_type, **TINY, architectures=["PerceiverForOpticalFlow"]))
    result.equal("which parts the class of a file has", [part.part for part in asked.parts], ["flow"])
    return result
