"""posenc.configs.families.musicflamingo, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, config_of, made_of, modeling, proof, spec_of


@proof("musicflamingo")
def musicflamingo(model_type: str) -> Proof:
    result = made_of(
        model_type,
        "audio and text; audio frames are rotated by time times index",
        {"audio_config": "audio_tower", "text_config": "language_model", "audio_times": "pos_emb"},
    )
    module = modeling(model_type)
    for more in ({}, {"rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 0.3}}):
        config = config_of(
            model_type,
            audio_config={"model_type": "audioflamingo3_encoder", "hidden_size": 40, "num_attention_heads": 2},
            **more,
        )
        turning, spec = module.MusicFlamingoRotaryEmbedding(config), spec_of(config)["audio_times"]
        frames, step = 30, config.audio_frame_step * 4
        windows = torch.tensor([0, 1, 2, 199])
        times = windows[:, None] * frames * step + torch.arange(frames, dtype=torch.float32) * step
        x = torch.randn(4, frames, 40)
        theirs = module.apply_rotary_time_emb(x, *turning(times, seq_len=frames))
        coords = torch.stack(
            [times, windows[:, None].expand_as(times).float(), torch.arange(frames).expand_as(times).float()], dim=-1
        )
        encoding = spec.encoding(0, exact="model")
        result.close("frames of four windows", encoding.embed(x, posenc.Positions.at(coords)), theirs)
        parity = encoding.frequencies.values
        result.equal(f"{len(parity)} frequencies", torch.tensor(parity, dtype=torch.float32), turning.inv_freq)
    return result
