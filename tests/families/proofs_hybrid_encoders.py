"""RT-DETR and its kin: attention within the coarsest map, whose queries and keys get sinusoids of plain places."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, modeling, proof, spec_of
from families.projections import config, entered, sums


@proof("rt_detr", "rt_detr_v2", "d_fine", "pp_doclayout_v3", "pp_doclayout_v4", "omdet-turbo")
def _(model_type: str) -> Proof:
    name = {"rt_detr": "RTDetrHybridEncoder", "rt_detr_v2": "RTDetrV2HybridEncoder", "d_fine": "DFineHybridEncoder",
            "pp_doclayout_v3": "PPDocLayoutV3HybridEncoder", "pp_doclayout_v4": "PPDocLayoutV4HybridEncoder",
            "omdet-turbo": "OmDetTurboHybridEncoder"}[model_type]  # fmt: skip
    omdet = model_type == "omdet-turbo"
    result = Proof(
        model_type, "sinusoids [sin row | cos row | sin column | cos column] on queries and keys of the coarsest map"
    )
    sizes = {"encoder_hidden_dim": 32, "encoder_in_channels": [8, 8, 8], "encoder_layers": 2, "encode_proj_layers": [2],
             "feat_strides": [8, 16, 32], "positional_encoding_temperature": 100,
             "encoder_projection_indices": [2]}  # fmt: skip
    sizes_in_use = {"pp_doclayout_v3": (), "pp_doclayout_v4": ([640, 640],)}.get(
        model_type, (640,)
    )  # V3's class takes none
    for eval_size in (None, *sizes_in_use):
        made = config(model_type, **sizes, eval_size=eval_size)
        made._attn_implementation = "eager"
        module, spec = getattr(modeling(model_type), name)(made).eval(), spec_of(made)
        assert len(spec["encoder"].layers) == 2
        width = 8 if omdet else 32
        maps = [torch.randn(2, width, 3 * 2**n, 5 * 2**n) for n in (2, 1, 0)]
        if model_type.startswith("pp"):  # the rest needs a fourth map, for masks
            seen, _ = entered(module.aifi[0], {"hidden_states": maps[2]})
        else:
            seen, _ = entered(module, {"inputs_embeddings" if omdet else "inputs_embeds": maps})
        at = posenc.Positions.grid(5, 3, batch=2) if omdet else posenc.Positions.grid(3, 5, batch=2)
        attention = sorted({path.rpartition(".")[0] for path in seen if path.rpartition(".")[2] in ("v_proj", "value")})
        assert len(attention) == 2, attention
        for number, path in enumerate(attention):
            q, k, v = ("query", "key", "value") if omdet else ("q_proj", "k_proj", "v_proj")
            encoding = spec["encoder"].encoding(number)
            what = "queries and keys of the coarsest map" + (", none in use where eval_size is set" if eval_size else "")
            sums(result, what, encoding, seen, path, (q, k), v, at, 4.0)
    return result
