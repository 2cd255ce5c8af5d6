"""Llama and models with the same RoPE in every layer: the whole head, half pairs, one base, full causal attention."""

from __future__ import annotations

from posenc.configs.assumed import scaled_without_width, with_assumed
from posenc.configs.coordinates import LIKE_TEXT
from posenc.configs.family import decoder, family, head_width, parts
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec
from posenc.support.languages import clauses

NORMALISED = say("queries and keys are normalised after the rotation, so a scale of cos and sin has no effect")


@family(
    "llama",
    "arcee",
    "aria_text",
    "bitnet",
    "diffllama",
    "emu3_text_model",
    "exaone",
    "flex_olmo",
    "granite",
    "granite4_vision_text",
    "granite_docling_text",
    "granitemoe",
    "granitemoeshared",
    "hy_v3",
    "hyperclovax",
    "internlm3",
    "iquestcoder",
    "jais2",
    "jetmoe",
    "olmo",
    "olmo2",
    "olmoe",
    "seed_oss",
)
def llama(keys: Keys) -> PositionSpec:
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=same_kind(keys))


@family("hunyuan_v1_dense", "hunyuan_v1_moe")
def hunyuan_v1_dense(keys: Keys) -> PositionSpec:
    """Queries and keys are normalised after the rotation; "dynamic" with alpha is a fixed, larger base."""
    keys.note("rope_parameters", NORMALISED)
    use = rope(keys, d_head=head_width(keys))
    scaled_without_width(keys, use)
    return decoder(keys, use, kinds=same_kind(keys))


@family("nanochat")
def nanochat(keys: Keys) -> PositionSpec:
    """The rotation is R(-p), the reverse of Llama's; queries and keys are normalised afterwards."""
    keys.note("rope_parameters", clauses(say("the reverse of Llama's rotation: sin has the opposite sign"), NORMALISED))
    return decoder(keys, rope(keys, d_head=head_width(keys), reverse=True), kinds=same_kind(keys))


@family("apertus", "apertus1p5_text")
def apertus(keys: Keys) -> PositionSpec:
    """By default scaled as Llama 3.1 with base 12 000 000."""
    return decoder(keys, rope(with_assumed(keys), d_head=head_width(keys)), kinds=same_kind(keys))


@family("dbrx")
def dbrx(keys: Keys) -> PositionSpec:
    """The base is rope_theta; the one inside attn_config, as in published files, is not used."""
    use = rope(keys, d_head=head_width(keys))
    inner = keys.table("attn_config").get("rope_theta")
    if use is not None and use.rotation is not None and inner not in (None, use.rotation.base):
        keys.error(
            "attn_config.rope_theta",
            say(
                "{inner:g} here, but transformers uses the base {base:g} ({origin}); models trained with "
                "{inner:g} give wrong results",
                inner=inner,
                base=use.rotation.base,
                origin=keys.origins["base"],
            ),
        )
    if inner is None:
        keys.warning(
            "attn_config.rope_theta",
            say("missing: transformers requires it and fails, though it rotates with another base"),
        )
    return decoder(keys, use, kinds=same_kind(keys), length="max_seq_len")


def same_kind(keys: Keys, kind: str = "full_attention") -> list[str]:
    """One kind for all layers, whatever layer_types says."""
    types = keys.data.get("layer_types")
    if isinstance(types, (list, tuple)) and set(types) != {kind}:
        keys.error(
            "layer_types",
            say("{owner}'s code does not read it: all layers are {kind}", owner=keys.facts["class"], kind=kind),
        )
    return [kind] * keys.whole("num_hidden_layers")


def all_full(keys: Keys) -> list[str]:
    return ["full_attention"] * keys.whole("num_hidden_layers")


@family("chameleon")
def chameleon(keys: Keys) -> PositionSpec:
    return decoder(
        keys,
        rope(keys, d_head=head_width(keys)),
        kinds=same_kind(keys),
        parts=parts(keys, "vq_config"),
        coordinates=LIKE_TEXT,
    )
