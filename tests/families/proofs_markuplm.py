"""posenc.configs.families.markuplm, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, build, config_of, proof, spec_of
from families.proofs_roberta import TEXT
from families.silenced import added_by


@proof("markuplm")
def markuplm(model_type: str) -> Proof:
    result = Proof(model_type, "RoBERTa's table, and a learned vector of the XPath, added to the embeddings")
    config = config_of(
        model_type,
        max_position_embeddings=40,
        pad_token_id=1,
        max_depth=5,
        xpath_unit_hidden_size=6,
        max_xpath_tag_unit_embeddings=12,
        max_xpath_subs_unit_embeddings=14,
        tag_pad_id=10,
        subs_pad_id=11,
    )
    model, spec = build(config, attention=None), spec_of(config)
    generator = torch.Generator().manual_seed(5)
    tags, subscripts = (torch.randint(0, n, (3, 6, 5), generator=generator) for n in (12, 14))
    names = {"positions": "embeddings.position_embeddings", "xpath": "embeddings.xpath_embeddings"}
    others = "embeddings.token_type_embeddings"
    inputs = {"input_ids": TEXT, "xpath_tags_seq": tags, "xpath_subs_seq": subscripts}
    at = {
        "positions": posenc.Positions.from_mask(TEXT != 1),
        "xpath": posenc.Positions.at(torch.cat([tags, subscripts], -1)),
    }
    for part, most in (("positions", 1.0), ("xpath", 4.0)):  # a path goes through two matrices
        silent = next(name for name in names if name != part)
        added_by(
            result,
            spec if part == "positions" else spec["xpath"],
            model,
            names[part],
            "embeddings.LayerNorm",
            at[part],
            inputs,
            most,
            what=part,
            others=(names[silent], others),
        )
    silence = torch.cat([torch.full((3, 6, 5), 10), torch.full((3, 6, 5), 11)], -1)
    added_by(
        result,
        spec["xpath"],
        model,
        names["xpath"],
        "embeddings.LayerNorm",
        posenc.Positions.at(silence),
        {"input_ids": TEXT},
        4.0,
        what="no xpath",
        others=(names["positions"], others),
    )
    return result
