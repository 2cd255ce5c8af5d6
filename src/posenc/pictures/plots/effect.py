"""Pictures of entries that are not encodings of one layer of words in a row: what each does to the scores, or its numbers.

    words, hidden states    query × key, of each head; so where far pairs are changed, whose table is that of RoPE
    an image                the patches around one query, of each head
    layers of a preset      query × key, of each of the first layers
    ways to number tokens   each coordinate against the token's index

Legend: h heads, i query, j key, t tokens.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc.attention.own_finish import own_finish
from posenc.catalogue import lookup
from posenc.catalogue.description import positions_of, written
from posenc.catalogue.entry import Entry
from posenc.combined import one_layer
from posenc.encoding import PositionalEncoding, scale_of
from posenc.pictures.measures.layers import normal, redrawn, seeded
from posenc.pictures.plots.picture import Curves, Line, Matrices, Panel, Picture, number
from posenc.positions import Positions
from posenc.structure import Scores, addend_of, rotated

if TYPE_CHECKING:
    from posenc.support.shapes import Float

N_HEADS, D_HEAD, N_LAYERS = 4, 32, 6
WORDS, SIDE = 32, 9  # tokens in a row; patches of an image down and across
MOST = 5.0  # the colours end here: a weight has changed by e⁵ = 148 times
FLAT = 0.3  # more than this share in the last colour: the scale follows the values instead
ROUNDING = 1e-9  # what is smaller is no change
UNSEEN = -1e30  # what is lower is not seen at all
SEED = 0


def effect(entry: Entry) -> Picture:
    """The picture of any entry. Learned parameters are drawn from N(0, 0.5²), and words at random."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return _numbers(entry) if entry.kind == "positions" else _scores(entry)


@torch.no_grad()
def change(encoding: PositionalEncoding, at: Positions) -> Float[Tensor, "h i j"]:
    """What the encoding of one layer changes in the scores.

    Added vectors: the products of what is added to each two tokens, over d_model. All others: the score of queries and keys
    of ones, minus that without an encoding; what is read comes from random hidden states. Where the softmax is replaced and
    no bias is added: the logarithm of the weights, relative to that of equal weights. Where values reach the output past
    the weights: how much of each value, in the first channel.
    """
    x = normal(at.batch, at.length, N_HEADS * D_HEAD, random=seeded(SEED))
    if "embed" in encoding.seams:
        added: Tensor = encoding.embed(x, at) - x
        alike: Tensor = added @ added.mT / x.shape[-1]
        return alike
    at = encoding.read_hidden(x, at)
    ones = torch.ones(1, N_HEADS, at.length, D_HEAD, dtype=x.dtype)
    q, k = rotated(encoding, ones, ones, at, at)
    k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    scores: Tensor = q @ k.mT * scale_of(encoding, D_HEAD)
    finish = own_finish(encoding, N_HEADS, D_HEAD)
    if finish == "bypass":
        return _past_the_weights(encoding, at)
    if finish == "weights" and "bias" not in encoding.seams:
        before = torch.ones(1, 1, *scores.shape[2:], dtype=torch.bool).tril(-1)
        scores_given = Scores(torch.zeros_like(scores), q, k, at, at, before)
        encoding.finish(scores_given)
        return (scores_given.kept["weights"].clamp(min=1e-12).log() + before.sum(-1, keepdim=True).clamp(min=1).log())[0]
    if (bias := encoding.bias(q, k, at, at)) is not None:
        scores = scores + bias(*torch.meshgrid(*map(torch.arange, scores.shape), indexing="ij"))
    without = D_HEAD * scale_of(encoding, D_HEAD) if finish == "weights" else D_HEAD**0.5
    changed: Tensor = (scores - without)[0]
    return changed


def _past_the_weights(encoding: PositionalEncoding, at: Positions) -> Float[Tensor, "h i j"]:
    """What a value of one at key j adds to the output of query i."""
    n = at.length
    one_each = torch.eye(n).view(n, 1, n, 1).expand(-1, N_HEADS, -1, D_HEAD)
    all_seen = torch.ones(n, 1, n, n, dtype=torch.bool)
    addend = addend_of(encoding)
    assert addend is not None
    each, none = (addend(v, at.expand(n), at.expand(n), all_seen) for v in (one_each, torch.zeros_like(one_each)))
    added: Tensor = (each - none)[..., 0].permute(1, 2, 0)
    return added


