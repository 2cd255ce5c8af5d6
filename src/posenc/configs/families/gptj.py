"""GPT-J and CodeGen: RoPE over the first rotary_dim channels, interleaved pairs."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.family import decoder, family
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec, Rotation, Use


@family("gptj", "codegen")
def gptj(keys: Keys) -> PositionSpec:
    """The first rotary_dim channels rotate with base 10 000, from a table of n_positions rows."""
    keys.get("rotary", None)  # true in published files
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
    keys.note("n_positions", say("the code reads a table with this many rows; positions beyond it fail"))
    said_by = {
        "d_head": f"{keys.said_by('n_embd')} / {keys.said_by('n_head')}",
        "rotary_dim": keys.said_by("rotary_dim"),
        "base": "constant of the code",
        "layout": "constant of the code",
    }
    use = Use(
        "encodings.rope.RoPE",
        (("d_head", d_head), ("layout", "interleaved"), ("frequencies", Rotation(turning, 10000.0))),
        tuple(said_by.items()),
    )
    kinds = ("full_attention",) * keys.whole("n_layer")
    return decoder(keys, use, kinds=kinds, d_head=d_head, width="n_embd", heads="n_head", length="n_positions")
