"""posenc.configs.families.timesfm, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

from families.harness import IDS, Proof, at_of, build, config_of, frequencies, proof, spec_of
from families.turning import LINEAR, YARN, also


@proof("timesfm2_5")
def timesfm2_5(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, over patches, causal, normalised afterwards")
    config = config_of(model_type, num_hidden_layers=2, head_dim=24, rope_parameters=LINEAR)
    model, spec = build(config), spec_of(config)
    rotary, layer = model.rotary_emb, model.layers[0].self_attn
    ids = torch.cat([-IDS[:1], IDS[1:]])  # padding in front counts down
    entered: list[torch.Tensor] = []
    for norm in (layer.q_norm, layer.k_norm):
        norm.register_forward_pre_hook(lambda module, inputs: entered.append(inputs[0]))
    x = torch.randn(2, 8, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for at in (torch.zeros_like(ids), ids):
            layer(x, position_embeddings=rotary(x, at), attention_mask=None)
    encoding = spec.encoding(0, exact="model")
    for side, before, after in zip(("query", "key"), entered[:2], entered[2:], strict=True):
        result.close("queries and keys at positions to 131071", encoding.rotate(before, at_of(ids), side), after)
    frequencies(result, rotary, spec)
    also(result, model, head_dim=24)
    also(result, model, head_dim=24, rope_parameters=YARN)

    seen: list[torch.Tensor] = []
    rotary.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[1]))
    torch.manual_seed(0)
    series, padding = torch.randn(2, 4 * config.patch_length), torch.zeros(2, 4 * config.patch_length)
    padding[1, : 2 * config.patch_length] = 1
    with torch.no_grad():
        model(past_values=series, past_values_padding=padding)
    result.equal("what patches are numbered", seen[0], torch.tensor([[0, 1, 2, 3], [-2, -1, 0, 1]]))
    return result


@proof("timesfm")
def timesfm(model_type: str) -> Proof:
    result = Proof(model_type, "no positions in causal attention over patches; optional sinusoids, sin | cos")
    for shortest in (1, 3):
        config = config_of(
            model_type,
            num_hidden_layers=2,
            use_positional_embedding=True,
            head_dim=16,
            min_timescale=shortest,
            max_timescale=500,
        )
        model, spec = build(config), spec_of(config)
        at = torch.arange(12)[None]
        with torch.no_grad():
            got = spec.encoding(0).embed(torch.zeros(1, 12, 64), at_of(at))
            most = 2.0 * 11 * shortest  # their frequencies and angles, up to 11 times `shortest`, each round once in fp32
            result.close("what is added to 12 patches", got, model.position_emb(12), most)
    added: list[torch.Tensor] = []
    model.input_ff_layer.register_forward_hook(lambda module, inputs, output: added.append(output.clone()))
    model.layers[0].register_forward_pre_hook(lambda module, inputs: added.append(inputs[0]))
    torch.manual_seed(0)
    series, padding = torch.randn(2, 4 * config.patch_length), torch.zeros(2, 4 * config.patch_length)
    padding[1, : 2 * config.patch_length] = 1
    with torch.no_grad():
        model(past_values=series, past_values_padding=padding, freq=torch.zeros(2, 1, dtype=torch.long))
        numbers = torch.tensor([[0, 1, 2, 3], [2, 3, 0, 1]])  # from the first that is not padding, modulo 4
        own = added[1] - model.freq_emb.weight[0]
        result.close("embeddings that enter the first layer", spec.encoding(0).embed(added[0], at_of(numbers)), own, most)
    plain = spec_of(config_of(model_type, num_hidden_layers=2))
    assert len(plain.layers) == 2
    assert not any(layer.uses for layer in plain.layers)
    return result
