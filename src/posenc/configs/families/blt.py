"""Byte Latent Transformer: RoPE, interleaved pairs, in the stacks of bytes, patches and patcher."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.family import family, parts, stack_of
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.spec import Layer, PositionSpec
from posenc.support.languages import Words

WINDOWED = ("blt_patcher", "blt_local_encoder")  # whose own configuration says a window


@family("blt_local_encoder", "blt_local_decoder", "blt_global_transformer", "blt_patcher")
def blt_local_encoder(keys: Keys) -> PositionSpec:
    d_head = keys.whole("hidden_size") // keys.whole("num_attention_heads")
    use = rope(keys, d_head=d_head, layout="interleaved")
    window = keys.whole("sliding_window", None) if keys.family in WINDOWED else None
    kind = "full_attention" if window is None else "sliding_attention"
    layers = [Layer((use,) if use else (), kind, window)] * keys.whole("num_hidden_layers")
    counted = Words("patches", "块") if keys.family == "blt_global_transformer" else Words("bytes", "字节")
    return stack_of(
        keys,
        layers,
        d_head=d_head,
        coordinates=Words(
            f"{counted.en}, from 0; cross-attention has no positions", f"{counted.zh}，从 0 起；交叉注意力没有位置"
        ),
    )


@family("blt")
def blt(keys: Keys) -> PositionSpec:
    """The byte encoder and decoder share one mask of local_attention_window_len bytes."""
    names = ["encoder_config", "global_config", "decoder_config"]
    names = ["patcher_config", *names] if keys.flag("patch_in_forward", True) else names
    window = keys.whole("local_attention_window_len", None)
    made = []
    for part in parts(keys, *names):
        if part.part in ("encoder_config", "decoder_config"):
            kind = "full_attention" if window is None else "sliding_attention"
            part = replace(part, layers=tuple(replace(layer, kind=kind, window=window) for layer in part.layers))
        made.append(part)
    keys.note(
        "local_attention_window_len",
        "one mask for encoder and decoder; it overrides encoder_config's sliding_window",
        "编码器和解码器共用一个掩码；它取代 encoder_config 的 sliding_window",
    )
    return PositionSpec(keys.family, parts=tuple(made))
