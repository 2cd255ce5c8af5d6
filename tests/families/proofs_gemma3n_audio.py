"""posenc.configs.families.gemma3n_audio, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, build, config_of, proof, spec_of
from families.turning import visible
from posenc.configs.weights import with_weights

FRAMES = 29  # more than two blocks


def same_terms(result: Proof, spec: Any, model: torch.nn.Module, layer: int, q: Tensor, theirs: Tensor, past: int) -> None:
    """Blocked terms [b, h, blocks, w, context] against posenc's for the same queries [b, t, h, d], for visible frames."""
    width, n = theirs.shape[3], q.shape[1]
    encoding, at = with_weights(spec, layer, model.state_dict()), posenc.Positions.arange(len(q), n)
    assert encoding.softmax_scale(q.shape[-1]) == 1.0
    b, h, block, w, c = torch.meshgrid(*(torch.arange(size) for size in theirs.shape), indexing="ij")
    i, j = block * width + w, block * width - past + c
    seen = (i < n) & (j >= 0) & (j < n)
    seen &= visible(spec.layers[layer], n)[i.clamp(max=n - 1), j.clamp(0, n - 1)]
    q = q.transpose(1, 2)
    with torch.no_grad():
        ours = encoding.bias(q, q, at, at)(b[seen], h[seen], i[seen], j[seen])
    assert ours.abs().min() < ours.abs().max()
    result.close("what is added to the score of every visible pair of frames", ours, theirs[seen], 4)  # sums of 32


@proof("gemma3n_audio")
def gemma3n_audio(model_type: str) -> Proof:
    result = Proof(
        model_type, "a vector for each distance, projected from its sinusoid, times the query; 13 frames visible"
    )
    config = config_of(
        model_type,
        hidden_size=32,
        conf_num_attention_heads=4,
        conf_num_hidden_layers=2,
        input_feat_size=16,
        conf_attention_chunk_size=6,
        conf_attention_context_left=5,
        sscp_conv_channel_size=(8, 4),
    )
    model, spec = build(config, "Gemma3nAudioEncoder", attention=None), spec_of(config)
    terms = []
    for block in model.conformer:
        block.attention.attn.relative_position_embedding.register_forward_hook(
            lambda module, inputs, out: terms.append((module, inputs[0], inputs[1], out))
        )
    with torch.no_grad():
        model(torch.randn(2, 4 * FRAMES, 16), torch.zeros(2, 4 * FRAMES, dtype=torch.bool))
        assert len(terms) == len(spec.layers) == 2
        for layer, (module, queries, keys, _) in enumerate(terms):
            only = module.forward(queries, torch.zeros_like(keys))  # q·k aside
            same_terms(result, spec, model, layer, queries.flatten(1, 2)[:, :FRAMES], only, past=4)
    mask = model.conformer[0].attention.attn.local_causal_valid_mask  # [w, c]
    w, c = torch.meshgrid(torch.arange(6), torch.arange(10), indexing="ij")
    result.equal("frames in sight", mask.bool(), visible(spec.layers[0], 40)[20 + w, 20 + c - 4])
    return result


def listening(attention: Any) -> dict[str, Tensor]:
    """What one attention module of Gemma 4 computes in its next run: its queries, the term of distances, its mask."""
    heard: dict[str, Tensor] = {}
    blocks, shift = attention._convert_to_block, attention._rel_shift

    def of_queries(x: Tensor) -> Tensor:
        heard["q"] = x
        return blocks(x)

    def of_terms(x: Tensor) -> Tensor:
        heard["term"] = shift(x)
        return heard["term"]

    attention._convert_to_block, attention._rel_shift = of_queries, of_terms
    attention.register_forward_pre_hook(
        lambda module, inputs, given: heard.update(mask=given["attention_mask"]), with_kwargs=True
    )
    return heard


@proof("gemma4_audio")
def gemma4_audio(model_type: str) -> Proof:
    result = Proof(
        model_type, "a vector for each distance, projected from its sinusoid, times the query; 12 frames visible"
    )
    for chunk in (4, 5, 8):  # 8: half the context is more than the past, and distances are too large
        config = config_of(
            model_type,
            hidden_size=32,
            num_attention_heads=4,
            num_hidden_layers=2,
            attention_chunk_size=chunk,
            attention_context_left=5,
            subsampling_conv_channels=[16, 4],
            output_proj_dims=32,
        )
        model, spec = build(config, attention=None), spec_of(config)
        assert any(finding.grade == "error" for finding in spec.remarks) == (chunk == 8)
        heard = [listening(layer.self_attn) for layer in model.layers]
        with torch.no_grad():
            model(torch.randn(2, 4 * FRAMES, 16))
        assert len(heard) == len(spec.layers) == 2
        for layer, (q, term, mask) in enumerate((found["q"], found["term"], found["mask"]) for found in heard):
            same_terms(result, spec, model, layer, q, term, past=4)
            block, w, c = torch.meshgrid(*(torch.arange(size) for size in mask.shape[2:]), indexing="ij")
            i, j = block * chunk + w, block * chunk - 4 + c
            inside = (i < FRAMES) & (j >= 0) & (j < FRAMES)
            expected = inside & visible(spec.layers[layer], FRAMES)[i.clamp(max=FRAMES - 1), j.clamp(0, FRAMES - 1)]
            result.equal("frames in sight", (mask[0, 0] == 0)[i < FRAMES], expected[i < FRAMES])
    return result
