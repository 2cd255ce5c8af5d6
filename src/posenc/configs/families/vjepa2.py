"""V-JEPA 2: frame, row and column, by a map that is not a rotation."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Rotation, Use

WHERE = say("(frame, row, column) of the tubelet, from 0, frame by frame, row by row")


@family("vjepa2")
def vjepa2(keys: Keys) -> PositionSpec:
    """Interleaved pairs with angles in half order, a third of the head for each axis; encoder and predictor."""
    side = keys.whole("crop_size", 256) // keys.whole("patch_size")
    keys.warning(
        "crop_size",
        say(
            "rows and columns are counted with {side} per row, crop_size / patch_size, whatever the size of the clip",
            side=side,
        ),
    )
    keys.warning(
        "model_type",
        say(
            "the two channels of a pair rotate by different angles, so this is not a rotation: norms "
            "change, and scores depend on more than distance. Reproduced, since the weights were trained "
            "with it"
        ),
    )
    encoder = _stack(keys, "encoder", "num_hidden_layers", "hidden_size", "num_attention_heads")
    predictor = _stack(keys, "predictor", "pred_num_hidden_layers", "pred_hidden_size", "pred_num_attention_heads")
    return PositionSpec(keys.family, parts=(encoder, predictor), coordinates=WHERE)


def _stack(keys: Keys, part: str, layers: str, width: str, heads: str) -> PositionSpec:
    d_model, n_heads = keys.whole(width), keys.whole(heads)
    if d_model % n_heads:
        raise ConfigError(f"{keys.where(width)}: {d_model} is not a multiple of {heads}={n_heads}")
    d_head = d_model // n_heads
    rotation = Rotation(2 * (d_head // 3 // 2), 10000.0, maps=(("axial", (("order", (0, 1, 2)),)),))
    said_by = (("d_head", f"{keys.said_by(width)} / {keys.said_by(heads)}"), ("base", "constant of the code"))
    use = Use("configs.quirks.tiled", (("d_head", d_head), ("f", rotation), ("layout", "interleaved")), said_by)
    stack = [Layer((use,), causal=False)] * keys.whole(layers)
    return stack_of(keys, stack, width=width, heads=heads, length=None, part=part, coordinates=WHERE)
