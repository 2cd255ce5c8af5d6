"""Neighbouring channels paired, the layout kept: as in the paper, in GPT-J, and wherever weights were never permuted."""

from __future__ import annotations

from posenc.dialects.assumed import with_assumed
from posenc.dialects.errors import ConfigError
from posenc.dialects.family import decoder, family, head_width, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.spec import Layer, PositionSpec, Rotation, Use


@family("cohere", "ernie4_5", "ernie4_5_moe", "helium")
def _(keys: Keys) -> PositionSpec:
    return decoder(keys, rope(keys, d_head=head_width(keys), layout="interleaved"))


@family("glm", "glm4")
def _(keys: Keys) -> PositionSpec:
    """The first half of each head turns, unless partial_rotary_factor says otherwise."""
    return decoder(keys, rope(keys, d_head=head_width(keys), layout="interleaved", partial=True, partial_default=0.5))


@family("glm4_moe")
def _(keys: Keys) -> PositionSpec:
    """GLM-4.5: as GLM-4, yet halves are paired."""
    keys.find("note", "rope_parameters", "halves are paired, unlike GLM-4, whose neighbours are")
    d_head = keys.whole("head_dim", None)
    if d_head is None:
        d_model, n_heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
        d_head = d_model // n_heads
        if d_model % n_heads:
            keys.find(
                "warning",
                "hidden_size",
                f"{d_model} is no multiple of num_attention_heads={n_heads}, and head_dim "
                f"is missing: the code rounds the head width down to {d_head}",
            )
    return decoder(keys, rope(keys, d_head=d_head, partial=True, partial_default=0.5), d_head=d_head)


@family("gptj", "codegen")
def _(keys: Keys) -> PositionSpec:
    """The first rotary_dim channels turn at base 10 000, read from a table of n_positions rows."""
    if keys.data.get("rotary_dim", 0) is None:
        raise ConfigError(
            f"{keys.where('rotary_dim')}: null; the code then makes n_embd/2 frequencies, which no head has "
            "room for. Give the number of channels that turn"
        )
    d_model, n_heads, turning = keys.whole("n_embd"), keys.whole("n_head"), keys.whole("rotary_dim", least=2)
    if d_model % n_heads:
        raise ConfigError(f"{keys.where('n_embd')}: {d_model} is not a multiple of n_head={n_heads}")
    d_head = d_model // n_heads
    if turning % 2 or turning > d_head:
        raise ConfigError(
            f"{keys.where('rotary_dim')}: expected an even number up to the head width {d_head}, got {turning}"
        )
    keys.find("note", "n_positions", "a table of this many rows is read; positions beyond it fail")
    said = {
        "d_head": f"{keys.said_by('n_embd')} / {keys.said_by('n_head')}",
        "rotary_dim": keys.said_by("rotary_dim"),
        "base": "constant of the code",
        "layout": "constant of the code",
    }
    use = Use(
        "encodings.rope.RoPE",
        (("d_head", d_head), ("layout", "interleaved"), ("frequencies", Rotation(turning, 10000.0))),
        tuple(said.items()),
    )
    kinds = ("full_attention",) * keys.whole("n_layer")
    return decoder(keys, use, kinds=kinds, d_head=d_head, width="n_embd", heads="n_head", length="n_positions")


@family("openai_privacy_filter")
def _(keys: Keys) -> PositionSpec:
    """An encoder in which every token sees sliding_window tokens on each side."""
    keys = with_assumed(
        keys,
        {
            "rope_type": "yarn",
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 4096,
        },
    )
    d_head, side = head_width(keys), keys.whole("sliding_window")
    keys.find("note", "sliding_window", f"{side} tokens on each side and the token itself: {2 * side + 1} in all")
    use = rope(keys, d_head=d_head, layout="interleaved")
    layer = Layer((use,) if use else (), "sliding_attention", 2 * side + 1, causal=False)
    return stack_of(keys, [layer] * keys.whole("num_hidden_layers"), d_head=d_head)
