"""posenc.configs.families.bark, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

from families.adding import added
from families.harness import CONFIG_MAPPING, Proof, at_of, modeling, module_named, proof, spec_of, tokens


@proof("bark")
def bark(model_type: str) -> Proof:
    result = Proof(model_type, "a learned table in each of three models; the third is bidirectional")
    module = modeling(model_type)
    sizes = {
        "hidden_size": 64,
        "num_layers": 2,
        "num_heads": 4,
        "block_size": 40,
        "input_vocab_size": 32,
        "output_vocab_size": 32,
    }
    names = ("semantic", "coarse_acoustics", "fine_acoustics")
    config = CONFIG_MAPPING[model_type](**{f"{name}_config": sizes for name in names})
    spec = spec_of(config)
    assert [part.part for part in spec.parts] == [*(f"{name}_config" for name in names), "codec_config"]
    torch.manual_seed(0)
    whole = module.BarkModel(config).eval()
    result.equal("codec_config is encodec", whole.codec_model.config.model_type, spec["codec_config"].family)
    ids = torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]])
    for name, part in zip(("semantic", "coarse_acoustics", "fine_acoustics"), spec.parts, strict=False):
        model = module_named(whole, name)
        inputs: dict[str, Any] = {"input_ids": tokens((2, 4)), "position_ids": ids}
        if name == "fine_acoustics":
            inputs = {"codebook_idx": 2, "input_ids": tokens((2, 4, 8)), "position_ids": ids}
        added(result, part, model, "layers.0.layernorm_1", at_of(ids), inputs)
        assert len(model.layers) == len(part.layers)
        assert all(layer.causal == block.attn.is_causal for layer, block in zip(part.layers, model.layers, strict=True))
    return result
