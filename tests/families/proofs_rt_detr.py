"""posenc.configs.families.rt_detr, compared with the models' own code in transformers."""

from __future__ import annotations

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import posenc
from families.harness import Proof, modeling, module_named, proof, spec_of
from families.projections import config, entered, sums


@proof("rt_detr", "rt_detr_v2", "d_fine", "pp_doclayout_v3", "pp_doclayout_v4", "omdet-turbo")
def rt_detr(model_type: str) -> Proof:
    name = {
        "rt_detr": "RTDetrHybridEncoder",
        "rt_detr_v2": "RTDetrV2HybridEncoder",
        "d_fine": "DFineHybridEncoder",
        "pp_doclayout_v3": "PPDocLayoutV3HybridEncoder",
        "pp_doclayout_v4": "PPDocLayoutV4HybridEncoder",
        "omdet-turbo": "OmDetTurboHybridEncoder",
    }[model_type]
    omdet = model_type == "omdet-turbo"
    result = Proof(
        model_type, "sinusoids [sin row | cos row | sin column | cos column] on queries and keys of the coarsest map"
    )
    sizes = {
        "encoder_hidden_dim": 32,
        "encoder_in_channels": [8, 8, 8],
        "encoder_layers": 2,
        "encode_proj_layers": [2],
        "feat_strides": [8, 16, 32],
        "positional_encoding_temperature": 100,
        "encoder_projection_indices": [2],
    }
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


@proof("deimv2")
def deimv2(model_type: str) -> Proof:
    result = Proof(
        model_type, "sinusoids of row and column in the encoder's attention; queries add a network of their boxes"
    )
    config = CONFIG_MAPPING[model_type](positional_encoding_temperature=500, encoder_layers=2)
    spec, module = spec_of(config, defaults=True), modeling(model_type)
    result.equal("the backbone", [part.family for part in spec.parts], [config.backbone_config.model_type])
    layer = module.Deimv2AIFILayer(config).eval()
    for height, width in ((3, 5), (6, 4)):
        theirs = layer.position_embedding(width=width, height=height, device=torch.device("cpu"), dtype=torch.float32)
        got = spec.encoding(0).embed(torch.zeros(1, height * width, 256), posenc.Positions.grid(height, width))
        result.close("sinusoids of a map", got, theirs)
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(config)
    encoder, decoder = module_named(model, "HybridEncoder"), module_named(model, "Deimv2Decoder")
    maps = [inner for outer in encoder.aifi for inner in outer.layers]
    assert [layer.kind for layer in spec.layers].count("map") == len(maps) == 2
    assert [layer.kind for layer in spec.layers].count("queries") == len(decoder.layers)
    still = spec_of(CONFIG_MAPPING[model_type](eval_size=[20, 20]), defaults=True)
    assert not any(layer.uses for layer in still.layers)
    layer.eval_size = (20, 20)
    seen: list[object] = []
    layer.layers[0].register_forward_pre_hook(
        lambda m, given, named: seen.append(named["spatial_position_embeddings"]), with_kwargs=True
    )
    with torch.no_grad():
        layer(torch.randn(1, 256, 4, 4))
    assert seen == [None], "positions are added where eval_size is set: its finding is out of date"
    return result
