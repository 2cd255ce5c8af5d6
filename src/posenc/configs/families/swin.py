"""Swin, Swin V2, LeViT and DiNAT: a learned bias for each head and 2-D difference within a window."""

from __future__ import annotations

from collections.abc import Sequence

from posenc.configs.families.vit import ON_REQUEST, patch_table
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import WITHIN, side_of
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import clauses


@family("dinat")
def dinat(keys: Keys) -> PositionSpec:
    """Each cell attends to kernel_size × kernel_size cells around it, every dilations-th, with a bias by difference."""
    size, depths = keys.whole("kernel_size"), keys.wholes("depths")
    layers, heads = [], keys.wholes("num_heads", length=len(depths))
    for stage, depth in enumerate(depths):
        arguments = (("n_heads", heads[stage]), ("window", (size, size)))
        said_by = (("n_heads", keys.said_by("num_heads")), ("window", keys.said_by("kernel_size")))
        use = Use(
            "encodings.bases.window_bias.WindowBias",
            arguments,
            said_by,
            note=say("stored [heads, rows, columns] by key - query, the reverse of the order here"),
        )
        layers += [Layer((use,), "neighbourhood", causal=False)] * depth
    keys.warning(
        "kernel_size",
        say(
            "the neighbours and their bias are chosen by the natten library, which is not read here: "
            "with dilations, differences count in steps"
        ),
    )
    where = clauses(WITHIN, say("at borders the neighbourhood keeps its size and shifts inwards"))
    return stack_of(keys, layers, width="embed_dim", heads="no one number", length=None, coordinates=where)


WHERE = say(
    "(row, column) of the patch within its stage; windows are documents of their own, see "
    "posenc.encodings.bases.window_bias.windows; odd layers of a stage shift them by half a window"
)

BIAS = "relative_position_bias_table"