def _scores(entry: Entry) -> Matrices:
    takes = lookup.arguments_of(entry.name)
    image = {"height": SIDE, "width": SIDE} if {"height", "width"} <= takes else {}
    small = entry.small if entry.in_a_row else {}  # windows that end within the picture
    encoding = lookup.create(
        entry.name, d_model=N_HEADS * D_HEAD, n_heads=N_HEADS, n_layers=N_LAYERS, max_positions=8 * WORDS, **image, **small
    )
    at, description = _tokens(entry, encoding)
    layers = [encoding] if one_layer(encoding) else [encoding.at_layer(n) for n in range(N_LAYERS)]
    changes = torch.cat([change(redrawn(layer, seeded(SEED)), at) for layer in layers])
    if entry.of_image:
        patches = changes[:, -SIDE * SIDE :, -SIDE * SIDE :]  # tokens before them are no patches
        changes = patches[:, SIDE * SIDE // 2].unflatten(-1, (SIDE, SIDE))
    elif "causal" in entry.needs:
        changes = changes.masked_fill(torch.ones(changes.shape[-2:], dtype=torch.bool).triu(1), torch.nan)
    names = [f"head {n}" for n in range(len(changes))] if one_layer(encoding) else [f"layer {n}" for n in range(N_LAYERS)]
    maps = changes if one_layer(encoding) else changes[::N_HEADS]
    largest = float(maps.nan_to_num().abs().max())
    limit = min(largest, MOST) if largest > ROUNDING else 1.0
    if steps := _steps(maps, limit):
        limit = steps[-1]
    learned = " Untrained: its parameters are drawn from N(0, 0.5²)." if list(encoding.parameters()) else ""
    maps = maps.clamp(min=UNSEEN)  # the colours need no more
    seen = maps[~maps.isnan()]
    ends = (float(end) if abs(end) > ROUNDING else 0.0 for end in (seen.min(), seen.max()))
    low, high = ("−∞" if end <= UNSEEN else number(end) for end in ends)
    return Matrices(
        f"{entry.title}: {description}",
        (_said(encoding), f"From {low} to {high}.{learned}"),
        tuple(Panel(name, values) for name, values in zip(names, maps, strict=True)),
        "row" if entry.of_image else "query",
        "column" if entry.of_image else "key",
        "change of the score" if addend_of(encoding) is None else "share of the value",
        limit,
        steps=steps,
    )


def _steps(maps: Float[Tensor, "h i j"], limit: float) -> tuple[float, ...]:
    """Steps of a scale with as many values in each, where a linear one would draw too much in its last colour."""
    sizes = maps[~maps.isnan() & (maps > UNSEEN)].abs().double()
    if not len(sizes) or float((sizes > 0.96 * limit).double().mean()) <= FLAT:
        return ()
    changed = sizes[sizes > ROUNDING]
    quantiles = changed.quantile(torch.linspace(0.2, 1.0, 5, dtype=torch.float64)).tolist()
    steps = [0.0]
    for quantile in quantiles:
        if quantile > steps[-1] + 1e-3 * limit:  # values that are one in the picture have one step
            steps.append(quantile)
    return (*steps[:-1], quantiles[-1]) if len(steps) > 2 else ()


def _said(encoding: PositionalEncoding) -> str:
    if "embed" in encoding.seams:
        return "How alike the vectors are that two tokens get: the products of what is added to them."
    if addend_of(encoding) is not None:
        return "How much of every patch's value is added to the middle one, in the first channel."
    return "Blue takes attention away, red adds to it, where queries and keys are ones."


def _tokens(entry: Entry, encoding: PositionalEncoding) -> tuple[Positions, str]:
    """Tokens that suit an entry, and what they are."""
    at = positions_of(entry, WORDS, (SIDE, SIDE), encoding)
    return at, "patches around the middle one" if entry.of_image else "what changes"


def _numbers(entry: Entry) -> Curves:
    known: dict[str, Any] = {"batch": 1, "length": WORDS, "lengths": [12, 20], "height": 14, "width": 14, "text": 8}
    known |= {name: written(python, length=WORDS) for name, python in entry.arguments.items()}
    parameters = inspect.signature(entry.maker()).parameters.values()
    needed = [about.name for about in parameters if about.default is inspect.Parameter.empty]
    at: Positions = lookup.positions_by(entry.name, **{name: known[name] for name in needed})
    coords = at.coords[0].double().reshape(at.length, -1)
    known_axes = {1: ["position"], 2: ["row", "column"], 3: ["time", "row", "column"]}
    names = known_axes.get(coords.shape[1], []) if entry.axes == 1 or not entry.domains else []
    lines = [
        Line(names[n] if names else f"coordinate {n}", torch.arange(at.length).double(), coords[:, n], points=True)
        for n in range(coords.shape[1])
    ]
    if int(at.document.max()) > 0:
        lines.append(Line("document", torch.arange(at.length).double(), at.document[0].double()))
    arguments = ", ".join(f"{name}={entry.arguments.get(name, known[name])}" for name in needed if name != "batch")
    return Curves(
        f"{entry.title}: the numbers of the tokens, {arguments}",
        ("One point for each token of a row, in the order of the row.", f"{at.length} tokens; {entry.formula}."),
        tuple(lines),
        "index of the token",
        "number",
        stacked=len(lines) > 1,
    )
