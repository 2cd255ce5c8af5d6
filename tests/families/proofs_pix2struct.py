"""posenc.configs.families.pix2struct, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

import posenc
from families.adding import added
from families.harness import Proof, build, calls, config_of, made_of, proof, spec_of, tokens
from families.proofs_t5 import far
from families.scores import bias_of
from families.turning import hidden
from posenc.configs.weights import with_weights


@proof("pix2struct_vision_model", "kosmos_2_5_vision_model")
def pix2struct_vision_model(model_type: str) -> Proof:
    result = Proof(model_type, "learned vectors of row and column, summed")
    pix = model_type == "pix2struct_vision_model"
    own = {"seq_len": 40, "d_kv": 16} if pix else {"max_num_patches": 40, "head_dim": 16}
    config = config_of(model_type, patch_embed_hidden_size=12, num_hidden_layers=2, num_attention_heads=4, **own)
    spec = spec_of(config)
    model = build(config, "Pix2StructVisionModel" if pix else "Kosmos2_5VisionModel")
    places = torch.tensor([[(1, 1), (1, 2), (2, 1), (39, 38), (0, 0)], [(1, 7), (17, 1), (3, 3), (0, 0), (0, 0)]])
    patches = torch.cat([places.float(), torch.randn(2, 5, 12)], dim=-1)
    patches[places.sum(-1) == 0] = 0
    # three terms are summed in another order: two roundings
    added(
        result,
        spec,
        model,
        "layer.0",
        posenc.Positions.at(places),
        {"flattened_patches": patches},
        most=2.0,
        what="what enters the first layer",
    )
    assert len(model.encoder.layer) == len(spec.layers) == 2
    assert not spec.layers[1].uses
    return result


@proof("pix2struct_text_model")
def pix2struct_text_model(model_type: str) -> Proof:
    result = Proof(model_type, "T5 bias, causal buckets, one table for all layers, softmax scale 1; none for image patches")
    sizes: dict[str, Any] = {
        "num_layers": 2,
        "num_heads": 4,
        "d_kv": 16,
        "hidden_size": 64,
        "d_ff": 16,
        "num_hidden_layers": None,
        "num_attention_heads": None,
        "relative_attention_num_buckets": 12,
        "relative_attention_max_distance": 40,
        "initializer_range": 0.02,
    }
    config = config_of(model_type, **sizes)
    model, spec = build(config, "Pix2StructTextModel"), spec_of(config)
    first = model.layer[0].self_attention.attention
    torch.nn.init.normal_(first.relative_attention_bias.weight)
    found = calls(model, fixed=False, input_ids=tokens((2, 9)), encoder_hidden_states=torch.randn(2, 5, 64))
    own, asking = found[::2], found[1::2]
    assert len(own) == len(asking) == len(spec.layers)
    for layer, call in enumerate(own):
        encoding = with_weights(spec, layer, model.state_dict())
        at = posenc.Positions.arange(2, 9)
        expected = call.options["position_bias"].expand(2, -1, -1, -1)
        result.equal("bias of every layer", bias_of(encoding, call.q, call.k, at), expected)
        result.equal("softmax scale", encoding.softmax_scale(16), float(call.scaling))
    hidden(result, spec, own)
    for call in asking:
        result.equal("nothing toward patches", float(call.options["position_bias"].abs().max()), 0.0)
    far(result, with_weights(spec, 0, model.state_dict()), first)
    return result


@proof("pix2struct")
def pix2struct(model_type: str) -> Proof:
    parts = {"text_config": "decoder", "vision_config": "encoder"}
    return made_of(
        model_type, "patches with row and column, and a T5 decoder", parts, None, "Pix2StructForConditionalGeneration"
    )
