"""Everything read back: copied tensors have the same bits, permuted ones invert to the originals, scores stay.

    (R q)·(R k) in layout A with the old weights  =  (R q)·(R k) in layout B with the new ones

The inverse alone would not notice rows that were permuted by a wrong rule and back; the scores would.
Legend: h heads, t tokens, r rows of one slice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor

from posenc.conversion.files import Advance, TensorFile, nbytes, same_bits
from posenc.conversion.plan import LOW_RANK, WEIGHTS, Change
from posenc.conversion.rows import Heads, permuted, row_permutation
from posenc.encodings.rope import RoPE
from posenc.layouts import Layout
from posenc.positions import Positions

if TYPE_CHECKING:
    from jaxtyping import Float

AT = (1, 2, 41, 1000, 8191)  # positions of the random tokens; at 0 every layout agrees
TOLERANCE = 1e-9  # of the largest score: fp64 sums in another order
BIASES = ("bias", "base_layer.bias")
Get = Callable[[str], Tensor]
Side = Literal["q", "k"]


def check_bits(
    old: TensorFile, new: TensorFile, changes: Mapping[str, Change], heads: Heads, source: Layout, target: Layout,
    advance: Advance,
) -> None:  # fmt: skip
    """Raises ValueError, naming the tensor, where `new` is not `old` with the rows of `changes` permuted."""
    if list(new.tensors.items()) != list(old.tensors.items()):
        raise ValueError(f"verification: {new.path.name} holds other tensors, shapes or dtypes than {old.path.name}")
    for name, about in old.tensors.items():
        before, after, change = old.get(name), new.get(name), changes.get(name)
        if change is not None:
            back = row_permutation(after.shape[change.dim], change.starts, heads.turning, target, source)
            after = permuted(after, back, change.dim)
        if not same_bits(before, after):
            what = "does not invert to the original" if change is not None else "should be as it was"
            raise ValueError(f"verification: {name} {what}; nothing was kept")
        advance(nbytes(about))


class Scores(NamedTuple):
    """One layer's largest score, and the largest difference between old and new."""

    layer: str
    largest: float
    difference: float


def check_scores(
    old: Get, new: Get, changes: Mapping[str, Change], heads: Heads, source: Layout, target: Layout
) -> Scores | None:
    """Scores of random tokens in the first layer that has queries and keys; None where no layer has both, or finite ones.

    Raises ValueError where they differ.
    """
    layer = _first_layer(list(changes.values()))
    if layer is None:
        return None
    before = layer_scores(old, changes, layer, heads, source)
    after = layer_scores(new, changes, layer, heads, target)
    largest = before.abs().max().item()
    if not bool(torch.isfinite(before).all()) or largest == 0:
        return None
    difference = (before - after).abs().max().item()
    if not difference <= TOLERANCE * largest:
        raise ValueError(f"verification: scores of {layer} differ by {difference:.3g} (largest {largest:.3g}) between "
                         f"{source} with the old weights and {target} with the new ones; nothing was kept")  # fmt: skip
    return Scores(layer, largest, difference)


def _first_layer(changes: Sequence[Change]) -> str | None:
    for parent in dict.fromkeys(change.name.parent for change in changes):
        weights = [change for change in changes if change.name.parent == parent and _is_weight(change)]
        if any(change.slices.q for change in weights) and any(change.slices.k for change in weights):
            return parent
    return None


def _is_weight(change: Change) -> bool:
    leaf = change.name.leaf
    return not change.name.kind.endswith("norm") and "bias" not in leaf and "magnitude" not in leaf and (
        leaf in WEIGHTS or LOW_RANK.fullmatch(leaf) is not None
    )  # fmt: skip


def layer_scores(
    get: Get, changes: Mapping[str, Change], layer: str, heads: Heads, layout: Layout
) -> Float[Tensor, "h t t"]:
    """q·k of some query heads with their key heads, on the channels that turn, rotated in `layout`, fp64."""
    here = [change for change in changes.values() if change.name.parent == layer]
    weights = [change for change in here if _is_weight(change)]
    key_heads = max(len(change.slices.k) for change in weights)
    share = max(len(change.slices.q) for change in weights) // key_heads
    # The first and the last key head, each with the first and the last query head that reads it.
    pairs = sorted({(key * share + n, key) for key in (0, key_heads - 1) for n in (0, share - 1)})
    rope, at = RoPE(heads.turning, layout=layout), Positions.at(torch.tensor([AT]))
    q = _projected(get, here, "q", [head for head, _ in pairs], heads)
    k = _projected(get, here, "k", [key for _, key in pairs], heads)
    return (rope.rotate(q[None], at, "query") @ rope.rotate(k[None], at, "key").mT)[0]


def _projected(get: Get, here: Sequence[Change], side: Side, chosen: Sequence[int], heads: Heads) -> Float[Tensor, "h t r"]:
    """Random hidden states through the chosen heads' rows: (W x + b)·norm."""
    mine = [change for change in here if getattr(change.slices, side)]
    weight = min(filter(_is_weight, mine), key=lambda change: change.name.leaf not in WEIGHTS)  # the base before its update
    rows = _rows(get, weight, side, chosen, heads)
    seed = torch.Generator().manual_seed(ord(side))
    out = torch.randn(len(AT), rows.shape[-1], generator=seed, dtype=torch.float64) @ rows.mT
    for change in mine:
        if change.name.module == weight.name.module and change.name.leaf in BIASES:
            out = out + _rows(get, change, side, chosen, heads)[:, None]
    for change in mine:
        if change.name.kind.endswith("norm"):
            channels = get(change.name.full).double().reshape(-1, heads.d_head)  # one row for all heads, or one for each
            channels = channels.expand(max(chosen) + 1, -1) if len(channels) == 1 else channels
            channels = channels[list(chosen), None, heads.offset : heads.offset + heads.turning]
            out = out + channels if "bias" in change.name.leaf else out * channels
    return out


def _rows(get: Get, change: Change, side: Side, chosen: Sequence[int], heads: Heads) -> Tensor:
    """The turning rows of the chosen heads, [h, r, …], in fp64."""
    tensor, starts = get(change.name.full), getattr(change.slices, side)
    return torch.stack([tensor[starts[head] : starts[head] + heads.turning] for head in chosen]).double()
