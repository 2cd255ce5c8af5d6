"""Models whose positions are those of a backbone: it is there, and nothing besides has positions."""

from __future__ import annotations

import re
from typing import Any

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from families.harness import Proof, config_of, modeling, proof, replace, spec_of
from posenc.dialects import PositionSpec
from posenc.positions import Positions

WHOLE = {"chmv2": "CHMv2ForDepthEstimation", "depth_anything": "DepthAnythingForDepthEstimation",
         "prompt_depth_anything": "PromptDepthAnythingForDepthEstimation", "upernet": "UperNetForSemanticSegmentation",
         "vitmatte": "VitMatteForImageMatting", "vitpose": "VitPoseForPoseEstimation",
         "zoedepth": "ZoeDepthForDepthEstimation", "depth_pro": "DepthProForDepthEstimation"}  # fmt: skip
NAMES = re.compile(r"position|rel_pos|relative_att|rotary|rope")
NOT_PROVEN = {
    "timm_backbone": "what it does is in timm, another library, which is not installed here",
    "timm_wrapper": "what it does is in timm, another library, which is not installed here",
}


def inside(result: Proof, model_type: str, **sizes: Any) -> PositionSpec:
    """The models that the parts of the spec name are inside, one for one, and no weight outside of them is of positions."""
    config = CONFIG_MAPPING[model_type](**sizes)
    if model_type == "vitmatte":  # its own default is a tuple, which its code cannot add to a list
        config.fusion_hidden_sizes = list(config.fusion_hidden_sizes)
    with torch.device("meta"):
        model = getattr(modeling(model_type), WHOLE[model_type])(config)
    spec = spec_of(config, defaults=True)
    families = sorted(part.family for part in spec.parts)
    found = {
        name: module.config.model_type for name, module in model.named_modules()
        if getattr(getattr(module, "config", None), "model_type", model_type) != model_type
    }  # fmt: skip
    outermost = {name: own for name, own in found.items() if not any(name.startswith(f"{other}.") for other in found)}
    result.equal(f"inside: {', '.join(families)}", sorted(outermost.values()), families)
    outside = [name for name, _ in model.named_parameters() if not any(name.startswith(f"{inner}.") for inner in outermost)]
    assert not [name for name in outside if NAMES.search(name)]
    return spec


@proof("chmv2", "depth_anything", "prompt_depth_anything", "upernet", "vitmatte", "vitpose", "depth_pro")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "as its backbone does")
    inside(result, model_type)
    if model_type == "depth_pro":
        inside(result, model_type, use_fov_model=True)
    return result


@proof("zoedepth")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "as its backbone does; with several ranges of depth, sinusoids [sin | cos] besides")
    inside(result, model_type)
    ranges = [{"n_bins": 8, "min_depth": 0.1, "max_depth": 10.0, "name": name} for name in ("in", "out")]
    config = config_of(model_type, bin_configurations=ranges, num_patch_transformer_layers=4, bottleneck_features=8,
                       patch_transformer_hidden_size=16, patch_transformer_intermediate_size=8,
                       patch_transformer_num_attention_heads=2, hidden_size=None)  # fmt: skip
    spec = spec_of(config)["patch_transformer"]
    module = modeling(model_type).ZoeDepthPatchTransformerEncoder(config).eval()
    seen: list[torch.Tensor] = []
    module.transformer_encoder[0].register_forward_pre_hook(lambda layer, given: seen.append(given[0]))
    with torch.no_grad():
        x = torch.randn(2, 8, 5, 7)
        module(x)
        alone = torch.nn.functional.pad(module.embedding_convPxP(x).flatten(2), (1, 0)).transpose(1, 2)
    # theirs has frequencies and angles in fp32: at 35 places, to 35 roundings of an angle of 1
    got = spec.encoding(0).embed(alone, Positions.arange(2, 36))
    result.close("what enters the layers that choose", got, seen[0], 35.0)
    assert len(spec.layers) == len(module.transformer_encoder)
    assert not spec_of(replace(config, bin_configurations=ranges[:1])).parts[1:]
    return result
