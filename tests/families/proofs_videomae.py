"""posenc.configs.families.videomae, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.adding import added, entering
from families.harness import Proof, build, config_of, proof, spec_of
from families.proofs_vit import SMALL, only_there, randomly


@proof("videomae")
def videomae(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids of one count over all frames, before encoder and decoder")
    more = {"decoder_hidden_size": 16, "decoder_num_hidden_layers": 2, "decoder_num_attention_heads": 2}
    config = config_of(
        model_type, **SMALL, **more, image_size=8, patch_size=2, num_frames=6, tubelet_size=2, decoder_intermediate_size=16
    )
    model, spec = build(config, "VideoMAEForPreTraining"), spec_of(config)
    only_there(spec)
    masked = torch.arange(48)[None] % 3 == 0
    inputs = {"pixel_values": torch.randn(1, 6, 3, 8, 8), "bool_masked_pos": masked}
    order = torch.arange(48)
    seen, hidden = order[~masked[0]], order[masked[0]]
    tower = model.videomae.embeddings
    stacks = (
        (spec, tower, "encoder.layer.0", seen),
        (spec["decoder"], model, "decoder.decoder_layers.0", torch.cat([seen, hidden])),
    )
    for part, owner, after, at in stacks:
        with_positions = entering(model, after, inputs)
        kept = owner.position_embeddings
        owner.position_embeddings = torch.zeros_like(kept)
        alone = entering(model, after, inputs)
        owner.position_embeddings = kept
        if owner is model:  # what came before is another thing without positions: take the same
            alone = with_positions - kept[:, at]
        got = part.encoding(0).embed(alone, posenc.Positions.at(at[None]))
        result.close("what enters the first layers of encoder and decoder", got, with_positions, 2.0)
    return result


@proof("timesformer")
def timesformer(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, nearest cell for images of another size, and a table of frames")
    for kind, frames in (("divided_space_time", 3), ("space_only", 1)):
        config = config_of(model_type, **SMALL, image_size=10, patch_size=2, num_frames=3, attention_type=kind)
        model, spec = randomly(build(config), "position_embeddings", "time_embeddings"), spec_of(config)
        only_there(spec)
        for height, width in ((5, 5), (3, 5), (8, 5)):
            grid = posenc.Positions.grid(height, width, sized=True).coords[0]
            each = grid.repeat_interleave(frames, 0)
            frame = torch.arange(frames).repeat(len(grid))
            tokens = torch.cat([frame[:, None], each], dim=1)
            at = posenc.Positions.at(torch.cat([torch.tensor([[-1, -1, 0, height, width]]), tokens])[None])
            video = torch.randn(1, frames, 3, 2 * height, 2 * width)
            added(result, spec, model, "layer.0", at, {"pixel_values": video}, 2.0, "what enters the first layer")
    return result
