"""Transformers of image, video and audio diffusion, from diffusers' config.json, which names their class: _class_name.

Attention is bidirectional. diffusion_transformers.toml beside this file has a row for each class: which keys give the
heads, the split of a head and the base, and how tokens are numbered. A form here makes the encoding of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import BY_AXIS, Layer, PositionSpec, Rotation, Use, Weight
from posenc.support.data_files import beside

Row = Mapping[str, Any]
_TABLE = beside(__file__, say)
NUMBERING = _TABLE.pop("numbering")


def _whole(row: Row) -> dict[str, Any]:
    """The row, with what it repeats of another."""
    if "like" not in row:
        return dict(row)
    return {**_whole(_TABLE[row["like"]]), **row}


ROWS: dict[str, dict[str, Any]] = {name: _whole(row) for name, row in _TABLE.items()}
"""The rows, by the class's name."""
MODELS = {model: {"_class_name": name} | keys for name, row in ROWS.items() for model, keys in row["models"].items()}
"""Names of published models, and configurations with the keys in which they differ from their class's defaults."""
CODE = "constant of the code"
SHARES: dict[str, Callable[[int], tuple[int, ...]]] = {
    "sixths": lambda d: (d - 4 * (d // 6), 2 * (d // 6), 2 * (d // 6)),
    "eighths": lambda d: (d // 4, d // 8 * 3, d // 8 * 3),
    "thirds": lambda d: (d // 3, d // 3, d // 3),
    "halves": lambda d: (d // 2, d // 2),
    "all": lambda d: (d,),
}


@dataclass(frozen=True)
class Stack:
    """What a form reads: the keys, the row, the heads and where their sizes come from."""

    keys: Keys
    row: Row
    n_heads: int
    d_head: int
    said_by: str

    @property
    def d_model(self) -> int:
        return self.n_heads * self.d_head

    def number(self, name: str, default: float = 1.0) -> tuple[float, str]:
        """A number that the row has, or the key for it; and where it comes from."""
        value = self.row.get(name, default)
        return (self.keys.number(value), self.keys.said_by(value)) if isinstance(value, str) else (value, CODE)

    def channels(self) -> tuple[int, ...]:
        """Of each coordinate."""
        split = self.row.get("split", "all")
        if split in SHARES:
            return SHARES[split](self.d_head)
        if isinstance(self.keys.get(split), int):
            return (self.keys.whole(split),)
        return tuple(self.keys.wholes(split))

    def turning(self, rotation: Rotation, encoding: str = "encodings.rope.RoPE", frequencies: str = "frequencies") -> Use:
        layout = self.row.get("layout", "interleaved")
        arguments = (("d_head", self.d_head), ("layout", layout), (frequencies, rotation))
        return Use(encoding, arguments, (("base", self.base[1]), ("d_head", self.said_by), ("layout", CODE)))

    @property
    def base(self) -> tuple[float, str]:
        return self.number("base", 10000.0)

    def added(self, **arguments: Any) -> Use:
        """Sinusoids of each coordinate in turn, first all sines of a coordinate."""
        told = {"d_model": self.d_model, "layout": "sin_cos", **arguments}
        return Use("encodings.sinusoidal.Sinusoidal", tuple(told.items()), (("d_model", self.said_by),))


@family(*ROWS)
def diffusion_transformer(keys: Keys) -> PositionSpec:
    row = ROWS[keys.family]
    if "parts" not in row:
        return _stack(keys, row)
    parts = tuple(_stack(keys, part).with_part(name) for name, part in row["parts"].items())
    return PositionSpec(keys.family, parts=parts, coordinates=parts[0].coordinates)


def positions_of(spec: PositionSpec) -> str:
    """Python that makes the positions of a part, of `frames`, `height`, `width`, `text` words, `fps`; "" if none."""
    row = ROWS[spec.family]
    row = row["parts"][spec.part] if "parts" in row else row
    added = spec.layers[0].uses and "Sinusoidal" in spec.layers[0].uses[0].name
    return str(row.get("added_at", row.get("at", "")) if added else row.get("at", ""))


def _stack(keys: Keys, row: Row) -> PositionSpec:
    """The layers of one row: forms in ADDED give the uses of the first layers, others that of every layer."""
    for name in row.get("reads", ()):
        keys.get(name, None)
    n_heads, d_head, said_by = _heads(keys, row)
    stack, form = Stack(keys, row, n_heads, d_head, said_by), row.get("form", "axes")
    if form == "cogvideox":
        form, stack = _cogvideox(stack)
    count = sum(keys.whole(name, least=0) for name in row.get("layers", ("num_layers",)))
    layers = [Layer(causal=False)] * count
    for number, use in enumerate(ADDED[form](stack)) if form in ADDED else ():
        layers[number] = Layer((use,), causal=False)
    if form in TURNING:
        layers = [Layer((TURNING[form](stack),), causal=False)] * count
    if "window" in row:
        layers = _windowed(keys, layers, row["window"])
    return PositionSpec(
        keys.family, layers=tuple(layers), coordinates=_where(stack), d_model=stack.d_model, d_head=d_head, n_heads=n_heads
    )


def _heads(keys: Keys, row: Row) -> tuple[int, int, str]:
    """The number of heads, the channels of one, and where these come from."""
    heads, width = row.get("heads", "num_attention_heads"), row.get("width", "attention_head_dim")
    if heads == "of the split":
        d_head = sum(keys.wholes(row["split"]))
        return _shared(keys, row["whole"], d_head, row["split"]), d_head, keys.said_by(row["split"])
    n_heads = keys.whole(heads)
    if "whole" in row:
        return n_heads, _shared(keys, row["whole"], n_heads, heads), f"{keys.said_by(row['whole'])}, {heads}"
    return n_heads, keys.whole(width), keys.said_by(width)


def _shared(keys: Keys, whole: str, among: int, name: str) -> int:
    width = keys.whole(whole)
    if width % among:
        raise ConfigError(f"{keys.spelt(whole)}: {width} is not a multiple of {among}, which {keys.spelt(name)} gives")
    return int(width // among)


def _windowed(keys: Keys, layers: list[Layer], window: str) -> list[Layer]:
    """layer_types, or every second layer from the first, has a window of so many tokens to either side."""
    taking_turns = [("sliding_attention", "full_attention")[number % 2] for number in range(len(layers))]
    kinds, reach = keys.names("layer_types", taking_turns, length=len(layers)), keys.whole(window)
    return [
        replace(layer, kind=kind, window=2 * reach + 1 if kind == "sliding_attention" else None)
        for layer, kind in zip(layers, kinds, strict=True)
    ]


def _where(stack: Stack) -> Any:
    """How tokens are numbered, with the numbers that the file gives."""
    keys, row = stack.keys, stack.row
    words = row["where"]
    if "layered" in row and keys.flag("use_layer3d_rope"):
        words = row["layered"]
    return NUMBERING[words].filled(**FILLS[words](keys)) if words in FILLS else NUMBERING[words]


FILLS: dict[str, Callable[[Keys], dict[str, Any]]] = {
    "cogview4": lambda keys: dict(zip(("rows", "columns"), keys.wholes("rope_axes_dim", length=2), strict=True)),
    "middle_seconds": lambda keys: {"seconds": keys.whole("pos_embed_max_pos"), "pixels": keys.whole("base_height")},
    "audio_seconds": lambda keys: {"seconds": keys.whole("audio_pos_embed_max_pos")},
    "middle_of_table": lambda keys: {"most": keys.whole("pos_embed_max_size")},
    "shares_of_grid": lambda keys: {"rows": _trained_grid(keys)},
    "middle_of_learned": lambda keys: {"most": _side(keys), "half": _side(keys) // 2},
}


def _trained_grid(keys: Keys) -> int:
    return int(keys.whole("sample_size") // keys.whole("patch_size"))


def _side(keys: Keys) -> int:
    """Of a square table with so many rows."""
    return int(keys.whole("pos_embed_max_size") ** 0.5)


# ---------------------------------------------------------------- rotations


def axes(stack: Stack) -> Use:
    """A spectrum for each coordinate, one after the other; the channels that are left over keep still."""
    keys, row, sizes = stack.keys, stack.row, stack.channels()
    if len(sizes) == 1:  # pairs of each of three coordinates (MiniMax-H3)
        sizes = (2 * sizes[0],) * 3
    elif sum(sizes) != stack.d_head or any(size % 2 for size in sizes):
        raise ConfigError(
            f"{keys.where(row.get('width', 'attention_head_dim'))}: {stack.d_head} channels, but the axes have "
            f"{list(sizes)}; expected even numbers that sum to it"
        )
    scaled = {name: keys.numbers(row[name], length=len(sizes)) for name in ("ntk", "linear") if name in row}
    if "learned" in row and keys.text(row["learned"], None):
        keys.note(row["learned"], say("a learned table of each coordinate is added in every layer as well: not read"))
    parameters = (("sizes", sizes), *scaled.items())
    return stack.turning(Rotation(sum(sizes), stack.base[0], BY_AXIS, parameters))


def sequence(stack: Stack) -> Use:
    """One coordinate: `split` channels of a head, or all."""
    return stack.turning(Rotation(sum(stack.channels()), stack.base[0]))


def half_of_the_head(stack: Stack) -> Use:
    return stack.turning(Rotation(2 * (stack.d_head // 4), stack.base[0]))


def sections(stack: Stack) -> Use:
    """One spectrum, whose pairs the coordinates share in turn; the first has what is left over."""
    others = tuple(stack.keys.wholes(stack.row["split"], (24, 20, 20)))[1:]
    maps = (("interleaved_sections", (("sizes", (stack.d_head // 2 - sum(others), *others)),)),)
    return stack.turning(Rotation(stack.d_head, stack.base[0], maps=maps))


def columns_first(stack: Stack) -> Use:
    maps = (("axial", (("order", (1, 0)),)),)
    return stack.turning(Rotation(stack.d_head // 2, stack.base[0], maps=maps))


def alternating(stack: Stack) -> Use:
    maps = (("axial", (("order", (0, 1)), ("alternating", True))),)
    return stack.turning(Rotation(stack.d_head // 2, stack.base[0], maps=maps))


def in_each_part(stack: Stack) -> Use:
    """A third of the head for each coordinate, whose halves are paired; coordinates are divided."""
    by = tuple(stack.keys.number(f"interpolation_scale_{axis}") for axis in "thw")
    parameters = (("sizes", stack.channels()), ("linear", by))
    rotation = Rotation(sum(stack.channels()), stack.base[0], BY_AXIS, parameters)
    return stack.turning(rotation, "configs.quirks.in_each_part", "f")


def halves_of_neighbours(stack: Stack) -> Use:
    """ERNIE-Image: angles of neighbours where halves are paired."""
    stack.keys.warning(
        "_class_name",
        say(
            "the two channels of a pair rotate by different angles, so this is not a rotation: norms change, and scores "
            "depend on more than distance. Reproduced, since the weights were trained with it"
        ),
    )
    parameters = (("sizes", stack.channels()),)
    rotation = Rotation(sum(stack.channels()), stack.base[0], BY_AXIS, parameters)
    return stack.turning(rotation, "configs.quirks.neighbours", "f")


def mixed(stack: Stack) -> Use:
    """Learned frequencies of every head, each a mixture of the three coordinates."""
    return Use(
        "encodings.bases.learned_rope.MixedRoPE",
        (("d_head", stack.d_head), ("n_heads", stack.n_heads), ("axes", 3)),
        (("d_head", stack.said_by), ("n_heads", stack.keys.said_by("num_attention_heads"))),
        weights=(Weight("frequencies", "pos_frequencies"),),
    )


def wide(stack: Stack) -> Use:
    """One spectrum over the whole width, before it is divided into heads, so that every head has other frequencies."""
    keys, row = stack.keys, stack.row
    named = row.get("layout")
    layout = "half" if named and keys.text(named, among=("interleaved", "split")) == "split" else "interleaved"
    coordinates = (("axes", row["axes"]),) if "axes" in row else ()
    rotation = Rotation(stack.d_model, stack.base[0], "frequencies.wide.spectrum", coordinates)
    heads = row.get("heads", "num_attention_heads")
    arguments = (("d_head", stack.d_head), ("n_heads", stack.n_heads), ("layout", layout), ("frequencies", rotation))
    said_by = {"d_head": stack.said_by, "n_heads": keys.said_by(heads), "base": stack.base[1]}
    said_by["layout"] = keys.said_by(named) if named else CODE
    return Use("encodings.of_families.wide_rope.WideRoPE", arguments).with_said_by(said_by)


def longrope(stack: Stack) -> Use:
    """OmniGen: Phi-3's decoder, over text and patches in one sequence."""
    keys = stack.keys
    given = Keys(keys.table("rope_scaling"), "", keys.where("rope_scaling"))
    short, long = (given.numbers(f"{name}_factor", length=stack.d_head // 2) for name in ("short", "long"))
    trained = keys.whole("original_max_position_embeddings")
    parameters = (("short_factor", short), ("long_factor", long), ("trained_length", trained))
    factor = keys.whole("max_position_embeddings") / trained
    return stack.turning(Rotation(stack.d_head, stack.base[0], "longrope", (*parameters, ("factor", factor))))


TURNING: dict[str, Callable[[Stack], Use]] = {
    form.__name__: form
    for form in (axes, sequence, half_of_the_head, sections, columns_first, alternating, in_each_part,
                 halves_of_neighbours, mixed, wide, longrope)
}  # fmt: skip


# ---------------------------------------------------------------- added vectors


def _cogvideox(stack: Stack) -> tuple[str, Stack]:
    """RoPE in the 5B models; in the others sinusoids, fixed or as the beginning of a learned table."""
    keys, row = stack.keys, stack.row
    learned = keys.flag("use_learned_positional_embeddings")
    if keys.flag("use_rotary_positional_embeddings"):
        if learned:
            keys.note("use_learned_positional_embeddings", say("a learned table is added to the patches as well: not read"))
        return "axes", stack
    if learned:
        return "nothing", replace(stack, row={**row, "where": "learned_3d"})
    return "sinusoids_3d", replace(stack, row={**row, "where": "cogvideox"})


def nothing(stack: Stack) -> tuple[Use, ...]:
    return ()


def sinusoids_3d(stack: Stack) -> tuple[Use, ...]:
    steps = {"frame_step": "temporal_interpolation_scale", "patch_step": "spatial_interpolation_scale"}
    arguments = (("d_model", stack.d_model), *((step, stack.keys.number(key)) for step, key in steps.items()))
    said_by = {step: stack.keys.said_by(key) for step, key in steps.items()}
    use = Use("encodings.sinusoidal_3d.Sinusoidal3D", arguments)
    return (use.with_said_by({"d_model": "num_attention_heads, attention_head_dim"} | said_by),)


def middle_of_sinusoids(stack: Stack) -> tuple[Use, ...]:
    """SD3: column, then row, from a table of pos_embed_max_size² of which each image takes the middle."""
    scale = _trained_grid(stack.keys) / stack.keys.whole("pos_embed_max_size")
    use = stack.added(axes=2, reads=(1, 0), scale=scale)
    told = {"d_model": "num_attention_heads, attention_head_dim"}
    return (use.with_said_by(told | {"scale": "sample_size / patch_size / pos_embed_max_size"}),)


def scaled_sinusoids(stack: Stack) -> tuple[Use, ...]:
    """PixArt and DiT: column, then row, over interpolation_scale."""
    return (stack.added(axes=2, reads=(1, 0), scale=1 / _interpolation(stack.keys)),)


def nothing_unless_scaled(stack: Stack) -> tuple[Use, ...]:
    if not stack.keys.number("interpolation_scale", None):
        return ()
    stack.keys.note("interpolation_scale", say("sinusoids of the patches are added"))
    return scaled_sinusoids(stack)


def sinusoids_of_patches(stack: Stack) -> tuple[Use, ...]:
    return (stack.added(axes=2, reads=(1, 0), silent="outside"),)


def latte(stack: Stack) -> tuple[Use, ...]:
    """Column, then row, before the first layer, within frames; the frame before the second, along them."""
    stack.keys.get("video_length", None)
    within = stack.added(axes=3, reads=(2, 1), scale=1 / _interpolation(stack.keys))
    return within, stack.added(axes=3, reads=(0,))


def middle_of_learned(stack: Stack) -> tuple[Use, ...]:
    side = _side(stack.keys)
    return (
        Use(
            "encodings.bases.learned_grid.LearnedGrid",
            (("d_model", stack.d_model), ("height", side), ("width", side)),
            (("d_model", stack.said_by), ("height", "√pos_embed_max_size"), ("width", "√pos_embed_max_size")),
            weights=(Weight("table", "pos_embed.pos_embed", part=(0, 0)),),
        ),
    )


def _interpolation(keys: Keys) -> float:
    """interpolation_scale; where the class has it and the file does not, by how much images are larger than 64 latents."""
    if "interpolation_scale" not in keys.facts["defaults"]:
        return 1.0
    return float(keys.number("interpolation_scale", None) or max(keys.whole("sample_size") // 64, 1))


ADDED: dict[str, Callable[[Stack], tuple[Use, ...]]] = {
    form.__name__: form
    for form in (nothing, sinusoids_3d, middle_of_sinusoids, scaled_sinusoids, nothing_unless_scaled, sinusoids_of_patches,
                 latte, middle_of_learned)
}  # fmt: skip
