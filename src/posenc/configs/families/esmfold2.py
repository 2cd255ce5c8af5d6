"""ESMFold 2: a rotation by the coordinates of atoms, relative residue numbers for pairs of tokens, and ESMC's RoPE."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use

ATOMS = say("(x, y, z, residue) of the atom's reference conformer, in ångström; windows count atoms in order")


@family("esmfold2")
def esmfold2(keys: Keys) -> PositionSpec:
    """Atoms are encoded twice: for the trunk, and in the denoising module, whose decoder has the same layers."""
    window = 2 * (keys.whole("sliding_window") // 2) + 1
    residues, chains = keys.whole("num_relative_residx_bins"), keys.whole("num_relative_chain_bins")
    inner = Keys(keys.table("structure_head"), "", "structure_head")
    denoiser = Keys(inner.table("diffusion_module"), "", "structure_head.diffusion_module")
    trunk = _atoms(Keys(keys.table("atom_encoder"), "", "atom_encoder"), window, "atom_encoder", 1)
    again = _atoms(Keys(denoiser.table("atom_encoder"), "", f"{denoiser.path}.atom_encoder"), window, "structure_head", 2)
    text = say(
        "each pair of tokens gets a learned vector of the clipped difference: residues and, within one "
        "residue, atoms up to ±{residues}, chains up to ±{chains}, with a separate vector for different "
        "chains (or residues). Networks turn these into biases; they are no term of attention",
        residues=residues,
        chains=chains,
    )
    keys.note("num_relative_residx_bins", text)
    return PositionSpec(
        keys.family,
        parts=(trunk, again, *parts(keys, "esmc_config")),
        d_model=keys.whole("hidden_size"),
        coordinates=say("(residue, token, chain, molecule) of each token, used as differences"),
    )


def _atoms(keys: Keys, window: int, part: str, stacks: int) -> PositionSpec:
    d_model, n_heads = keys.whole("hidden_size", 128), keys.whole("num_attention_heads", 4)
    d_head = keys.whole("head_dim", d_model // n_heads)
    near = (keys.number("spatial_rope_base_frequency", 20.0), keys.whole("num_spatial_rope_pairs_per_axis", 2))
    far = (keys.number("uid_rope_base_frequency", 10000.0), keys.whole("num_uid_rope_pairs", 10))
    if 3 * near[1] + far[1] > d_head // 2:
        raise ConfigError(
            f"{keys.where('num_uid_rope_pairs')}: {3 * near[1] + far[1]} pairs do not fit in heads of {d_head}"
        )
    said_by = {"d_head": "head_dim", "spatial": "spatial_rope_base_frequency", "residue": "uid_rope_base_frequency"}
    use = Use(
        "configs.atoms.of_atoms",
        (("d_head", d_head), ("spatial", near), ("residue", far)),
        tuple((name, keys.said_by(key)) for name, key in said_by.items()),
    )
    count = keys.whole("num_hidden_layers", 3) * stacks
    layers = (Layer((use,), "sliding_attention", window, causal=False),) * count
    return PositionSpec(
        "esmfold2",
        part=part,
        layers=layers,
        coordinates=ATOMS,
        d_model=d_model,
        d_head=d_head,
        n_heads=n_heads,
        keys=tuple(keys.read.items()),
    )
