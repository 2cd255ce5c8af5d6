"""LayoutLM and LiLT: tables for the position in the text and for the box (x0, y0, x1, y1) on the page, 0 … 1000.

Each coordinate system (text, boxes) is one part of the spec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from posenc.configs.coordinates import NONE
from posenc.configs.families.bert import BERT_TABLE, learned_table
from posenc.configs.families.roberta import TOKENS, padded_table
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import Words, clauses, joined

SIX = say("left x, upper y, right x, lower y, height, width of the box: Positions.at(with_sizes(bbox))")

SHARES = (0, 1, 0, 1, 2, 3)  # x for left and right, y for upper and lower

TABLES = ("x", "y", "h", "w")


def of_boxes(keys: Keys, prefix: str, *, combine: str, widths: Sequence[int] | None = None) -> Use:
    """One table each for x, y, height and width; x and y are read twice."""
    rows = keys.whole("max_2d_position_embeddings")
    d_model = keys.whole("hidden_size") if widths is None else sum(widths)
    arguments = (
        ("d_model", d_model),
        ("max_positions", (rows,) * 4),
        ("axes", 6),
        ("shares", SHARES),
        ("combine", combine),
        ("widths", None if widths is None else tuple(widths)),
    )
    said_by = (
        ("d_model", keys.said_by("hidden_size")),
        ("max_positions", keys.said_by("max_2d_position_embeddings")),
        *((name, "constant of the code") for name in ("axes", "shares", "combine")),
    )
    weights = (Weight(f"axis_tables.{n}", f"{prefix}{name}_position_embeddings.weight") for n, name in enumerate(TABLES))
    return Use("encodings.bases.learned_axes.LearnedAxes", arguments, said_by, tuple(weights))


def embedded(keys: Keys, part: str, use: Use, coordinates: Words, length: int | None = None) -> PositionSpec:
    """A part that adds to the embeddings and has no attention of its own."""
    layers, d_model = (Layer((use,), "embedding", causal=False),), int(dict(use.arguments)["d_model"])
    return PositionSpec(
        keys.family, part=part, layers=layers, d_model=d_model, trained_length=length, coordinates=coordinates
    )


@family("layoutlm")
def layoutlm(keys: Keys) -> PositionSpec:
    """All tables are summed, so one encoding reads seven coordinates: text position, then the box."""
    rows, boxes = keys.whole("max_position_embeddings"), keys.whole("max_2d_position_embeddings")
    arguments = (
        ("d_model", keys.whole("hidden_size")),
        ("max_positions", (rows, *(boxes,) * 4)),
        ("axes", 7),
        ("shares", (0, *(1 + n for n in SHARES))),
    )
    both = f"{keys.said_by('max_position_embeddings')}, {keys.said_by('max_2d_position_embeddings')}"
    said_by = (
        ("d_model", keys.said_by("hidden_size")),
        ("max_positions", both),
        ("axes", "constant of the code"),
        ("shares", "constant of the code"),
    )
    names = ("embeddings.position", *(f"embeddings.{name}_position" for name in TABLES))
    weights = (Weight(f"axis_tables.{n}", f"{name}_embeddings.weight") for n, name in enumerate(names))
    use = Use("encodings.bases.learned_axes.LearnedAxes", arguments, said_by, tuple(weights))
    _refuse_inverted(keys)
    return stack_of(
        keys,
        [Layer(causal=False)] * keys.whole("num_hidden_layers"),
        embedding=[use],
        coordinates=say("text position, then {six}", six=SIX),
    )


@family("layoutlmv2", "layoutxlm")
def layoutlmv2(keys: Keys) -> PositionSpec:
    """Text and patches share tables; scores get T5's bias of text position, left x and lower y, not divided by √d_head."""
    height, width = (int(size) for size in keys.numbers("image_feature_pool_shape", (7, 7, 256))[:2])
    keys.note(
        "image_feature_pool_shape",
        say(
            "{height}·{width} patches follow the text, counted from 0 again, with boxes of a page divided "
            "into {height} rows and {width} columns",
            height=height,
            width=width,
        ),
    )
    _refuse_inverted(keys)
    parts = (
        embedded(
            keys,
            "positions",
            learned_table(keys, BERT_TABLE),
            say("0, 1, 2, … along the text; again from 0 over the patches"),
            keys.whole("max_position_embeddings"),
        ),
        embedded(keys, "boxes", of_boxes(keys, "embeddings.", combine="concat", widths=_widths(keys)), SIX),
    )
    return replace(_biased(keys, divided=False), parts=parts)


