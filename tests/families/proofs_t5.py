"""posenc.configs.families.t5, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

import posenc
from families.harness import Proof, build, calls, config_of, modeling, proof, source_of, spec_of, tokens
from families.scores import bias_of, nothing
from posenc.configs.weights import with_weights

SIZES: dict[str, Any] = {
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 16,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "num_hidden_layers": None,
    "num_attention_heads": None,
    "hidden_size": None,
    "relative_attention_num_buckets": 12,
    "relative_attention_max_distance": 40,
}

FEW = {"relative_attention_num_buckets": 16, "relative_attention_max_distance": 47}

FAR = 300  # distances compared: far beyond the last bucket


def far(result: Proof, encoding: Any, attention: Any) -> None:
    """The whole curve of the family's own bias."""
    at = posenc.Positions.arange(1, FAR)
    with torch.no_grad():
        expected = attention.compute_bias(FAR, FAR)
    result.equal(f"bias at distances to {FAR - 1}", bias_of(encoding, *nothing(4, FAR), at), expected)


@proof("t5", "mt5", "umt5", "switch_transformers", "pop2piano")
def t5(model_type: str) -> Proof:
    result = Proof(
        model_type,
        "T5 bias in encoder and decoder, softmax scale 1"
        + (", one table per layer" if model_type == "umt5" else ", one table per stack"),
    )
    for buckets in ({}, {"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128}):
        config = config_of(model_type, **SIZES | buckets)
        model_class = "Pop2PianoForConditionalGeneration" if model_type == "pop2piano" else None
        model, spec = build(config, model_class), spec_of(config)
        with torch.no_grad():
            for weight in (p for n, p in model.named_parameters() if "relative_attention_bias" in n):
                weight.normal_()
        text = tokens((2, 12))
        inputs = {"input_features": torch.randn(2, 12, 64)} if model_type == "pop2piano" else {"input_ids": text}
        if model_type == "pop2piano":
            inputs = {"encoder_outputs": (model.encoder(inputs_embeds=inputs["input_features"])[0],)}
        found = calls(model, fixed=False, decoder_input_ids=text[:, :9], **inputs)
        if model_type == "pop2piano":
            found = calls(model.encoder, fixed=False, inputs_embeds=torch.randn(2, 12, 64)) + found
        encoder, rest = found[:3], found[3:]
        stacks = {"encoder": encoder, "decoder": rest[::2]}
        for call in found:
            assert call.scaling == 1 == spec["encoder"].encoding(0).softmax_scale(16)
        for call in rest[1::2]:
            result.equal("nothing toward the encoder's output", float(call.options["position_bias"].abs().max()), 0.0)
        for side, own in stacks.items():
            assert len(own) == len(spec[side].layers), f"{side}: {len(own)} layers"
            for layer, call in enumerate(own):
                encoding = with_weights(spec[side], layer, model.state_dict())
                at = posenc.Positions.arange(2, call.q.shape[2])
                expected = call.options["position_bias"].expand(2, -1, -1, -1)
                result.equal("bias of every layer", bias_of(encoding, call.q, call.k, at), expected)
            stack = getattr(model, side)
            far(result, with_weights(spec[side], 0, model.state_dict()), stack.block[0].layer[0].SelfAttention)
    result.exact.append("softmax scale")
    return result


@proof("longt5")
def longt5(model_type: str) -> Proof:
    result = Proof(model_type, "T5 bias in encoder, windowed, and decoder; a separate table for block summaries")
    own, length, radius, size = modeling(model_type), 24, 3, 5
    for kind in ("local", "transient-global"):
        config = config_of(
            model_type, **SIZES | FEW, local_radius=radius, encoder_attention_type=kind, global_block_size=size
        )
        model, spec = build(config, attention=None), spec_of(config)
        state, block = model.state_dict(), radius + 1
        first = model.encoder.block[0].layer[0]
        attention = getattr(first, "LocalSelfAttention" if kind == "local" else "TransientGlobalSelfAttention")
        encoding = with_weights(spec["encoder"], 0, state)
        at_q, at_k = posenc.Positions.arange(1, block, start=block), posenc.Positions.arange(1, 3 * block)
        with torch.no_grad():
            local = attention.compute_bias(block)[0]
        result.equal("bias within three blocks", bias_of(encoding, *nothing(4, block, 3 * block), at_q, at_k), local)
        decoder = model.decoder.block[0].layer[0].SelfAttention
        far(result, with_weights(spec["decoder"], 0, state), decoder)
        assert decoder.scaling == encoding.softmax_scale(16) == 1
        assert not {"sqrt", "scaling"} & set(source_of(type(attention).forward).replace(".", " ").split())
        allowed = own._get_local_attention_mask(torch.ones(1, length), block, torch.device("cpu")).reshape(
            -1, block, 3 * block
        )
        j = torch.arange(3 * block) - block + block * torch.arange(length // block)[:, None]  # [blocks, keys]
        i = torch.arange(length).view(-1, block)
        near = (i[:, :, None] - j[:, None]).abs() <= spec["encoder"].layers[0].window // 2
        result.equal("window", near & (j >= 0)[:, None] & (j < length)[:, None], allowed.reshape(near.shape) > 0)
        if kind == "transient-global":
            mask = torch.ones(1, length, dtype=torch.long)
            blocks, segments = own._make_global_fixed_block_ids(mask, size)
            with torch.no_grad():
                expected = attention.compute_side_bias(mask, segments)
            count = length // size
            at_q = posenc.Positions.at((torch.arange(length) // size).clamp(max=count - 1)[None])
            got = bias_of(
                with_weights(spec["encoder_to_blocks"], 0, state),
                *nothing(4, length, count),
                at_q,
                posenc.Positions.arange(1, count),
            )
            result.equal("block of every query", at_q.coords, blocks.long())
            result.equal("bias toward summaries of blocks", got, expected)
    return result
