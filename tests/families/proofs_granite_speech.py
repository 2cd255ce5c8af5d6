"""posenc.configs.families.granite_speech, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from families.harness import Proof, at_of, build, calls, config_of, proof, spec_of
from families.scores import bias_of
from posenc.configs.weights import with_weights


@proof("granite_speech_encoder", "granite_speech_plus_encoder")
def granite_speech_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "relative vectors for keys, within blocks of frames")
    config = config_of(
        model_type,
        hidden_dim=64,
        num_layers=2,
        num_heads=4,
        dim_head=24,
        input_dim=16,
        context_size=7,
        max_pos_emb=9,
        output_dim=8,
        conv_kernel_size=3,
        hidden_size=None,
        num_hidden_layers=None,
        num_attention_heads=None,
    )
    name = "GraniteSpeechPlusCTCEncoder" if "plus" in model_type else "GraniteSpeechCTCEncoder"
    encoder, spec = build(config, name, attention=None), spec_of(config)
    reached: list[tuple[Tensor, Tensor, Tensor, float]] = []
    attend = torch.nn.functional.scaled_dot_product_attention

    def record(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor, scale: float) -> Tensor:
        reached.append((q, k, attn_mask, scale))
        return attend(q, k, v, attn_mask=attn_mask, scale=scale)

    torch.nn.functional.scaled_dot_product_attention = record  # type: ignore[assignment]
    try:
        with torch.no_grad():
            encoder(torch.randn(2, 21, 16, generator=torch.Generator().manual_seed(0)))
    finally:
        torch.nn.functional.scaled_dot_product_attention = attend
    assert len(reached) == len(spec.layers) == 2
    for number, (q, k, theirs, scale) in enumerate(reached):
        assert q.shape[:3] == (2 * 3, 4, 7)
        compare(result, with_weights(spec, number, encoder.state_dict()), q, k, theirs, scale)
        assert spec.layers[number].window == 7
    return result


@proof("granite_speech5_encoder")
def granite_speech5_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "relative vectors for keys, within blocks of frames; some layers halve the frames")
    config = config_of(
        model_type,
        num_hidden_layers=3,
        num_key_value_heads=4,
        head_dim=24,
        num_mel_bins=4,
        context_size=7,
        max_position_embeddings=9,
        conv_kernel_size=3,
        subsample_layers=[1],
    )
    encoder, spec = build(config), spec_of(config)
    found = calls(encoder, input_features=torch.randn(2, 28, 16, generator=torch.Generator().manual_seed(0)), fixed=False)
    assert len(found) == len(spec.layers) == 3
    assert [len(call.q) for call in found] == [8, 8, 4]
    for number, call in enumerate(found):
        compare(result, with_weights(spec, number, encoder.state_dict()), call.q, call.k, call.mask, call.scaling)
    return result


@torch.no_grad()
def compare(result: Proof, encoding: Any, q: Tensor, k: Tensor, theirs: Tensor, scale: float) -> None:
    got = bias_of(encoding, q, k, at_of(torch.arange(q.shape[2])[None]))
    assert abs(encoding.softmax_scale(q.shape[-1]) - scale) < 1e-12
    result.close("what is added to the scores", got, theirs, 8.0)
