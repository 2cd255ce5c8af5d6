"""posenc.configs.families.hunyuan_vl, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

import posenc
from families.harness import IDS, Proof, at_of, build, calls, config_of, made_of, modeling, proof, spec_of, tokens
from families.proofs_composites import BOTH
from families.proofs_llama4_vision import IMAGES, TOWER
from families.proofs_qwen2_vl_vision import raster, sizes_of
from families.turning import LINEAR, SEEN, YARN, hidden
from posenc.configs import read_config
from posenc.configs.weights import with_weights


@proof("hunyuan_vl_vision")
def hunyuan_vl_vision(model_type: str) -> Proof:
    result = Proof(model_type, "a learned grid (bilinear), its first row unused; no rotation")
    embedded(result, "HunYuanVLVisionPatchEmbed", head_dim=32)
    return result


def embedded(result: Proof, module_name: str, **sizes: Any) -> None:
    """The grid of a whole image, and no position after it."""
    config = config_of(result.model_type, patch_size=2, max_image_size=10, **sizes, **TOWER)
    spec = spec_of(config)
    torch.manual_seed(0)
    module = getattr(modeling(result.model_type), module_name)(config)
    pixels = torch.randn(48, 3 * 4, generator=torch.Generator().manual_seed(2)) * 1e-3
    coords = torch.cat([raster(IMAGES), sizes_of(IMAGES)], dim=1)
    with torch.no_grad():
        words = module.patch_embedding(pixels.reshape(48, 3, 2, 2)).flatten(1)
        got = with_weights(spec, 0, module.state_dict()).embed(words[None], posenc.Positions.at(coords[None]))
        result.close("what enters the first layer", got, module(pixels, [list(size) for size in IMAGES]), 16.0)
    assert not any(layer.uses for layer in spec.layers[1:])


@proof("hunyuan_vl_text")
def hunyuan_vl_text(model_type: str) -> Proof:
    result = Proof(model_type, "XD-RoPE: channels instead of pairs are assigned to axes; normalised afterwards")
    alpha = {"rope_type": "xdrope", "rope_theta": 10000.0, "alpha": 1000.0, "factor": 1.0, "mrope_section": [4, 2, 3, 3]}
    config = config_of(model_type, rope_parameters=alpha, head_dim=24, num_hidden_layers=2)
    model, spec = build(config, "HunYuanVLTextModel"), spec_of(config)
    entered: dict[str, list[torch.Tensor]] = {"query": [], "key": []}
    for layer in model.layers:
        for side, norm in (("query", layer.self_attn.query_layernorm), ("key", layer.self_attn.key_layernorm)):
            norm.register_forward_pre_hook(lambda module, inputs, side=side: entered[side].append(inputs[0]))
    far = torch.stack([IDS, IDS.flip(1), IDS % 97, IDS.flip(0)])
    for ids in (torch.zeros_like(far), far):
        calls(model, input_ids=tokens(IDS.shape), position_ids=ids)
    for number in range(2):
        encoding = spec.encoding(number, exact="model")
        for side in ("query", "key"):
            before, after = entered[side][number], entered[side][2 + number]
            got = encoding.rotate(before, at_of(far), side)
            result.close("queries and keys of every layer, each axis to 131071", got, after)
    hidden(result, spec, calls(model, input_ids=tokens((2, SEEN))))
    for parameters in (alpha, {**LINEAR, "mrope_section": [4, 4, 4]}, {**YARN, "mrope_section": [6, 6]}):
        other = config_of(model_type, rope_parameters=parameters, head_dim=24, num_hidden_layers=1)
        own = (
            modeling(model_type).HunYuanVLTextRotaryEmbedding(other).inv_freq
            if hasattr(modeling(model_type), "HunYuanVLTextRotaryEmbedding")
            else type(model.rotary_emb)(other).inv_freq
        )
        mine = spec_of(other).encoding(0, exact="model").frequencies.values
        result.equal("12 frequencies, each for two channels", torch.tensor(mine), torch.cat([own, own]))
    return result


@proof("hunyuan_vl")
def hunyuan_vl(model_type: str) -> Proof:
    section = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [16, 16, 16, 16]}
    text = config_of("hunyuan_vl_text", rope_parameters=section, head_dim=128, num_hidden_layers=1).to_dict()
    config = config_of(model_type, text_config=text)
    result = made_of(
        model_type, "XD-RoPE over token, column, row and image, and an encoder with a learned grid", BOTH, config
    )
    with torch.device("meta"):
        model = build(config, "HunYuanVLModel", attention=None)
    merge = config.vision_config.spatial_merge_size
    grid = torch.tensor([[1, 2 * merge, 3 * merge]])
    image = (3 + 1) * 2  # two rows of three, each ended by a newline
    kinds = torch.tensor([[0] * 3 + [1] * image + [0] * 2])
    ids, _ = model.get_rope_index(torch.full_like(kinds, 5), mm_token_type_ids=kinds, image_grid_thw=grid)
    expected = torch.arange(kinds.shape[1]).repeat(4, 1)
    columns = [x for _ in range(2) for x in range(4)]
    rows = [y for y in range(2) for _ in range(4)]
    expected[1, 3 : 3 + image], expected[2, 3 : 3 + image] = torch.tensor(columns), torch.tensor(rows)
    expected[3, 3 : 3 + image] = 0
    result.equal("how tokens are numbered", ids[:, 0], expected)
    old = {"model_type": "hunyuan_vl", "vision_config": config.vision_config.to_dict(), **text}
    old["model_type"] = "hunyuan_vl"
    assert read_config(old)["text_config"].layers == spec_of(config)["text_config"].layers
    return result
