"""The large family: halves paired, every layer alike or by its kind, rope_theta in the file."""

from __future__ import annotations

from posenc.dialects.family import decoder, family, head_width
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.spec import PositionSpec


@family("llama")
def _(keys: Keys) -> PositionSpec:
    return decoder(keys, rope(keys, d_head=head_width(keys)))


@family("mistral", "mixtral")
def _(keys: Keys) -> PositionSpec:
    """One window for all layers, where there is one."""
    kind = "sliding_attention" if keys.whole("sliding_window", None) else "full_attention"
    kinds = [kind] * keys.whole("num_hidden_layers")
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds)


@family("gemma3_text")
def _(keys: Keys) -> PositionSpec:
    """Sliding and full layers turn at bases of their own; every _sliding_window_pattern-th layer is full."""
    count = keys.whole("num_hidden_layers")
    every = keys.whole("_sliding_window_pattern")
    said = keys.names("layer_types", None, length=count)
    kinds = said or tuple("full_attention" if (n + 1) % every == 0 else "sliding_attention" for n in range(count))
    labels = ("sliding_attention", "full_attention")
    uses = {
        "full_attention": rope(keys, d_head=head_width(keys), label="full_attention", labels=labels),
        "sliding_attention": rope(keys, d_head=head_width(keys), label="sliding_attention", labels=labels,
                                  base_key="rope_local_base_freq"),
    }  # fmt: skip
    return decoder(keys, None, kinds=kinds, by_kind=uses)
