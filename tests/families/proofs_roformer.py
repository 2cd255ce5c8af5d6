"""posenc.configs.families.roformer, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

from families.harness import Proof, at_of, build, config_of, proof, spec_of, tokens
from families.proofs_clvp import recorded


@proof("roformer")
def roformer(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, interleaved pairs; values too if rotary_value is set")
    for values in (False, True):
        config = config_of(model_type, rotary_value=values, max_position_embeddings=300, is_decoder=values)
        model, spec = build(config, attention=None), spec_of(config)
        owner = next(type(module) for module in model.modules() if hasattr(module, "apply_rotary_position_embeddings"))
        with recorded(owner, "apply_rotary_position_embeddings") as seen, torch.no_grad():
            out = model(input_ids=tokens((2, 260)), output_attentions=True)
        assert len(seen) == len(spec.layers) == 4
        at = at_of(torch.arange(260).expand(2, -1))
        for number, ((_, *before), after) in enumerate(seen):
            encoding = spec.encoding(number)
            assert len(after) == 2 + values
            for side, x, y in zip(("query", "key", "value"), before, after, strict=False):
                result.close("queries, keys and values of every layer", encoding.rotate(x, at, side), y)
            logits = after[0].double() @ after[1].double().transpose(-1, -2) * encoding.softmax_scale(16)
            sees = (
                torch.ones(260, 260, dtype=torch.bool).tril() if spec.layers[number].causal else torch.ones(260, 260).bool()
            )
            probs = logits.masked_fill(~sees, -torch.inf).softmax(-1)
            assert torch.allclose(probs.float(), out.attentions[number], atol=1e-6)
        assert encoding.rotate(x, at, "value").equal(x) != values
    return result
