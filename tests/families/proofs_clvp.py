"""posenc.configs.families.clvp, compared with the models' own code in transformers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from families.harness import Proof, at_of, build, config_of, made_of, modeling, proof, spec_of, tokens
from posenc.configs.weights import with_weights


@contextlib.contextmanager
def recorded(owner: Any, name: str) -> Iterator[list[tuple[tuple[Any, ...], Any]]]:
    """Arguments and results of a function of the family while its model runs."""
    seen: list[tuple[tuple[Any, ...], Any]] = []
    original = getattr(owner, name)

    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        found = original(*arguments, **keywords)
        seen.append((arguments, found))
        return found

    setattr(owner, name, staticmethod(wrapper) if isinstance(owner, type) else wrapper)
    try:
        yield seen
    finally:
        setattr(owner, name, staticmethod(original) if isinstance(owner, type) else original)


@proof("clvp_encoder")
def clvp_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, queries, keys and values; the first channels of a head")
    for projection in (64, 288):
        config = config_of(model_type, hidden_size=160, num_attention_heads=4, projection_dim=projection)
        model, spec = build(config, "ClvpEncoder", attention=None), spec_of(config)
        ids = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7], [7, 3, 3, 0, 1, 6, 5, 2]])
        passes = []
        for given in (torch.zeros_like(ids), ids):
            with recorded(modeling(model_type), "apply_rotary_pos_emb") as seen, torch.no_grad():
                model(input_ids=tokens(ids.shape), position_ids=given)
            passes.append(seen)
        width = max(projection // 8, 32)
        for number, (arguments, after) in enumerate(passes[1]):
            encoding = spec.encoding(number, exact="model")
            assert encoding.rotary_dim == width
            for side, x, y in zip(("query", "key", "value"), arguments, after, strict=False):
                rest = torch.randn(*x.shape[:-1], 40 - width)
                got = encoding.rotate(torch.cat([x, rest], dim=-1), at_of(ids), side)
                result.close("queries, keys and values of every layer", got, torch.cat([y, rest], dim=-1))
        assert len(passes[1]) == len(spec.layers) == 4
        own = model.rotary_pos_emb.inv_freq
        parity = spec.encoding(0, exact="model").frequencies.values
        result.equal(f"{len(own)} frequencies", torch.tensor(parity, dtype=torch.float32), own)
    silent = spec_of(config_of(model_type, use_rotary_embedding=False))
    assert not silent.layers[0].uses
    return result


@proof("clvp_decoder")
def clvp_decoder(model_type: str) -> Proof:
    result = Proof(model_type, "learned table, added to the embeddings, counted from 0")
    config = config_of(model_type, max_position_embeddings=40)
    model, spec = build(config, "ClvpDecoder", attention=None), spec_of(config)
    ids = torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]])
    seen: list[torch.Tensor] = []
    model.drop.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    x = torch.randn(2, 4, 64)
    with torch.no_grad():
        model(inputs_embeds=x, position_ids=ids)
        result.close("embeddings of the decoder", with_weights(spec, 0, model.state_dict()).embed(x, at_of(ids)), seen[0])
    return result


@proof("clvp")
def clvp(model_type: str) -> Proof:
    result = made_of(
        model_type,
        "text and speech encoders, and a decoder whose text input has a table of its own",
        {
            "text_config": "text_encoder_model",
            "speech_config": "speech_encoder_model",
            "decoder_config": "speech_decoder_model",
            "conditioning": "speech_decoder_model",
        },
    )
    small = {"hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 1, "vocab_size": 32}
    encoder = small | {"projection_dim": 64}
    config = config_of(
        model_type,
        text_config=encoder,
        speech_config=encoder,
        decoder_config=small
        | {"max_text_tokens": 20, "max_position_embeddings": 40, "num_mel_attn_blocks": 1, "feature_size": 8},
    )
    made, spec = modeling(model_type).ClvpConditioningEncoder(config).eval(), spec_of(config)
    config.text_config.bos_token_id, config.text_config.eos_token_id = 1, 2
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])
    seen: list[torch.Tensor] = []
    made.text_token_embedding.register_forward_hook(lambda module, inputs, output: seen.append(output))
    with torch.no_grad():
        out = made(torch.randn(2, 8, 6), input_ids=tokens(mask.shape), attention_mask=mask)[:, 1:]
        at = at_of(torch.tensor([[0, 1, 2, 3, 4, 5, 6], [0, 1, 1, 1, 2, 3, 4]]))
        table = with_weights(spec["conditioning"], 0, made.state_dict())
        result.close("text that the decoder is given", table.embed(seen[0], at), out)
    return result
