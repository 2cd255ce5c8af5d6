"""posenc.configs.families.time_series_transformer, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

import posenc
from families.harness import Proof, at_of, build, config_of, proof, spec_of
from families.silenced import added_by

NONE = dict.fromkeys(
    ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size", "intermediate_size")
)


@proof("time_series_transformer", "informer", "autoformer")
def time_series_transformer(model_type: str) -> Proof:
    auto = model_type == "autoformer"
    result = Proof(model_type, "sinusoids, sin | cos, added to the values; the decoder continues the encoder's positions")
    for width in (32, 30):
        config = config_of(
            model_type,
            **NONE,
            d_model=width,
            encoder_layers=2,
            decoder_layers=2,
            context_length=12,
            prediction_length=6,
            encoder_ffn_dim=16,
            decoder_ffn_dim=16,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            **({"label_length": 4} if auto else {}),
        )
        model, spec = build(config, attention=None), spec_of(config)
        values = torch.randn(2, 12, config.feature_size, generator=torch.Generator().manual_seed(0))
        after = "layernorm_embedding"
        at = posenc.Positions.arange(2, 12)
        added_by(result, spec["encoder"], model.encoder, "embed_positions", after, at, {"inputs_embeds": values})
        start = 8 if auto else 12
        assert spec["decoder"].coordinates.en.startswith(f"from {start} ")
        at = at_of(torch.arange(start, start + 6).expand(2, -1))
        inputs: dict[str, Any] = {"inputs_embeds": values[:, :6]}
        if auto:
            inputs |= {"trend": values[:, :6]}
        states = torch.randn(2, 12, width)
        inputs["encoder_hidden_states"] = states
        added_by(result, spec["decoder"], model.decoder, "embed_positions", after, at, inputs)
        assert [len(part.layers) for part in spec.parts] == [len(model.encoder.layers), len(model.decoder.layers)]
        names = {type(layer.self_attn).__name__ for layer in model.encoder.layers}
        kind = {"autocorrelation": "AutoformerAttention", "prob_sparse": "InformerProbSparseAttention"}
        assert names == {kind.get(spec["encoder"].layers[0].kind, "TimeSeriesTransformerAttention")}
    return result
