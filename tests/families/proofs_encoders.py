"""Encoders that turn queries and keys, and the time series models."""

from __future__ import annotations

from typing import Any

import torch

from families.harness import (
    IDS,
    Proof,
    at_of,
    build,
    calls,
    config_of,
    frequencies,
    made_of,
    proof,
    same_rotation,
    spec_of,
    tokens,
)
from families.turning import LINEAR, LLAMA3, YARN, also, hidden, turned
from posenc.dialects.weights import with_weights


@proof("esmc", "eurobert", "gte", "jina_embeddings_v3", "nomic_bert")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, the whole head turns, all layers alike, looking both ways")
    own = {"esmc": {"num_key_value_heads": 4}, "eurobert": {"head_dim": 24}}.get(model_type, {})
    model = turned(result, rope_parameters=YARN, num_hidden_layers=2, **own)
    for parameters in (None, LINEAR, LLAMA3):
        also(result, model, rope_parameters=parameters, **own)
    return result


@proof("esm")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired (ESM-2), or a learned table from the row after padding (ESM-1)")
    sizes: dict[str, Any] = {"num_hidden_layers": 2, "token_dropout": False, "mask_token_id": 3}
    turned(result, rotary="rotary_embeddings", position_embedding_type="rotary", rope_theta=500.0, **sizes)

    config = config_of(model_type, position_embedding_type="absolute", max_position_embeddings=12, pad_token_id=1, **{
        **sizes, "num_attention_heads": 4})  # fmt: skip
    model, spec = build(config), spec_of(config)
    ids = torch.tensor([[5, 6, 7, 8, 9, 4], [1, 1, 8, 9, 5, 6]])  # padding on the left of the second row
    at = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 2, 3]])
    encoding = with_weights(spec, 0, model.state_dict())
    with torch.no_grad():
        own, words = model.embeddings(ids), model.embeddings.word_embeddings(ids)
        kept = ids != 1
        got = encoding.embed(words, at_of(at))
        result.close("embeddings that enter the first layer", got[kept], own[kept])
        assert torch.equal(model.embeddings.position_embeddings.weight[1], torch.zeros(64))
    return result


@proof("modernbert", "modernbert-decoder")
def _(model_type: str) -> Proof:
    both = {"sliding_attention": YARN, "full_attention": LINEAR}
    sizes = {"num_hidden_layers": 5, "local_attention": 6}
    looking = "backwards" if model_type == "modernbert-decoder" else "both ways"
    result = Proof(model_type, f"RoPE, halves paired, looking {looking}; every third layer sees all, from another base")
    model = turned(result, rope_parameters=both, **sizes)
    turned(result, layer_types=["sliding_attention", "full_attention"], num_hidden_layers=2, local_attention=4)
    for parameters in (None, {"sliding_attention": LINEAR, "full_attention": LLAMA3}):
        also(result, model, rope_parameters=parameters, **sizes)
    return result


@proof("modernvbert")
def _(model_type: str) -> Proof:
    return made_of(model_type, "ModernBERT over patches that SigLIP has read",
                   {"text_config": "text_model", "vision_config": "vision_model"})  # fmt: skip


@proof("ultrabert")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, looking both ways; every third layer sees all, from another base")
    sizes = {"num_hidden_layers": 4, "sliding_window": 3, "num_key_value_heads": 2}
    model = turned(result, rope_parameters={"sliding_attention": YARN, "full_attention": LINEAR}, **sizes)
    for parameters in (None, {"sliding_attention": LINEAR, "full_attention": LLAMA3}):
        also(result, model, rope_parameters=parameters, **sizes)
    return result


@proof("neomme")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, rows and columns turn pairs in turn, a quarter of the head in full "
                   "layers; two alternating windows, looking both ways")  # fmt: skip
    sizes: dict[str, Any] = {"num_hidden_layers": 7, "head_dim": 32, "sliding_window": 3, "num_key_value_heads": 2}
    config = config_of(model_type, **sizes)
    model, spec = build(config), spec_of(config)
    assert [layer.window for layer in spec.layers] == [7, 2049, 7, 2049, 7, None, None]
    rows, columns = IDS, IDS.flip(1)
    grid = torch.stack([rows, columns])
    text = {"input_ids": tokens(IDS.shape)}
    zero, moved = (calls(model, **text, position_ids=ids) for ids in (torch.zeros_like(grid), grid))
    for call in (*zero, *moved):
        call.options.pop("sliding_window", None)
    _values_apart(result, spec, zero, moved, grid)
    hidden(result, spec, calls(model, input_ids=tokens((2, 10))))
    for kind, number in (("sliding_attention", 0), ("full_attention", 5)):
        frequencies(result, model.rotary_emb, spec, number, f"{kind}_inv_freq")
    both = {"sliding_attention": YARN, "full_attention": LINEAR | {"partial_rotary_factor": 0.5}}
    other = config_of(model_type, rope_parameters=both, **sizes)
    for kind, number in (("sliding_attention", 0), ("full_attention", 5)):
        frequencies(result, type(model.rotary_emb)(other), spec_of(other), number, f"{kind}_inv_freq")
    return result


def _values_apart(result: Proof, spec: Any, zero: Any, moved: Any, grid: Any) -> None:
    """Some layers add embeddings of the tokens to their values, which no position moves."""
    for before, after in zip(zero, moved, strict=True):
        result.equal("values of every layer", after.v, before.v)
    same_rotation(result, spec, zero, moved, grid)


@proof("timesfm2_5")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, over patches, causal, normalised afterwards")
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
    encoding = spec.encoding(0, arithmetic="float32")
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
def _(model_type: str) -> Proof:
    result = Proof(model_type, "no positions in causal attention over patches; on request sinusoids, sin | cos, are added")
    for shortest in (1, 3):
        config = config_of(model_type, num_hidden_layers=2, use_positional_embedding=True, head_dim=16,
                           min_timescale=shortest, max_timescale=500)  # fmt: skip
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