@family("layoutlmv3")
def layoutlmv3(keys: Keys) -> PositionSpec:
    """Text positions count non-padding tokens, as in RoBERTa; patches have their own table; the bias counts all tokens."""
    parts: list[PositionSpec] = []
    if keys.flag("text_embed", True):
        keys.note("max_2d_position_embeddings", say("heights and widths are clipped to 0 … 1023"))
        use = padded_table(keys)
        parts = [
            embedded(keys, "positions", use, TOKENS, int(dict(use.arguments)["max_positions"])),
            embedded(keys, "boxes", of_boxes(keys, "embeddings.", combine="concat", widths=_widths(keys)), SIX),
        ]
    if keys.flag("visual_embed", True):
        side = keys.whole("input_size", 224) // keys.whole("patch_size")
        arguments = (("d_model", keys.whole("hidden_size")), ("max_positions", 1 + side * side))
        said_by = (("d_model", keys.said_by("hidden_size")), ("max_positions", keys.said_by("input_size")))
        use = Use("encodings.learned.Learned", arguments, said_by, (Weight("table", "pos_embed", reshape=True),))
        parts.append(embedded(keys, "patches", use, say("0 for the class token, then patches row by row"), 1 + side * side))
        keys.note(
            "input_size", say("images with other than {side}·{side} patches fail: the table is not interpolated", side=side)
        )
    spatial, relative = keys.flag("has_spatial_attention_bias", True), keys.flag("has_relative_attention_bias", True)
    if spatial and not relative:
        keys.error(
            "has_spatial_attention_bias",
            say("computed but not used: boxes enter the scores only if has_relative_attention_bias is true too"),
        )
    return replace(_biased(keys, divided=True), parts=tuple(parts))


@family("lilt")
def lilt(keys: Keys) -> PositionSpec:
    """RoBERTa's table for text; a narrower stack reads boxes, and the two share their attention scores.

    layout = norm(W·boxes + positions), W from hidden_size to hidden_size / channel_shrink_ratio
    """
    spec_of_text = padded_table(keys)
    d_model, ratio = keys.whole("hidden_size"), keys.whole("channel_shrink_ratio", 4)
    sixth = d_model // 6
    if d_model % 6:
        keys.warning(
            "hidden_size",
            say(
                "{d_model} is not a multiple of 6: boxes have {used} channels, but the layer that reads them "
                "expects {d_model}",
                d_model=d_model,
                used=6 * sixth,
            ),
        )
    boxes = of_boxes(keys, "layout_embeddings.", combine="concat", widths=(sixth,) * 6)
    narrow = padded_table(keys, "layout_embeddings.box_position_embeddings.weight")
    narrow = replace(
        narrow,
        arguments=tuple((name, d_model // ratio if name == "d_model" else value) for name, value in narrow.arguments),
    )
    usable = int(dict(narrow.arguments)["max_positions"])
    keys.note(
        "channel_shrink_ratio",
        say("scores of text and layout are summed before either softmax, each divided by √ of its own head width"),
    )
    spec = stack_of(
        keys,
        [Layer(causal=False)] * keys.whole("num_hidden_layers"),
        embedding=[spec_of_text],
        length=usable,
        coordinates=TOKENS,
    )
    return replace(
        spec,
        parts=(
            embedded(
                keys,
                "boxes",
                boxes,
                clauses(SIX, say("a linear layer maps them to {d_model} channels", d_model=d_model // ratio)),
            ),
            embedded(keys, "layout", narrow, TOKENS, usable),
        ),
    )


def _widths(keys: Keys) -> tuple[int, ...]:
    return (keys.whole("coordinate_size", 128),) * 4 + (keys.whole("shape_size", 128),) * 2


def _refuse_inverted(keys: Keys) -> None:
    keys.note("max_2d_position_embeddings", say("a box whose lower right corner comes first has no row and fails"))


def _biased(keys: Keys, *, divided: bool) -> PositionSpec:
    """Attention layers with the biases that the configuration asks for; all layers share the tables."""
    relative, spatial = keys.flag("has_relative_attention_bias", True), keys.flag("has_spatial_attention_bias", True)
    if divided:
        spatial = spatial and relative
    of_box = ("rel_2d_pos_bins", "max_rel_2d_pos")
    tables = [
        ("rel_pos", relative, "rel_pos_bins", "max_rel_pos"),
        ("rel_pos_x", spatial, *of_box),
        ("rel_pos_y", spatial, *of_box),
    ]
    axes = [(name, keys.whole(bins), keys.whole(limit)) for name, wanted, bins, limit in tables if wanted]
    uses: tuple[Use, ...] = ()
    if axes:
        arguments = (
            ("n_heads", keys.whole("num_attention_heads")),
            ("n_buckets", tuple(bins for _, bins, _ in axes)),
            ("max_distance", tuple(limit for *_, limit in axes)),
            ("bias_over_sqrt", divided),
        )
        said_by = (
            ("n_heads", keys.said_by("num_attention_heads")),
            ("n_buckets", "rel_pos_bins, rel_2d_pos_bins"),
            ("max_distance", "max_rel_pos, max_rel_2d_pos"),
            ("bias_over_sqrt", "constant of the code"),
        )
        weights = (
            Weight(f"axis_tables.{n}", f"encoder.{name}_bias.weight", transpose=True) for n, (name, *_) in enumerate(axes)
        )
        uses = (Use("encodings.t5_axes.T5Axes", arguments, said_by, tuple(weights)),)
    of_text = say("position")
    of_boxes = say("left x, lower y of the box")
    read = [words for words, wanted in ((of_text, relative), (of_boxes, spatial)) if wanted]
    layers = [Layer(uses, causal=False)] * keys.whole("num_hidden_layers")
    where = in_scores(*read)
    where = clauses(where, say("text positions include padding")) if divided else where
    return stack_of(keys, layers, length=None, coordinates=where)


def in_scores(*read: Words) -> Words:
    """What the scores read of each token."""
    terms = joined(read, ", ", "，") if read else NONE
    return say("in the scores: {terms}", terms=terms)
