"""posenc.configs.families.xcodec2, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

from families.harness import Proof, calls, config_of, modeling, proof, spec_of

STEM = {"xcodec2": "Xcodec2", "neucodec": "NeuCodec"}


@proof("xcodec2", "neucodec")
def xcodec2(model_type: str) -> Proof:
    result = Proof(
        model_type, "RoPE with the same angle for all tokens of a head, which cancels; a conformer for semantics"
    )
    config: Any = config_of(model_type, num_hidden_layers=2, head_dim=16, num_key_value_heads=4)
    config._attn_implementation = "probe"
    torch.manual_seed(0)
    module = modeling(model_type)
    decoder = getattr(module, f"{STEM[model_type]}Decoder")(config).eval()
    spec = spec_of(config, defaults=True)
    entered: list[torch.Tensor] = []
    for layer in decoder.layers:
        layer.self_attn.register_forward_pre_hook(
            lambda m, args, named: entered.append(args[0] if args else named["hidden_states"]), with_kwargs=True
        )
    x = torch.randn(1, 9, decoder.fc.in_features)
    found = calls(decoder, x, fixed=False)
    assert len(found) == len(decoder.layers) == len(spec["decoder"].layers)
    assert not any(layer.uses for layer in spec["decoder"].layers)
    with torch.no_grad():
        for call, hidden in zip(found, entered, strict=True):
            q, k = (getattr(call.module, f"{side}_proj")(hidden).unflatten(-1, (4, 16)).transpose(1, 2) for side in "qk")
            assert not torch.allclose(q[:, 1:], call.q[:, 1:], atol=1e-3), "heads after the first do turn"
            result.close("scores", q @ k.transpose(-1, -2), call.q @ call.k.transpose(-1, -2), 16.0)
    with torch.device("meta"):
        whole = getattr(module, f"{STEM[model_type]}Model")(config)
    result.equal("semantic_model_config", whole.semantic_encoder.config.model_type, spec["semantic_model_config"].family)
    return result
