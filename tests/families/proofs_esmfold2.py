"""posenc.configs.families.esmfold2, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, calls, config_of, modeling, proof, spec_of
from families.turning import visible


@proof("esmfold2")
def esmfold2(model_type: str) -> Proof:
    result = Proof(
        model_type,
        "RoPE over x, y, z and residue for atoms, in windows; learned vectors of clipped "
        "differences for pairs of tokens; ESMC",
    )
    atoms = {
        "hidden_size": 64,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "num_spatial_rope_pairs_per_axis": 3,
        "num_uid_rope_pairs": 5,
        "spatial_rope_base_frequency": 30.0,
        "intermediate_size": 32,
    }
    sizes = {"pairwise_hidden_size": 8, "num_relative_residx_bins": 3, "sliding_window": 6, "num_attention_heads": None}
    fields = config_of(model_type).__dataclass_fields__
    config = config_of(
        model_type,
        **{name: value for name, value in sizes.items() if name in fields},
        num_hidden_layers=None,
        hidden_size=None,
        atom_encoder=atoms | {"output_dim": 384},
    )
    config._attn_implementation = "probe"
    module, spec = modeling(model_type), spec_of(config)
    assert [part.part for part in spec.parts] == ["atom_encoder", "structure_head", "esmc_config"]
    assert len(spec["structure_head"].layers) == 2 * config.structure_head.diffusion_module.atom_encoder.num_hidden_layers

    torch.manual_seed(0)
    encoder = module.EsmFold2AtomEncoder(config, config.atom_encoder).eval()
    assert len(encoder.layers) == len(spec["atom_encoder"].layers)
    n = 9
    places, residues = torch.randn(2, n, 3) * 10, torch.randint(0, 50, (2, n))
    x, layer = torch.randn(2, n, 64), encoder.layers[0].self_attn
    still, moved = (encoder.rotary_emb(p, r, torch.float32) for p, r in ((0 * places, 0 * residues), (places, residues)))
    before, after = (calls(layer, x, None, angles, fixed=False)[0] for angles in (still, moved))
    at = posenc.Positions.at(torch.cat([places.double(), residues[..., None].double()], dim=-1))
    encoding = spec["atom_encoder"].encoding(0)
    # Theirs has angles of up to 50 in fp32: places times frequencies, each rounded once.
    result.close("queries and keys of atoms", encoding.rotate(before.q, at, "query"), after.q, 100.0)
    result.close("queries and keys of atoms", encoding.rotate(before.k, at, "key"), after.k, 100.0)
    mask = encoder.build_attention_mask(torch.ones(2, n, dtype=torch.bool), x)
    mask = torch.ones(n, n, dtype=torch.bool) if mask is None else mask[0, 0] > -1e30
    assert torch.equal(mask, visible(spec["atom_encoder"].layers[0], n))
    result.equal("windows of atoms", True, True)

    pairs = module.EsmFold2RelativePositionEncoding(config)
    torch.nn.init.normal_(pairs.embed.weight)
    index = torch.arange(n)[None]
    chain = torch.tensor([[0, 0, 0, 0, 0, 1, 1, 1, 1]])
    with torch.no_grad():
        own = pairs(2 * index, chain, chain, 0 * chain, index)
        table = pairs.embed.weight.T
        for i in range(n):
            for j in range(n):
                same = bool(chain[0, i] == chain[0, j])
                residue = min(max(2 * (i - j) + 3, 0), 6) if same else 7
                token = 3 if i == j else 7  # within one residue only
                other = 5 if same else min(max(int(chain[0, i] - chain[0, j]) + 2, 0), 4)
                expected = table[residue] + table[8 + token] + table[16] + table[17 + other]
                result.close("vectors of pairs of tokens", expected, own[0, i, j], 8.0)  # a sum in another order
    result.equal("esmc_config is esmc", spec["esmc_config"].family, config.esmc_config.model_type)
    return result
