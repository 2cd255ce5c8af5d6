"""posenc.configs.families.vjepa2, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, build, calls, config_of, proof, same_rotation, spec_of, unrotated


@proof("vjepa2")
def vjepa2(model_type: str) -> Proof:
    result = Proof(
        model_type,
        "interleaved pairs with angles in half order, which is not a rotation; a third of the head for each axis",
    )
    sizes = {"hidden_size": 52, "num_attention_heads": 2, "num_hidden_layers": 2, "pred_hidden_size": 40}
    config = config_of(
        model_type,
        patch_size=4,
        crop_size=12,
        frames_per_clip=4,
        pred_num_attention_heads=2,
        pred_num_hidden_layers=3,
        **sizes,
    )
    model, spec = build(config, "VJEPA2Model"), spec_of(config)
    for part, stack in (("encoder", model.encoder), ("predictor", model.predictor)):
        assert len(spec[part].layers) == len(stack.layer)
        ids = torch.tensor([[0, 1, 2, 3, 8, 9, 17, 26], [5, 4, 100, 1000, 9, 70000, 131071, 8]])
        for layer in stack.layer:
            attention = layer.attention
            x = torch.randn(*ids.shape, attention.hidden_size)
            rest, moved = (calls(attention, x, position_mask=p)[0] for p in (ids * 0, ids))
            at = posenc.Positions.at(torch.stack([ids // 9, ids % 9 // 3, ids % 3], dim=-1))
            encoding = spec[part].encoding(0, exact="model")
            zero = posenc.Positions.at(at.coords * 0)
            for side in ("query", "key", "value"):
                start = unrotated(getattr(rest, side[0]), encoding, zero, side)
                result.close(f"queries, keys and values, {part}", encoding.rotate(start, at, side), getattr(moved, side[0]))
    clip = torch.randn(1, 4, 3, 12, 12)
    found = calls(model.encoder, clip)
    grid = torch.tensor([(frame, row, column) for frame in range(2) for row in range(3) for column in range(3)])
    masks = torch.zeros(1, 18, dtype=torch.long)
    rest = [calls(layer.attention, torch.zeros(1, 18, 52), position_mask=masks)[0] for layer in model.encoder.layer]
    assert [call.q.shape for call in found] == [call.q.shape for call in rest]
    same_rotation(result, spec["encoder"], rest, found, grid.T[:, None], softmax=True)
    return result
