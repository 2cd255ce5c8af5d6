"""posenc.configs.families.llama4_vision, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, build, calls, config_of, proof, same_rotation, spec_of
from families.proofs_qwen2_vl_vision import far, frequencies, raster, rotary_of, sizes_of, whole
from posenc.configs.weights import with_weights

NO_POSITIONS = {
    "inkling_audio": "each frame of audio is the sum of the embeddings of its codes; order comes from the text model",
    "inkling_vision": "linear layers merge the pixels of each patch, in order; patches do not interact",
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
def llama4_vision_model(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE over column and row, from 1, interleaved pairs; a learned vector for each token")
    config = config_of(
        model_type,
        image_size=10,
        patch_size=2,
        projector_input_dim=64,
        projector_output_dim=64,
        pixel_shuffle_ratio=1.0,
        intermediate_size=64,
        vision_output_dim=64,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        **TOWER,
    )
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
    mine = rotary_of(spec.encoding(0, exact="model")).frequencies
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
def step3p5_vision(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE over column and row, half pairs, on a learned grid (bilinear)")
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
