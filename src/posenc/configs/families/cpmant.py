"""CPM-Ant: T5's bias within a segment, and one learned number for each pair of different segments."""

from __future__ import annotations

from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("cpmant")
def cpmant(keys: Keys) -> PositionSpec:
    """A prompt of prompt_length tokens precedes the text. Prompt and padding are segment 0, text is segment 2."""
    named = {
        "n_heads": "num_attention_heads",
        "n_segments": "segment_types",
        "n_buckets": "position_bias_num_buckets",
        "max_distance": "position_bias_max_distance",
    }
    arguments = tuple((name, keys.whole(key, *([32] if key == "segment_types" else []))) for name, key in named.items())
    said_by = tuple((name, keys.said_by(key)) for name, key in named.items())
    use = Use(
        "encodings.of_families.t5_segments.SegmentedT5",
        arguments,
        said_by,
        (Weight("table", "position_bias.relative_attention_bias"),),
    )
    prompt = keys.whole("prompt_length", 32)
    keys.note(
        "prompt_length",
        say("position {prompt} is the first token of the text; token id 0 is always padding", prompt=prompt),
    )
    keys.warning(
        "num_hidden_layers",
        say("attention within one call is bidirectional; with a cache, new tokens are hidden from the cached ones"),
    )
    layers = [Layer((use,), causal=False)] * keys.whole("num_hidden_layers")
    return stack_of(
        keys,
        layers,
        d_head=keys.whole("dim_head", 128),
        length=None,
        coordinates=say("(position including the prompt, segment): segment 0 for prompt and padding, 2 for text"),
    )
