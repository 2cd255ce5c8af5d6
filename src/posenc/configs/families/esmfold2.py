"""ESMFold 2: a rotation by the coordinates of atoms, relative residue numbers for pairs of tokens, and ESMC's RoPE."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.spec import Layer, PositionSpec, Use
from posenc.support.languages import Words

ATOMS = Words(
    "(x, y, z, residue) of the atom's reference conformer, in ångström; windows count atoms in order",
    "原子在参考构象中的（x, y, z, 残基），以埃计；窗口按原子的次序计",
)


@family("esmfold2")
def esmfold2(keys: Keys) -> PositionSpec:
    """Atoms are encoded twice: for the trunk, and in the denoising module, whose decoder has the same layers."""
    window = 2 * (keys.whole("sliding_window") // 2) + 1
    residues, chains = keys.whole("num_relative_residx_bins"), keys.whole("num_relative_chain_bins")
    inner = Keys(keys.table("structure_head"), "", "structure_head")
    denoiser = Keys(inner.table("diffusion_module"), "", "structure_head.diffusion_module")
    trunk = _atoms(Keys(keys.table("atom_encoder"), "", "atom_encoder"), window, "atom_encoder", 1)
    again = _atoms(Keys(denoiser.table("atom_encoder"), "", f"{denoiser.path}.atom_encoder"), window, "structure_head", 2)
    text = Words(
        "each pair of tokens gets a learned vector of the clipped difference: residues and, within "
        f"one residue, atoms up to ±{residues}, chains up to ±{chains}, with a separate vector "
        "for different chains (or residues). Networks turn these into biases; they are no term "
        "of attention",
        (
            f"每对词元按截断的差得到一个学习的向量：残基差与同一残基内的原子差到 ±{residues}，"
            f"链差到 ±{chains}，不同的链（或残基）另有一个向量。网络把它们变成偏置；它们不是注意力中的项"
        ),
    )
    keys.note("num_relative_residx_bins", *text)
    return PositionSpec(
        keys.family,
        parts=(trunk, again, *parts(keys, "esmc_config")),
        d_model=keys.whole("hidden_size"),
        coordinates=Words(
            "(residue, token, chain, molecule) of each token, used as differences",
            "每个词元的（残基, 词元, 链, 分子），按差使用",
        ),
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
    said = {"d_head": "head_dim", "spatial": "spatial_rope_base_frequency", "residue": "uid_rope_base_frequency"}
    use = Use(
        "configs.atoms.of_atoms",
        (("d_head", d_head), ("spatial", near), ("residue", far)),
        tuple((name, keys.said_by(key)) for name, key in said.items()),
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
