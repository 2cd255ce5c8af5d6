"""posenc.configs.families.kimi_k25, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, module_named, proof
from families.proofs_qwen2_vl_vision import made, raster, rotation, sizes_of
from posenc.configs.weights import with_weights


@proof("kimi_k25_vision")
def kimi_k25_vision(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE over column and row alternately; a learned grid (bicubic) and sinusoids of the frame")
    for grids in (((2, 4, 6), (2, 6, 4)), ((1, 2, 4), (1, 4, 6))):  # clips of one length at a time: its pooling fails else
        model, spec, inputs = made(
            model_type, "Kimi_K25VisionModel", grids, patch_size=2, pos_emb_height=5, pos_emb_width=5
        )
        own = raster(grids)
        inputs = {"pixel_values": inputs["hidden_states"].reshape(-1, 3, 2, 2), "grid_thw": inputs["grid_thw"]}
        rotation(result, model, spec, own, **inputs)
        table = module_named(model, "VisionPositionEmbeddings")
        with torch.no_grad():
            torch.nn.init.normal_(table.position_embeddings)
            frames = [f + (n > 1) for n, height, width in grids for f in range(n) for _ in range(height * width)]
            coords = torch.cat([own, sizes_of(grids), torch.tensor(frames)[:, None]], dim=1)
            x = torch.randn(len(coords), 64, generator=torch.Generator().manual_seed(3))
            got = with_weights(spec, 0, model.state_dict()).embed(x[None], posenc.Positions.at(coords[None]))[0]
            result.close("what is added to the embeddings", got, table(x, torch.tensor(grids)), 16.0)
    return result
