"""posenc.configs.families.pe_audio, compared with the models' own code in transformers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from families.harness import Proof, build, config_of, frequencies, modeling, proof, spec_of
from families.hooked import turned_inside
from families.proofs_cohere import allowed
from families.turning import YARN

CLASSES = {
    "pe_audio_encoder": "PeAudioEncoder",
    "pe_video_encoder": "PeVideoEncoder",
    "pe_audio_video_encoder": "PeAudioVideoEncoder",
}


@proof(*CLASSES)
def pe_audio_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, interleaved pairs; a class token at 0, frames from 1")
    small = {"encoder_hidden_size": 2, "downsampling_ratios": [2, 2], "codebook_dim": 8}
    for more in ({}, {"rope_parameters": YARN}):
        if model_type == "pe_audio_encoder":
            more = more | {"dac_config": {"model_type": "dac", **small}}
        config = config_of(model_type, head_dim=24, num_hidden_layers=2, **more)
        with without_frames(model_type):
            model = build(config, CLASSES[model_type])
        spec = spec_of(config, defaults=True)
        frames = torch.randn(2, 7, 64)
        rest = (None, None, None) if model_type == "pe_audio_video_encoder" else (None,)
        model.embedder.forward = lambda *inputs, frames=frames, rest=rest, **keywords: (frames, *rest)
        inputs = {"pixel_values_videos" if model_type == "pe_video_encoder" else "input_values": torch.zeros(1)}
        found = turned_inside(result, spec, model, model.rotary_emb, most=allowed(spec), softmax=True, **inputs)
        assert all(call.mask is None and call.q.shape[2] == 8 for call in found)
        frequencies(result, model.rotary_emb, spec)
    return result


@contextlib.contextmanager
def without_frames(model_type: str) -> Iterator[None]:
    """Encoders without what lies below them: it makes frames, knows no positions of theirs, and may need other packages."""
    module = modeling(model_type)
    name = next(name for name in vars(module) if name.endswith("EncoderEmbedder") and "Patch" not in name)
    original = getattr(module, name)
    setattr(module, name, lambda config: torch.nn.Identity())
    try:
        yield
    finally:
        setattr(module, name, original)
