"""Vision towers that put columns before rows, at coordinates of ours and at those that they count themselves."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, build, calls, config_of, modeling, proof, same_rotation, spec_of
from families.proofs_vision_rotary import block_order, embedding, far, frequencies, raster, rotary_of, sizes_of, whole
from posenc.dialects.weights import with_weights

NO_POSITIONS = {
    "inkling_audio": "each frame of audio is the sum of the embeddings of its codes; order comes from the text model",
    "inkling_vision": "linear layers fold the pixels of each patch, in order, into one vector; patches see no others",
    "muse_spark_audio": "order comes from causal convolutions; its code has no attention",
}
TOWER: dict[str, Any] = {"hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 3, "num_key_value_heads": None}
IMAGES = ((1, 4, 6), (1, 6, 4))


def rotation(result: Proof, model: Any, spec: Any, own: Tensor, **inputs: Any) -> None:
    """Queries and keys where its rotary module is given ids of ours, and where it counts itself, which has to be `own`.

    The modules of Muse are given (column, row), the others (row, column).
    """
    swapped = type(model).__name__.startswith("Muse")
    given: list[Tensor] = []
    hook = model.rotary_emb.register_forward_pre_hook(lambda module, args: (args[0], given[0]) if given else None)
    found = {}
    for name, ids in (("zero", torch.zeros_like(own)), ("far", far(len(own))), ("own", None)):
        given[:] = [] if ids is None else [ids.flip(-1) if swapped else ids]
        found[name] = whole(calls(model, **inputs))
    hook.remove()
    assert len(found["zero"]) == len(spec.layers)
    for name, ids in (("far", far(len(own))), ("own", own)):
        same_rotation(result, spec, found["zero"], found[name], ids.T[:, None])
    result.compared.append("the coordinates that the tower counts itself")
    frequencies(result, model.rotary_emb, spec)


@proof("llama4_vision_model")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE by column and row, from 1, neighbours paired; a learned vector for each token")
    config = config_of(model_type, image_size=10, patch_size=2, projector_input_dim=64, projector_output_dim=64,
                       pixel_shuffle_ratio=1.0, intermediate_size=64, vision_output_dim=64,
                       rope_parameters={"rope_type": "default", "rope_theta": 500.0}, **TOWER)  # fmt: skip
    model, spec = build(config, "Llama4VisionModel"), spec_of(config)
    model.patch_embedding.linear.weight.data.normal_(std=1e-3)
    images = torch.randn(2, 3, 10, 10, generator=torch.Generator().manual_seed(1))
    own = torch.cat([raster([(1, 5, 5)]) + 1, torch.zeros(1, 2, dtype=torch.long)])  # the class token is the last one
    moved = whole(calls(model, pixel_values=images))
    angles = model.rotary_embedding.freqs_ci
    model.rotary_embedding.freqs_ci = torch.ones_like(angles)
    zero = whole(calls(model, pixel_values=images))
    model.rotary_embedding.freqs_ci = angles
    assert len(moved) == len(spec.layers)
    ids = own.T[:, None].expand(-1, 2, -1)
    same_rotation(result, spec, zero, moved, ids)
    mine = rotary_of(spec.encoding(0, arithmetic="float32")).frequencies
    patch = angles[7, 0]  # row 1, column 2: (2, 3) from 1
    expected = [torch.tensor(w).mul(3 if axis else 2).cos() for w, axis in zip(mine.values, mine.axes, strict=True)]
    result.equal("cosines of a patch", torch.stack(expected), patch.real)
    seen: list[Tensor] = []
    model.layernorm_pre.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    with torch.no_grad():
        model(pixel_values=images)
        words = torch.cat([model.patch_embedding(images), model.class_embedding.expand(2, 1, -1)], dim=1)
        at = posenc.Positions.at(torch.arange(26).expand(2, -1))
        got = with_weights(spec, 0, model.state_dict()).embed(words, at)
        result.close("what enters the first layer", got, seen[0][:, 0])
    return result


@proof("step3p5_vision")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE by column and row, halves paired, upon a learned grid (bilinear)")
    config = config_of(model_type, image_size=10, patch_size=2, **TOWER)
    model, spec = build(config, "Step3p7VisionModel"), spec_of(config)
    torch.nn.init.normal_(model.embeddings.position_embedding.weight)
    for grids in ([(1, 4, 6)], [(1, 5, 5)]):
        pixels = torch.randn(1, 3, 2 * grids[0][1], 2 * grids[0][2], generator=torch.Generator().manual_seed(1)) * 1e-3
        rotation(result, model, spec, raster(grids), pixel_values=pixels)
        seen: list[Tensor] = []
        hook = model.pre_layernorm.register_forward_pre_hook(lambda module, args, seen=seen: seen.append(args[0]))
        with torch.no_grad():
            model(pixel_values=pixels)
            hook.remove()
            patches = model.embeddings.patch_embedding(pixels).flatten(2).transpose(1, 2)
            coords = torch.cat([raster(grids), sizes_of(grids)], dim=1)
            got = with_weights(spec, 0, model.state_dict()).embed(patches, posenc.Positions.at(coords[None]))
            result.close("what enters the first layer", got, seen[0], 16.0)  # theirs has places of cells in fp32
    return result


@proof("muse_glimmer_vision", "muse_spark_vision")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE by column and row, from 1, halves paired, in windows but every fourth layer; "
                   "upon a learned grid (bilinear, zero beyond)"
                   + (", scrambled where not square" if model_type == "muse_spark_vision" else ""))  # fmt: skip
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


@proof("inkling2_vision")
def _(model_type: str) -> Proof:
    result = Proof(
        model_type, "RoPE by column and row, from 1, neighbours paired; a learned grid (bilinear) and a class token"
    )
    config = config_of(model_type, patch_size=2, spatial_merge_size=2, posemb_grid_size=5, text_hidden_size=32,
                       projection_hidden_dim=32, **TOWER)  # fmt: skip
    model, spec = build(config, "Inkling2VisionModel"), spec_of(config)
    torch.nn.init.normal_(model.embeddings.position_embedding.weight)
    images = torch.tensor([[1, h // 2, w // 2] for _, h, w in IMAGES])
    pixels = torch.randn(int(images.prod(-1).sum()), 4, 4, 3, generator=torch.Generator().manual_seed(2)) * 1e-3
    inputs = {"pixel_values": pixels, "image_grid_thw": images}
    nought = torch.zeros(1, 2, dtype=torch.long)
    own = torch.cat([part for size in IMAGES for part in (nought, block_order(2, [size]) + 1)])
    rotation(result, model, spec, own, **inputs)

    seen: list[Tensor] = []
    model.pre_layernorm.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    with torch.no_grad():
        model(**inputs)
        patches = pixels.reshape(-1, 2, 2, 2, 2, 3).transpose(2, 3).reshape(-1, 12)
        words, classes = model.embeddings.patch_embedding(patches), model.embeddings.class_embedding[None]
        classes = classes + model.embeddings.cls_position_embedding
        x = torch.cat([classes, words[:24], classes, words[24:]])
        coords = [part for size in IMAGES for part in (
            torch.tensor([[-1, -1, 1, 1]]), torch.cat([block_order(2, [size]), sizes_of([size])], dim=1))]  # fmt: skip
        got = with_weights(spec, 0, model.state_dict()).embed(x[None], posenc.Positions.at(torch.cat(coords)[None]))[0]
        result.close("what enters the first layer", got, seen[0], 16.0)
    return result


@proof("hunyuan_vl_vision")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "a learned grid (bilinear), its first row unused; no rotation")
    config = config_of(model_type, patch_size=2, max_image_size=10, head_dim=32, **TOWER)
    spec = spec_of(config)
    torch.manual_seed(0)
    module = modeling(model_type).HunYuanVLVisionPatchEmbed(config)
    pixels = torch.randn(48, 3 * 4, generator=torch.Generator().manual_seed(2)) * 1e-3
    coords = torch.cat([raster(IMAGES), sizes_of(IMAGES)], dim=1)
    with torch.no_grad():
        words = module.patch_embedding(pixels.reshape(48, 3, 2, 2)).flatten(1)
        got = with_weights(spec, 0, module.state_dict()).embed(words[None], posenc.Positions.at(coords[None]))
        result.close("what enters the first layer", got, module(pixels, [list(size) for size in IMAGES]), 16.0)
    assert not any(layer.uses for layer in spec.layers[1:])
    return result
