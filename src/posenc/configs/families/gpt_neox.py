"""GPT-NeoX, Phi, StableLM and similar: RoPE over the first channels of each head, half pairs; the rest is unrotated."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.families.llama import same_kind
from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.spec import PositionSpec, Use

DEFAULT = {"nemotron": 0.5, "persimmon": 0.5, "phi": 0.5, "stablelm": 0.25}  # constants of the classes


@family("stablelm", "nemotron", "persimmon", "phi")
def stablelm(keys: Keys) -> PositionSpec:
    use = rope(keys, d_head=head_width(keys), partial=True, partial_default=DEFAULT[keys.family])
    return decoder(keys, use, kinds=same_kind(keys))


@family("solar_open")
def solar_open(keys: Keys) -> PositionSpec:
    """Frequencies for a part of the head, but a rotation of the whole head: any fraction below 1 fails."""
    d_head = head_width(keys)
    use = rope(keys, d_head=d_head, partial=True)
    if use is not None and use.rotation is not None and use.rotation.width != d_head:
        raise ConfigError(
            f"{keys.where('rope_parameters')}.partial_rotary_factor: expected 1, got {use.rotation.width} of "
            f"{d_head} channels; this family's rotation fails for a part of the head"
        )
    return decoder(keys, use, kinds=same_kind(keys))


@family("gpt_neox", "gpt_neox_japanese")
def gpt_neox(keys: Keys) -> PositionSpec:
    """The old spelling is rotary_emb_base and rotary_pct; rope_theta and partial_rotary_factor beside it are ignored."""
    fraction = keys.number("rotary_pct", 0.25 if keys.family == "gpt_neox" else 1.0)
    use = _with_fraction(keys, fraction, "rotary_pct", base_key="rotary_emb_base")
    return decoder(keys, use, kinds=same_kind(keys))


@family("minimax_m2")
def minimax_m2(keys: Keys) -> PositionSpec:
    """The old spelling is rotary_dim, the number of channels; partial_rotary_factor overrides it."""
    turning, d_head = keys.whole("rotary_dim", None), head_width(keys)
    if turning is None or keys.has("partial_rotary_factor"):
        use = rope(keys, d_head=d_head, partial=True)
    else:
        use = _with_fraction(keys, turning / d_head, "rotary_dim")
    return decoder(keys, use, kinds=same_kind(keys))


def _with_fraction(keys: Keys, fraction: float, fraction_key: str, base_key: str = "rope_theta") -> Use | None:
    """RoPE over a fraction of the head that another key gives, if the rotary settings do not."""
    inner = keys.replaced(without={"partial_rotary_factor", "rope_theta"} - {base_key})
    use = rope(inner, d_head=head_width(keys), partial=True, partial_default=fraction, base_key=base_key)
    if use is None or dict(use.said_by).get("rotary_dim") != "default of the family's code" or not keys.has(fraction_key):
        return use
    return use.with_said_by({"rotary_dim": keys.said_by(fraction_key)})
