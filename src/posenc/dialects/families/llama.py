"""The large family: every layer alike, the whole head turns, halves paired, one base, all earlier tokens in sight."""

from __future__ import annotations

from posenc.dialects.assumed import scaled_without_width, with_assumed
from posenc.dialects.family import decoder, family, head_width
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.spec import PositionSpec

NORMALISED = "queries and keys are normalised after the rotation, which takes any magnitude of cos and sin away"


@family(
    "arcee",
    "bitnet",
    "diffllama",
    "emu3_text_model",
    "flex_olmo",
    "granite",
    "granitemoe",
    "granitemoeshared",
    "hy_v3",
    "hyperclovax",
    "internlm3",
    "iquestcoder",
    "jais2",
    "jetmoe",
    "llama",
    "olmo",
    "olmo2",
    "olmoe",
    "seed_oss",
)
def _(keys: Keys) -> PositionSpec:
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=alike(keys))


@family("hunyuan_v1_dense", "hunyuan_v1_moe")
def _(keys: Keys) -> PositionSpec:
    """Queries and keys are normalised after they have turned; "dynamic" with an alpha is a fixed, larger base."""
    keys.find("note", "rope_parameters", NORMALISED)
    use = rope(keys, d_head=head_width(keys))
    scaled_without_width(keys, use)
    return decoder(keys, use, kinds=alike(keys))


@family("nanochat")
def _(keys: Keys) -> PositionSpec:
    """Everything turns the other way, R(-p); queries and keys are normalised after that."""
    keys.find("note", "rope_parameters", f"turns the other way than Llama: sin has the opposite sign; {NORMALISED}")
    return decoder(keys, rope(keys, d_head=head_width(keys), reverse=True), kinds=alike(keys))


@family("apertus")
def _(keys: Keys) -> PositionSpec:
    """Scaled as Llama 3.1, base 12 000 000, where the file has no rotary settings at all."""
    llama3 = {
        "rope_type": "llama3",
        "rope_theta": 12000000.0,
        "factor": 8.0,
        "original_max_position_embeddings": 8192,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
    }
    return decoder(keys, rope(with_assumed(keys, llama3), d_head=head_width(keys)), kinds=alike(keys))


@family("gemma")
def _(keys: Keys) -> PositionSpec:
    """use_bidirectional_attention changes a flag of the attention modules only: the mask stays causal."""
    if keys.flag("use_bidirectional_attention", False):
        keys.find("warning", "use_bidirectional_attention", "makes no mask: attention stays causal where masks are given")
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=alike(keys))


@family("dbrx")
def _(keys: Keys) -> PositionSpec:
    """The base is rope_theta like everyone's; the one that published files have, inside attn_config, turns nothing."""
    use = rope(keys, d_head=head_width(keys))
    inner = keys.table("attn_config").get("rope_theta")
    if use is not None and use.rotation is not None and inner not in (None, use.rotation.base):
        keys.find(
            "error",
            "attn_config.rope_theta",
            f"{inner:g} stands here, but transformers turns at the base "
            f"{use.rotation.base:g} ({keys.origins['base']}); models made with {inner:g} come out wrong",
        )
    if inner is None:
        keys.find("warning", "attn_config.rope_theta", "missing: transformers asks for it and fails, and turns by another")
    return decoder(keys, use, kinds=alike(keys), length="max_seq_len")


def alike(keys: Keys, kind: str = "full_attention") -> list[str]:
    """One kind for all layers, whatever layer_types says."""
    said = keys.data.get("layer_types")
    if isinstance(said, (list, tuple)) and set(said) != {kind}:
        keys.find("error", "layer_types", f"{keys.facts['class']}'s code does not read it: all layers are {kind}")
    return [kind] * keys.whole("num_hidden_layers")
