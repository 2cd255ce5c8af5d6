"""posenc.configs.families.muse_glimmer, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

import posenc
from families.harness import IDS, Proof, build, calls, config_of, frequencies, proof, spec_of
from families.proofs_llama4_vision import IMAGES, TOWER, rotation
from families.proofs_qwen2_vl_vision import embedding, raster
from families.turning import LINEAR, LLAMA3, YARN, also, turned


@proof("muse_glimmer_text", "muse_spark_text")
def muse_glimmer_text(model_type: str) -> Proof:
    result = Proof(
        model_type,
        "RoPE, half pairs, in sliding layers; every fourth layer, counted from the last, is full and has no positions",
    )
    sizes = {"num_hidden_layers": 6, "sliding_window": 4, "head_dim": 16, "moe_latent_size": None}
    name = {"muse_glimmer_text": "MuseGlimmerTextModel", "muse_spark_text": "MuseSparkTextModel"}[model_type]
    model = turned(result, model_class=name, rope_parameters=YARN, **sizes)
    turned(result, model_class=name, layer_rope_theta=[7.0, 0, 0, 1e4, 5.0, 0], **sizes)
    for parameters in (None, LINEAR, LLAMA3):
        also(result, model, rope_parameters=parameters, **sizes)
    return result


@proof("muse_glimmer_vision", "muse_spark_vision")
def muse_glimmer_vision(model_type: str) -> Proof:
    result = Proof(
        model_type,
        "RoPE over column and row, from 1, half pairs, in windows except every fourth layer; a "
        "learned grid (bilinear, zero outside)" + (", wrong if not square" if model_type == "muse_spark_vision" else ""),
    )
    name = {"muse_glimmer_vision": "MuseGlimmerVisionModel", "muse_spark_vision": "MuseSparkVisionModel"}[model_type]
    for side in (6, 3):  # one window for each image, then several
        config = config_of(model_type, patch_size=2, pos_emb_height=side, pos_emb_width=side, merge_size=1, **TOWER)
        model, spec = build(config, name), spec_of(config)
        tokens = sum(t * h * w for t, h, w in IMAGES)
        pixels = torch.randn(tokens, 2 * 3 * 4, generator=torch.Generator().manual_seed(2)) * 1e-3
        inputs = {"pixel_values": pixels, "grid_thw": torch.tensor(IMAGES)}
        assert [layer.kind for layer in spec.layers] == ["window_attention", "window_attention", "full_attention"]
        if side == 6:
            rotation(result, model, spec, raster(IMAGES) + 1, **inputs)
        else:
            found = calls(model, **inputs)
            pieces = [len([c for c in found if c.module is block.attn]) for block in model.layers]
            assert pieces[2] == 2 < pieces[0] == pieces[1], pieces
        torch.nn.init.normal_(model.patch_embedder.position_embedding_table.weight)
        spark = model_type == "muse_spark_vision"
        turned = [(n // h, n % h, w, h) if spark else (n // w, n % w, h, w) for _, h, w in IMAGES for n in range(h * w)]
        embedding(
            result, model, spec, torch.tensor(turned), model.patch_embedder.patch_embedding, model.ln_pre, 16.0, **inputs
        )
    return result


@proof("muse_glimmer_assistant")
def muse_glimmer_assistant(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs; queries are the last of the tokens that have keys")
    sizes: dict[str, Any] = {"num_hidden_layers": 2, "head_dim": 24, "target_layer_ids": [1, 3], "block_size": 3}
    config = config_of(model_type, rope_parameters=YARN, **sizes)
    model, spec = build(config), spec_of(config)
    torch.manual_seed(0)
    context, block = torch.randn(2, 5, 128), torch.randn(2, 3, 64)
    inputs = {"noise_embeds": block, "context_hidden_states": context}
    zero, moved = (calls(model, fixed=False, **inputs, position_ids=ids) for ids in (torch.zeros_like(IDS), IDS))
    encoding = spec.encoding(0, exact="model")
    scale = float(encoding.frequencies.cos_sin_scale)
    before, after = zero[0], moved[0]  # the first layer: later ones see what it makes of positions
    for side, x0, x, at in (("query", before.q, after.q, IDS[:, 5:]), ("key", before.k, after.k, IDS)):
        got = encoding.rotate((x0.double() / scale).float(), posenc.Positions.at(at), side)
        result.close("queries and keys at positions to 131071", got, x, 2.0)  # the unrotated ones were divided, and rounded
    assert len(moved) == len(spec.layers)
    frequencies(result, model.rotary_emb, spec)
    for parameters in (None, LINEAR):
        also(result, model, rope_parameters=parameters, **sizes)
    return result
