"""Decision Transformer: what the table of timesteps adds, for three tokens a step."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, build, config_of, proof, spec_of
from families.silenced import added_by

STEPS = torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]])


@proof("decision_transformer")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned table of timesteps added to returns, states and actions alike")
    config = config_of(model_type, max_ep_len=40, n_positions=16, state_dim=3, act_dim=2, n_head=4, n_layer=2)
    model, spec = build(config, attention=None), spec_of(config)
    generator = torch.Generator().manual_seed(2)
    inputs = {"states": torch.randn(2, 4, 3, generator=generator), "actions": torch.randn(2, 4, 2, generator=generator),
              "rewards": torch.zeros(2, 4, 1), "returns_to_go": torch.randn(2, 4, 1, generator=generator),
              "timesteps": STEPS, "attention_mask": torch.ones(2, 4)}  # fmt: skip
    at = posenc.Positions.at(STEPS.repeat_interleave(3, dim=1))
    added_by(result, spec, model, "embed_timestep", "embed_ln", at, inputs)
    inner = {"inputs_embeds": torch.randn(2, 12, 64, generator=generator), "position_ids": torch.zeros(2, 12).long()}
    with torch.no_grad():
        model.encoder.wpe.weight[1:] = float("nan")
        assert model(**inputs).last_hidden_state.isfinite().all(), "other rows of GPT-2's table are read"
        assert model.encoder(**inner).last_hidden_state.isfinite().all()
    return result