@family("swin", "maskformer-swin", "donut-swin")
def swin(keys: Keys) -> PositionSpec:
    """One table per layer. Swin drops the shift if a window covers the whole stage; MaskFormer's pads instead."""
    depths = whole_list(keys, "depths")
    size, heads, padded = (
        keys.whole("window_size"),
        whole_list(keys, "num_heads", length=len(depths)),
        keys.family == "maskformer-swin",
    )
    height, width, _ = side_of(keys)
    layers = []
    for stage, depth in enumerate(depths):
        sides = [-(-side // 2**stage) for side in (height, width)]
        if min(sides) < size and not padded:
            keys.error(
                "window_size",
                say(
                    "stage {stage} has {rows} × {columns} patches: the code takes a smaller window there and fails, "
                    "since its table has the full window's size",
                    stage=stage,
                    rows=sides[0],
                    columns=sides[1],
                ),
            )
        for block in range(depth):
            inside = "relative_position_bias." if keys.family == "swin" else "self."
            path = f"layers.{stage}.blocks.{block}.attention.{inside}{BIAS}"
            arguments = (("n_heads", heads[stage]), ("window", (size, size)))
            use = Use(
                "encodings.bases.window_bias.WindowBias",
                arguments,
                (("n_heads", keys.said_by("num_heads")), ("window", keys.said_by("window_size"))),
                (Weight("table", path),),
            )
            layers.append(Layer((use,), _kind(block, padded or min(sides) > size), causal=False))
    _about_masks(keys, "-100")
    if not padded:
        keys.warning(
            "image_size",
            say(
                "the first image whose stage is no larger than a window removes the shift from these layers, "
                "for later images as well"
            ),
        )
    return _stages(keys, layers, usable=keys.family == "swin")


@family("swinv2", "swin2sr")
def swinv2(keys: Keys) -> PositionSpec:
    """A network of the logarithm of the difference, with cosine attention. Windows are no larger than the stage."""
    depths = whole_list(keys, "depths")
    size, heads, deep = (
        keys.whole("window_size"),
        whole_list(keys, "num_heads", length=len(depths)),
        keys.family == "swinv2",
    )
    height, width, _ = side_of(keys)
    trained = whole_list(keys, "pretrained_window_sizes", least=0) if deep else ()
    layers = []
    for stage, depth in enumerate(depths):
        sides = [side // 2**stage for side in (height, width)] if deep else [height, width]
        window = min(sides[0], size)
        shifts = sides[0] > window
        for block in range(depth):
            path = f"{'layers' if deep else 'stages'}.{stage}.{'blocks' if deep else 'layers'}.{block}.attention.self."
            arguments = [("n_heads", heads[stage]), ("window", (window, window))]
            if stage < len(trained) and trained[stage]:
                arguments.append(("trained", (trained[stage], trained[stage])))
            said_by = (("n_heads", keys.said_by("num_heads")), ("window", keys.said_by("window_size")))
            weights = (
                Weight("log_scale", path + "logit_scale", reshape=True),
                Weight("inner", path + "continuous_position_bias_mlp.0.weight"),
                Weight("inner_offset", path + "continuous_position_bias_mlp.0.bias"),
                Weight("outer", path + "continuous_position_bias_mlp.2.weight"),
            )
            use = Use("encodings.bases.continuous_window_bias.ContinuousWindowBias", tuple(arguments), said_by, weights)
            layers.append(Layer((use,), _kind(block, shifts), causal=False))
    _about_masks(keys, "-200 (-100 is added twice)")
    return _stages(keys, layers, usable=False)


@family("levit")
def levit(keys: Keys) -> PositionSpec:
    """A learned number for the distance in rows and columns.

    Between stages every second cell attends to all cells before.
    """
    side, depths = keys.whole("image_size") // keys.whole("patch_size"), whole_list(keys, "depths")
    heads, widths, keyed = (
        whole_list(keys, name, length=len(depths)) for name in ("num_attention_heads", "hidden_sizes", "key_dim")
    )
    ratio = keys.numbers("mlp_ratio", (2,) * len(depths), length=len(depths))
    layers = []

    def layer(n_heads: int, weight: str, kind: str) -> Layer:
        arguments = (("n_heads", n_heads), ("window", (side, side)), ("symmetric", True))
        said_by = (
            ("n_heads", keys.said_by("num_attention_heads")),
            ("window", "image_size / patch_size, halved each time"),
            ("symmetric", "constant of the code"),
        )
        use = Use("encodings.bases.window_bias.WindowBias", arguments, said_by, (Weight("table", weight, transpose=True),))
        return Layer((use,), kind, causal=False)

    for stage, depth in enumerate(depths):
        each = 2 if ratio[stage] > 0 else 1
        path = f"stages.{stage}.layers."
        layers += [layer(heads[stage], f"{path}{each * n}.module.attention_biases", "full_attention") for n in range(depth)]
        if stage < len(depths) - 1:
            fewer = widths[stage] // keyed[0]
            layers.append(layer(fewer, f"{path}{each * depth}.attention_biases", "subsampling"))
            side = (side - 1) // 2 + 1
    keys.note("image_size", say("images must have this size"))
    where = clauses(WITHIN, say("queries of subsampling layers are at every second row and column"))
    return stack_of(keys, layers, width="no one number", heads="no one number", length=None, coordinates=where)


def _stages(keys: Keys, layers: Sequence[Layer], *, usable: bool) -> PositionSpec:
    absolute, table = keys.flag("use_absolute_embeddings", False), []
    if absolute and usable:
        keys.note("use_absolute_embeddings", ON_REQUEST)
        table = [patch_table(keys, prefix=0, d_model="embed_dim", mode="bicubic")]
    elif absolute:
        keys.error("use_absolute_embeddings", say("the code makes one row more than there are patches, and fails"))
    return stack_of(keys, layers, embedding=table, width="embed_dim", heads="no one number", length=None, coordinates=WHERE)


def _about_masks(keys: Keys, low: str) -> None:
    keys.note(
        "window_size",
        say(
            "shifted windows: pairs from two sides of the image get {low}, not minus infinity; padding to a "
            "multiple of the window is attended to",
            low=low,
        ),
    )


def _kind(block: int, shifts: bool) -> str:
    return "shifted_window" if block % 2 and shifts else "window"


def whole_list(keys: Keys, name: str, least: int = 1, length: int | None = None) -> list[int]:
    return list(keys.wholes(name, least=least, length=length))
