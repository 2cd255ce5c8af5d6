"""Time Series Transformer, Informer and Autoformer: sinusoids over time steps."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.families.marian import sinusoid
from posenc.configs.family import family, two_stacks
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec


@family("time_series_transformer", "informer", "autoformer")
def time_series_transformer(keys: Keys) -> PositionSpec:
    """The encoder counts from 0; the decoder continues at context_length, in Autoformer label_length earlier."""
    waves = sinusoid(keys, layout="sin_cos")
    prediction = keys.whole("prediction_length", None)
    context = keys.whole("context_length", prediction)
    length = context + prediction if context and prediction else None
    keys.note(
        "context_length",
        say(
            "the tables have {length} rows and are stored: the code reads the checkpoint's values",
            length=length or "context_length + prediction_length",
        ),
    )
    encoder, decoder = two_stacks(keys, waves, waves, length=None).parts
    kind = _attention(keys)
    start, label = "context_length", keys.whole("label_length", 10) if keys.family == "autoformer" else 0
    if label:
        start = "context_length - label_length"
    first = f"{context - label} = {start}" if context else start
    counted = say("from {first} on, one more for each step of the decoder's input", first=first)
    specs = (
        replace(
            encoder,
            layers=_of_kind(encoder.layers, kind),
            trained_length=length,
            coordinates=say("0, 1, 2, … over time steps"),
        ),
        replace(decoder, layers=_of_kind(decoder.layers, kind), trained_length=length, coordinates=counted),
    )
    return PositionSpec(keys.family, parts=specs, d_model=encoder.d_model)


def _attention(keys: Keys) -> str:
    if keys.family == "autoformer":
        keys.note(
            "model_type",
            say(
                "attention by delay: values are shifted by the delays of largest autocorrelation, which depends on "
                "order too"
            ),
        )
        return "autocorrelation"
    if keys.family == "informer" and keys.text("attention_type", "prob") == "prob":
        keys.note(
            "attention_type",
            say(
                "'prob': only some queries attend, chosen by random samples of keys; the others get the mean of the values"
            ),
        )
        return "prob_sparse"
    return "full_attention"


def _of_kind(layers: tuple[Layer, ...], kind: str) -> tuple[Layer, ...]:
    return tuple(replace(layer, kind=kind) for layer in layers)
