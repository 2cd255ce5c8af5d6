"""CLAP: RoBERTa's position table for text, Swin's window bias for spectrograms."""

from __future__ import annotations

from posenc.configs.families.roberta import TOKENS, padded_table
from posenc.configs.families.swin import BIAS, WHERE
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import pair
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("clap_text_model")
def clap_text_model(keys: Keys) -> PositionSpec:
    use = padded_table(keys)
    layers = [Layer(causal=False)] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, embedding=[use], length=dict(use.arguments)["max_positions"], coordinates=TOKENS)


@family("clap_audio_model")
def clap_audio_model(keys: Keys) -> PositionSpec:
    """Swin's windows over a square image made of the spectrogram: time slices stacked vertically."""
    size, side, strides = keys.whole("window_size"), keys.whole("spec_size", 256), pair(keys, "patch_stride")
    depths, heads = keys.numbers("depths"), keys.numbers("num_attention_heads")
    layers = []
    for stage, (depth, n_heads) in enumerate(zip(depths, heads, strict=True)):
        least = min(side // stride // 2**stage for stride in strides)
        if least < size:
            keys.error(
                "window_size",
                say(
                    "stage {stage} has {least} patches per side: the code takes a smaller window there and fails, "
                    "since its table has the full window's size",
                    stage=stage,
                    least=least,
                ),
            )
        for block in range(int(depth)):
            use = Use(
                "encodings.bases.window_bias.WindowBias",
                (("n_heads", int(n_heads)), ("window", (size, size))),
                (("n_heads", keys.said_by("num_attention_heads")), ("window", keys.said_by("window_size"))),
                (Weight("table", f"layers.{stage}.blocks.{block}.attention.self.{BIAS}"),),
            )
            layers.append(Layer((use,), "shifted_window" if block % 2 and least > size else "window", causal=False))
    keys.note("window_size", say("shifted windows: pairs from two sides of the image get -100, not minus infinity"))
    return stack_of(keys, layers, width="patch_embeds_hidden_size", heads="no one number", length=None, coordinates=WHERE)
