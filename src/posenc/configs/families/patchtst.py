"""PatchTST and PatchTSMixer: a table over patches of a time series."""

from __future__ import annotations

from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


def _patches(keys: Keys) -> int:
    """The number of patches of a series of context_length steps."""
    size, stride = keys.whole("patch_length"), keys.whole("patch_stride")
    return int((max(keys.whole("context_length"), size) - size) // stride) + 1


def _rows(keys: Keys, rows: int, weight: str) -> Use:
    kind = keys.text("positional_encoding_type", "sincos", among=("sincos", "random"))
    how = say("fixed sinusoids, centred and scaled") if kind == "sincos" else say("trained random numbers")
    keys.note("positional_encoding_type", say("a stored table of {rows} rows: {how}", rows=rows, how=how))
    return Use(
        "encodings.learned.Learned",
        (("d_model", keys.whole("d_model")), ("max_positions", rows)),
        (("d_model", keys.said_by("d_model")), ("max_positions", "context_length, patch_length, patch_stride")),
        (Weight("table", weight),),
    )


@family("patchtst")
def patchtst(keys: Keys) -> PositionSpec:
    """One table for all channels of the series; attention across channels has no positions."""
    patches, classed = _patches(keys), bool(keys.flag("use_cls_token", False))
    use = _rows(keys, patches + classed, "positional_encoder.position_enc")
    layers = []
    for _ in range(keys.whole("num_hidden_layers")):
        layers.append(Layer(causal=False))
        if keys.flag("channel_attention", False):
            layers.append(Layer((), "channel_attention", causal=False))
    where = say("the class token at 0, then 1, 2, … over patches") if classed else say("0, 1, 2, … over patches")
    return stack_of(
        keys,
        layers,
        embedding=[use],
        width="d_model",
        length=patches,
        coordinates=say("{where}, the same in every channel of the series", where=where),
    )


@family("patchtsmixer")
def patchtsmixer(keys: Keys) -> PositionSpec:
    """Patches are mixed by weights of their own; a table and attention are optional."""
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
        coordinates=say("0, 1, 2, … over patches, each with its own mixing weights"),
    )
