"""posenc.configs.families.patchtst, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

import posenc
from families.adding import entering
from families.harness import Proof, build, config_of, proof, spec_of
from families.proofs_time_series_transformer import NONE
from posenc.encodings.sinusoidal import centred_table


def in_channels(result: Proof, spec: Any, model: Any, after: str, rows: int, inputs: dict[str, Any]) -> None:
    """[b, c, t, d] as [b·c, t, d]: every channel of the series is a row."""
    from posenc.configs.weights import with_weights

    encoding = with_weights(spec, 0, model.state_dict())
    table = next(value for name, value in model.named_parameters() if name.endswith("position_enc"))
    with_positions, kept = entering(model, after, inputs), table.detach().clone()
    with torch.no_grad():
        table.zero_()
        alone = entering(model, after, inputs)
        table.copy_(kept)
        assert alone.shape[2] == rows
        got = encoding.embed(alone.flatten(0, 1), posenc.Positions.arange(alone.shape[0] * alone.shape[1], rows))
        result.close("patches with positions", got, with_positions.flatten(0, 1))


@proof("patchtst")
def patchtst(model_type: str) -> Proof:
    result = Proof(model_type, "a stored table over patches, centred sinusoids or random numbers")
    for kind, classed in (("sincos", False), ("random", True), ("sincos", True)):
        config = config_of(
            model_type,
            **NONE | {"num_hidden_layers": 2, "num_attention_heads": 4},
            d_model=32,
            ffn_dim=16,
            context_length=20,
            patch_length=4,
            patch_stride=3,
            num_input_channels=2,
            channel_attention=True,
            positional_encoding_type=kind,
            use_cls_token=classed,
        )
        model, spec = build(config, attention=None), spec_of(config)
        table = next(value for name, value in model.named_parameters() if name.endswith("position_enc"))
        if kind == "sincos":
            result.close("the table they start from", centred_table(*table.shape), table, 8.0)
        if classed:
            torch.nn.init.normal_(next(value for name, value in model.named_parameters() if name.endswith("cls_token")))
        rows = 6 + classed
        assert len(table) == rows
        assert len(spec.layers) == 2 * len(model.encoder.layers)
        in_channels(result, spec, model, "encoder.layers.0", rows, {"past_values": torch.randn(2, 20, 2)})
    return result


@proof("patchtsmixer")
def patchtsmixer(model_type: str) -> Proof:
    result = Proof(model_type, "an optional stored table over patches; own mixing weights for every patch")
    for asked, attends in ((True, True), (True, False), (False, False)):
        config = config_of(
            model_type,
            **NONE,
            d_model=32,
            num_layers=2,
            context_length=20,
            patch_length=4,
            patch_stride=3,
            num_input_channels=2,
            use_positional_encoding=asked,
            self_attn=attends,
            self_attn_heads=2,
        )
        model, spec = build(config, attention=None), spec_of(config)
        mixers = model.encoder.mlp_mixer_encoder.mixers
        assert len(spec.layers) == len(mixers)
        assert all(
            (layer.kind == "full_attention") == mixer.patch_mixer.self_attn
            for layer, mixer in zip(spec.layers, mixers, strict=True)
        )
        assert bool(spec.layers[0].uses) == asked == any("position_enc" in name for name, _ in model.named_parameters())
        if asked:
            in_channels(result, spec, model, "mlp_mixer_encoder", 6, {"past_values": torch.randn(2, 20, 2)})
    return result
