"""posenc.configs.families.gpt2, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.adding import added
from families.harness import Proof, at_of, build, config_of, proof, spec_of, tokens
from families.silenced import added_by

IDS = torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]])


@proof("gpt_neo")
def gpt_neo(model_type: str) -> Proof:
    result = Proof(model_type, "learned table added to the embeddings; some layers have a window")
    config = config_of(
        model_type,
        max_position_embeddings=40,
        num_layers=5,
        num_hidden_layers=None,
        num_heads=4,
        window_size=3,
        attention_types=[[["global", "local"], 2], [["local"], 1]],
    )
    model, spec = build(config, attention=None), spec_of(config)
    added(result, spec, model, "h.0", at_of(IDS), {"input_ids": tokens(IDS.shape), "position_ids": IDS})
    i, j = torch.arange(40)[:, None], torch.arange(40)
    for layer, theirs in zip(spec.layers, model.h, strict=True):
        seen = (j <= i) & (j > i - (layer.window or 40))
        result.equal("window of every layer", seen, theirs.attn.attention.bias[0, 0])
    return result


STEPS = torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]])


@proof("decision_transformer")
def decision_transformer(model_type: str) -> Proof:
    result = Proof(model_type, "learned table of timesteps added to returns, states and actions")
    config = config_of(model_type, max_ep_len=40, n_positions=16, state_dim=3, act_dim=2, n_head=4, n_layer=2)
    model, spec = build(config, attention=None), spec_of(config)
    generator = torch.Generator().manual_seed(2)
    inputs = {
        "states": torch.randn(2, 4, 3, generator=generator),
        "actions": torch.randn(2, 4, 2, generator=generator),
        "rewards": torch.zeros(2, 4, 1),
        "returns_to_go": torch.randn(2, 4, 1, generator=generator),
        "timesteps": STEPS,
        "attention_mask": torch.ones(2, 4),
    }
    at = posenc.Positions.at(STEPS.repeat_interleave(3, dim=1))
    added_by(result, spec, model, "embed_timestep", "embed_ln", at, inputs)
    inner = {"inputs_embeds": torch.randn(2, 12, 64, generator=generator), "position_ids": torch.zeros(2, 12).long()}
    with torch.no_grad():
        model.encoder.wpe.weight[1:] = float("nan")
        assert model(**inputs).last_hidden_state.isfinite().all(), "other rows of GPT-2's table are read"
        assert model.encoder(**inner).last_hidden_state.isfinite().all()
    return result
