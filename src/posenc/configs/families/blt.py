"""Byte Latent Transformer: RoPE, interleaved pairs, in the stacks of bytes, patches and patcher."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.family import family, parts, stack_of
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec

WINDOWED = ("blt_patcher", "blt_local_encoder")  # whose own configuration says a window


@family("blt_local_encoder", "blt_local_decoder", "blt_global_transformer", "blt_patcher")
def blt_local_encoder(keys: Keys) -> PositionSpec:
    d_head = keys.whole("hidden_size") // keys.whole("num_attention_heads")
    use = rope(keys, d_head=d_head, layout="interleaved")
    window = keys.whole("sliding_window", None) if keys.family in WINDOWED else None
    kind = "full_attention" if window is None else "sliding_attention"
    layers = [Layer((use,) if use else (), kind, window)] * keys.whole("num_hidden_layers")
    counted = say("patches", context="bytes") if keys.family == "blt_global_transformer" else say("bytes")
    return stack_of(
        keys, layers, d_head=d_head, coordinates=say("{counted}, from 0; cross-attention has no positions", counted=counted)
    )


@family("blt")
def blt(keys: Keys) -> PositionSpec:
    """The byte encoder and decoder share one mask of local_attention_window_len bytes."""
    names = ["encoder_config", "global_config", "decoder_config"]
    names = ["patcher_config", *names] if keys.flag("patch_in_forward", True) else names
    window = keys.whole("local_attention_window_len", None)
    specs = []
    for part in parts(keys, *names):
        if part.part in ("encoder_config", "decoder_config"):
            kind = "full_attention" if window is None else "sliding_attention"
            part = replace(part, layers=tuple(replace(layer, kind=kind, window=window) for layer in part.layers))
        specs.append(part)
    keys.note(
        "local_attention_window_len", say("one mask for encoder and decoder; it overrides encoder_config's sliding_window")
    )
    return PositionSpec(keys.family, parts=tuple(specs))
