"""posenc.configs.families.depth_pro, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

from families.harness import Proof, config_of, modeling, proof, replace, spec_of
from families.proofs_composites import inside
from posenc.positions import Positions


@proof("zoedepth")
def zoedepth(model_type: str) -> Proof:
    result = Proof(model_type, "as its backbone; with several depth ranges also sinusoids [sin | cos]")
    inside(result, model_type)
    ranges = [{"n_bins": 8, "min_depth": 0.1, "max_depth": 10.0, "name": name} for name in ("in", "out")]
    config = config_of(
        model_type,
        bin_configurations=ranges,
        num_patch_transformer_layers=4,
        bottleneck_features=8,
        patch_transformer_hidden_size=16,
        patch_transformer_intermediate_size=8,
        patch_transformer_num_attention_heads=2,
        hidden_size=None,
    )
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
