"""Transformers over time series: sinusoids over time steps, or a table over patches of steps."""

from __future__ import annotations

from dataclasses import replace

from posenc.dialects.families.bart import two_stacks
from posenc.dialects.families.sinusoids import sinusoid
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight


@family("time_series_transformer", "informer", "autoformer")
def _(keys: Keys) -> PositionSpec:
    """The encoder counts from 0; the decoder goes on at context_length, Autoformer's label_length before it."""
    waves = sinusoid(keys, layout="sin_cos")
    prediction = keys.whole("prediction_length", None)
    context = keys.whole("context_length", prediction)
    length = context + prediction if context and prediction else None
    keys.find(
        "note",
        "context_length",
        f"the tables have {length or 'context_length + prediction_length'} rows and are "
        "stored: what a checkpoint holds is what the code reads",
    )
    encoder, decoder = two_stacks(keys, waves, waves, length=None).parts
    kind = _attention(keys)
    start, label = "context_length", keys.whole("label_length", 10) if keys.family == "autoformer" else 0
    if label:
        start = "context_length - label_length"
    first = f"{context - label} = {start}" if context else start
    counted = f"from {first} on, one more for each step of the decoder's input"
    made = (
        replace(
            encoder, layers=_of_kind(encoder.layers, kind), trained_length=length, coordinates="0, 1, 2, … over time steps"
        ),
        replace(decoder, layers=_of_kind(decoder.layers, kind), trained_length=length, coordinates=counted),
    )
    return PositionSpec(keys.family, parts=made, d_model=encoder.d_model)


def _attention(keys: Keys) -> str:
    if keys.family == "autoformer":
        keys.find(
            "note",
            "model_type",
            "attention is by delay: values are rolled by the delays of largest "
            "autocorrelation, so that order counts in it as well",
        )
        return "autocorrelation"
    if keys.family == "informer" and keys.text("attention_type", "prob") == "prob":
        keys.find(
            "note",
            "attention_type",
            "'prob': only some queries attend, found by random samples of keys; others get means of the values",
        )
        return "prob_sparse"
    return "full_attention"


def _of_kind(layers: tuple[Layer, ...], kind: str) -> tuple[Layer, ...]:
    return tuple(replace(layer, kind=kind) for layer in layers)


def _patches(keys: Keys) -> int:
    """So many patches of a series that is as long as context_length."""
    size, stride = keys.whole("patch_length"), keys.whole("patch_stride")
    return int((max(keys.whole("context_length"), size) - size) // stride) + 1


def _rows(keys: Keys, rows: int, weight: str) -> Use:
    kind = keys.text("positional_encoding_type", "sincos", among=("sincos", "random"))
    how = "sinusoids, centred and scaled, that are not trained" if kind == "sincos" else "random numbers that are trained"
    keys.find("note", "positional_encoding_type", f"a stored table of {rows} rows, made of {how}")
    return Use(
        "encodings.learned.Learned",
        (("d_model", keys.whole("d_model")), ("max_positions", rows)),
        (("d_model", keys.said_by("d_model")), ("max_positions", "context_length, patch_length, patch_stride")),
        (Weight("table", weight),),
    )


@family("patchtst")
def _(keys: Keys) -> PositionSpec:
    """One table for all channels of the series; channels, where they attend to each other, have no order."""
    patches, classed = _patches(keys), bool(keys.flag("use_cls_token", False))
    use = _rows(keys, patches + classed, "positional_encoder.position_enc")
    layers = []
    for _ in range(keys.whole("num_hidden_layers")):
        layers.append(Layer(causal=False))
        if keys.flag("channel_attention", False):
            layers.append(Layer((), "channel_attention", causal=False))
    where = "the class token at 0, then 1, 2, … over patches" if classed else "0, 1, 2, … over patches"
    return stack_of(
        keys,
        layers,
        embedding=[use],
        width="d_model",
        length=patches,
        coordinates=f"{where}, in every channel of the series alike",
    )


@family("patchtsmixer")
def _(keys: Keys) -> PositionSpec:
    """Patches are mixed by weights of their own, which is order enough; a table and attention only where asked for."""
    patches, attends = _patches(keys), bool(keys.flag("self_attn", False))
    kind = "full_attention" if attends else "mixer"
    added = []
    if keys.flag("use_positional_encoding", False):
        added = [_rows(keys, patches, "positional_encoder.position_enc")]
    layers = [Layer((), kind, causal=False)] * keys.whole("num_layers")
    return stack_of(
        keys,
        layers,
        embedding=added,
        width="d_model",
        heads="self_attn_heads",
        length=patches,
        coordinates="0, 1, 2, … over patches, each with weights of its own",
    )
