"""posenc.configs.families.pp_doclayout_v2, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.adding import entering
from families.harness import Proof, modeling, proof, spec_of
from families.projections import config, entered, sums
from families.proofs_vit import randomly
from posenc.configs.weights import with_weights
from posenc.encodings.bases.learned_axes import with_sizes


@proof("pp_doclayout_v2")
def pp_doclayout_v2(model_type: str) -> Proof:
    result = Proof(
        model_type,
        "sinusoids of row and column in the detector; for reading order a learned table, and tables "
        "of corners and sizes through a projection",
    )
    order = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "shape_size": 5,
        "coordinate_size": 7,
        "max_position_embeddings": 20,
        "num_classes": 3,
        "global_pointer_head_size": 4,
    }
    made = config(
        model_type,
        encoder_hidden_dim=32,
        encoder_in_channels=[8, 8, 8],
        encoder_layers=2,
        positional_encoding_temperature=100,
        reading_order_config=order,
    )
    made._attn_implementation = "eager"
    module, spec = modeling(model_type).PPDocLayoutV2HybridEncoder(made).eval(), spec_of(made)
    seen, _ = entered(module.aifi[0], {"hidden_states": torch.randn(2, 32, 3, 5)})
    for number in range(2):
        encoding, at = spec["encoder"].encoding(number), posenc.Positions.grid(3, 5, batch=2)
        sums(
            result,
            "queries and keys of the coarsest map",
            encoding,
            seen,
            f"layers.{number}.self_attn",
            ("q_proj", "k_proj"),
            "v_proj",
            at,
            4.0,
        )
    order_of = made.reading_order_config
    order_of._attn_implementation = "eager"
    torch.manual_seed(0)
    model = randomly(modeling(model_type).PPDocLayoutV2ReadingOrder(order_of).eval(), "position_embeddings.weight")
    part = spec["reading_order_config"]
    assert len(part.layers) == len(model.encoder.layer) == 2
    corners = torch.sort(torch.randint(0, 1000, (2, 6, 2, 2)), dim=2).values.flatten(2)  # x0, y0, x1, y1
    real = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]])
    ids = torch.tensor([[0, 3, 3, 3, 3, 3, 3, 2], [0, 3, 3, 3, 2, 1, 1, 1]])
    padded = torch.nn.functional.pad(corners, (0, 0, 1, 1))
    with torch.no_grad():
        model.embeddings.word_embeddings.weight.zero_()
        model.embeddings.token_type_embeddings.weight.zero_()
        before = entering(model, "embeddings.spatial_proj", {"boxes": corners, "mask": real})
        whole = entering(model, "embeddings.norm", {"boxes": corners, "mask": real})
        tables = with_weights(part["boxes"], 0, model.state_dict())
        got = tables.embed(torch.zeros_like(before), posenc.Positions.at(with_sizes(padded)))
        result.close("tables of corners and sizes", got, before)
        table = with_weights(part, 0, model.state_dict())
        at = posenc.Positions.from_mask(ids != 1)
        # theirs adds the table first
        result.close("what enters the model of order", table.embed(model.embeddings.spatial_proj(before), at), whole, 2.0)
    return result
