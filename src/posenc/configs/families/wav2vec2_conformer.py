"""Wav2Vec2-Conformer and Wav2Vec2-BERT: relative vectors, Transformer-XL's terms, or rotated inputs."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.errors import ConfigError
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight

FRAMES = say("0, 1, 2, … over frames, including padding")

KINDS = ("relative", "rotary", "relative_key")


@family("wav2vec2-bert")
def wav2vec2_bert(keys: Keys) -> PositionSpec:
    """Adapter layers, if there are any, have no positions."""
    use = of_kind(keys, "num_attention_heads")
    layers = [layer_of(use)] * keys.whole("num_hidden_layers")
    if keys.flag("add_adapter", False):
        layers += [Layer((), "adapter", causal=False)] * keys.whole("num_adapter_layers")
    return stack_of(keys, layers, length=None, coordinates=FRAMES)


@family("wav2vec2-conformer")
def wav2vec2_conformer(keys: Keys) -> PositionSpec:
    """The convolution of num_conv_pos_embeddings is built and loaded, but never called."""
    use = of_kind(keys, "num_attention_heads")
    for name in ("num_conv_pos_embeddings", "num_conv_pos_embedding_groups"):
        keys.get(name, None)
    keys.warning("num_conv_pos_embeddings", say("its convolution is in the model and the checkpoint, but is never called"))
    return stack_of(keys, [layer_of(use)] * keys.whole("num_hidden_layers"), length=None, coordinates=FRAMES)


def layer_of(use: Use | None) -> Layer:
    return Layer((use,) if use else (), causal=False)


def of_kind(keys: Keys, heads: str, known: tuple[str, ...] = KINDS) -> Use | None:
    """The encoding of position_embeddings_type; None for null and for unknown types."""
    kind, d_model, n_heads = keys.text("position_embeddings_type", None), keys.whole("hidden_size"), keys.whole(heads)
    if d_model % (2 * n_heads):
        raise ConfigError(
            f"{keys.where('hidden_size')}: {d_model} for {keys.spelt(heads)}={n_heads}; expected an "
            "even number of channels per head"
        )
    d_head = d_model // n_heads
    stem = "layers.{layer}.self_attn"
    for name in ("rotary_embedding_base", "max_source_positions"):  # read for some kinds only
        keys.get(name, None)
    if kind == "rotary" and kind in known:
        return _input_rotation(keys, d_model, d_head)
    if kind == "relative" and kind in known:
        keys.note("max_source_positions", say("no limit: the table grows with the input"))
        weights = (
            Weight("u", f"{stem}.pos_bias_u"),
            Weight("v", f"{stem}.pos_bias_v"),
            Weight("w_r", f"{stem}.linear_pos.weight", reshape=True),
        )
        return Use(
            "encodings.transformer_xl.TransformerXL",
            (("d_model", d_model), ("n_heads", n_heads), ("layout", "interleaved")),
            (
                ("d_model", keys.said_by("hidden_size")),
                ("n_heads", keys.said_by(heads)),
                ("layout", "constant of the code"),
                ("base", "constant of the code"),
            ),
            weights,
        )
    if kind == "relative_key" and kind in known:
        left, right = keys.whole("left_max_position_embeddings"), keys.whole("right_max_position_embeddings", least=0)
        arguments = (("d_head", d_head), ("max_distance", left), ("right", right), ("values", False))
        said_by = (
            ("max_distance", keys.said_by("left_max_position_embeddings")),
            ("values", "constant of the code"),
            ("right", keys.said_by("right_max_position_embeddings")),
        )
        return Use("encodings.shaw.Shaw", arguments, said_by, (Weight("keys", f"{stem}.distance_embedding.weight"),))
    if kind is not None:
        keys.warning(
            "position_embeddings_type",
            say("{kind!r} is not one of {known}: attention has no positions", kind=kind, known=", ".join(known)),
        )
    return None


def _input_rotation(keys: Keys, d_model: int, d_head: int) -> Use:
    plain = rope(keys, d_head=d_head, base_key="rotary_embedding_base")
    assert plain is not None
    keys.warning(
        "position_embeddings_type",
        say(
            '"rotary" rotates the input of the query and key projections, not queries and keys: scores '
            "are no function of distance. Reproduced as trained"
        ),
    )
    arguments = (("d_model", d_model), ("d_head", d_head), ("frequencies", plain.rotation), ("layout", "half"))
    return replace(
        plain,
        encoding="configs.input_rotation.InputRotation",
        arguments=arguments,
        note=say("rotates hidden states before they are projected"),
    )
