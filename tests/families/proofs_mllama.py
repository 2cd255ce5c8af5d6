"""posenc.configs.families.mllama, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import IDS, Proof, build, config_of, frequencies, module_named, proof, rotary, spec_of, tokens
from families.proofs_siglip import made
from families.turning import YARN
from posenc.configs.weights import with_weights


@proof("mllama_vision_model")
def mllama_vision_model(model_type: str) -> Proof:
    result = Proof(model_type, "gated tile and patch vectors, added at three points")
    config = made(
        model_type,
        image_size=6,
        attention_heads=2,
        num_global_layers=2,
        intermediate_layers_indices=[0],
        num_attention_heads=None,
    )
    spec, model = spec_of(config), build(config, "MllamaVisionModel")
    ratios = torch.tensor([[2], [7]])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "gate" in name or "embedding" in name:
                torch.nn.init.normal_(parameter)
    state = model.state_dict()
    pre, inside = with_weights(spec, 0, state)
    post = with_weights(spec, 2, state)
    for module, encoding, first, patches in (
        (model.pre_tile_positional_embedding, pre, 1, 9),
        (model.gated_positional_embedding, inside, 0, 10),
        (model.post_tile_positional_embedding, post, 0, 10),
    ):
        places = [[(int(ratio), tile, first + patch) for tile in range(4) for patch in range(patches)] for ratio in ratios]
        x = torch.randn(2, 4, patches, 32, generator=torch.Generator().manual_seed(3))
        with torch.no_grad():
            got = encoding.embed(x.flatten(1, 2), posenc.Positions.at(torch.tensor(places)))
            result.close("what each of the three modules adds", got, module(x, ratios).flatten(1, 2), 2.0)
    assert [len(layer.uses) for layer in spec.layers] == [2, 0, 1, 0]
    assert len(model.transformer.layers) + len(model.global_transformer.layers) == len(spec.layers)
    return result


@proof("mllama_text_model")
def mllama_text_model(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs; cross-attention to images has no positions")
    config = config_of(model_type, cross_attention_layers=[1, 3], num_hidden_layers=5, rope_parameters=YARN)
    model, spec = build(config, "MllamaTextModel"), spec_of(config)
    image = torch.randn(2, 8, 64, generator=torch.Generator().manual_seed(5))
    rotary(
        result,
        config,
        spec,
        model,
        inputs={"input_ids": tokens(IDS.shape), "cross_attention_states": image, "use_cache": False},
        most=2.0,
    )
    assert [layer.kind == "cross_attention" for layer in spec.layers] == [False, True, False, True, False]
    frequencies(result, module_named(model, "rotary_emb"), spec)
    return result
