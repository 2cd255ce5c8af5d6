"""Verification by reading back: copied tensors have the same bits, permuted ones invert to the originals, scores are equal.

    (R q)·(R k) in layout A with the old weights  =  (R q)·(R k) in layout B with the new ones

The inverse alone would not detect a wrong permutation that is undone again, or a forgotten tensor. So the scores use
neither the plan nor `rows`: they read heads from a projection as the models do, by viewing it, and from all tensors of a
layer.
Legend: h heads, t tokens, d channels of a head.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor

from posenc.configs.convert.files import Advance, TensorFile, nbytes, same_bits
from posenc.configs.convert.names import Name, projection
from posenc.configs.convert.plan import WEIGHTS, Change
from posenc.configs.convert.rows import Fused, Heads, permuted, row_permutation
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.support.shapes import Float

AT = (1, 2, 41, 1000, 8191)  # positions of the random tokens; at 0 every layout agrees
TOLERANCE = 1e-9  # of the largest score: fp64 sums in another order
Get = Callable[[str], Tensor]
Side = Literal["q", "k"]


def check_bits(
    old: TensorFile,
    new: TensorFile,
    changes: Mapping[str, Change],
    heads: Heads,
    source: Layout,
    target: Layout,
    advance: Advance,
) -> None:
    """Raises ValueError, naming the tensor, unless `new` is `old` with the rows of `changes` permuted."""
    if list(new.tensors.items()) != list(old.tensors.items()):
        raise ValueError(f"verification: {new.path.name} has other tensors, shapes or dtypes than {old.path.name}")
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
    """The number of layers, the largest score, and the largest difference between old and new relative to its layer's
    score."""

    layers: int
    largest: float
    difference: float


def check_scores(
    old: Get,
    new: Get,
    tensors: Iterable[str],
    changes: Mapping[str, Change],
    heads: Heads,
    fused: Fused | None,
    source: Layout,
    target: Layout,
) -> Scores | None:
    """Scores of random tokens in every layer that has queries and keys; None where no layer has both, and finite ones.

    Raises ValueError, naming the layer, where they differ.
    """
    parents = {change.name.parent for change in changes.values()}
    layers: dict[str, list[Name]] = {}
    for name in filter(None, map(projection, tensors)):
        if name.parent in parents:
            layers.setdefault(name.parent, []).append(name)
    count, highest, worst = 0, 0.0, 0.0
    for layer, names in layers.items():
        before = layer_scores(old, names, heads, fused, source)
        largest = 0.0 if before is None else before.abs().max().item()
        if before is None or not 0 < largest < math.inf:
            continue
        after = layer_scores(new, names, heads, fused, target)
        difference = math.inf if after is None else (before - after).abs().max().item() / largest
        if not difference <= TOLERANCE:
            raise ValueError(
                f"verification: scores of {layer} differ by {difference:.3g} of the largest between {source} "
                f"with the old weights and {target} with the new ones; nothing was kept"
            )
        count, highest, worst = count + 1, max(highest, largest), max(worst, difference)
    return Scores(count, highest, worst) if count else None


def layer_scores(
    get: Get, names: Sequence[Name], heads: Heads, fused: Fused | None, layout: Layout
) -> Float[Tensor, "h t t"] | None:
    """q·k of the first and the last key head with the first and the last query head that read them; None without both."""
    if not all(_weights(names, side) for side in ("q", "k")):
        return None
    latent = any(name.kind == "latent" for name in names)  # one key head, and only of the channels that turn
    key_heads = 1 if latent else heads.key_heads
    share = heads.n_heads // key_heads
    pairs = sorted({(key * share + n, key) for key in (0, key_heads - 1) for n in (0, share - 1)})
    q = _projected(get, names, "q", [head for head, _ in pairs], heads, fused)
    k = _projected(get, names, "k", [key for _, key in pairs], heads, fused)
    if latent:
        q = q[..., heads.offset : heads.offset + heads.turning]
    rope = RoPE(q.shape[-1], layout=layout, rotary_dim=heads.turning, trailing=heads.trailing)
    at = Positions.at(torch.tensor([AT]))
    return (rope.rotate(q[None], at, "query") @ rope.rotate(k[None], at, "key").mT)[0]


def _weights(names: Sequence[Name], side: Side) -> list[Name]:
    """The projection's weight, or, in an adapter alone, the B of its update."""
    candidates = [name for name in names if name.kind in (side, "fused") or (name.kind == "latent" and side == "k")]
    whole = [name for name in candidates if name.leaf in WEIGHTS and "bias" not in name.leaf]
    return whole or [name for name in candidates if name.leaf.startswith("lora_B")]


def _projected(
    get: Get, names: Sequence[Name], side: Side, chosen: Sequence[int], heads: Heads, fused: Fused | None
) -> Float[Tensor, "h t d"]:
    """Random hidden states through the chosen heads: (W x + b)·norm."""

    def rows(name: Name) -> Tensor:
        whole = _viewed(get(name.full), name, side, heads, fused)
        return torch.stack([whole[head].double() for head in chosen])

    weight = _weights(names, side)[0]
    matrix = rows(weight)
    seed = torch.Generator().manual_seed(ord(side))
    out = torch.randn(len(AT), matrix.shape[-1], generator=seed, dtype=torch.float64) @ matrix.mT
    for name in names:
        if name.module == weight.module and name.leaf in WEIGHTS and "bias" in name.leaf:
            out = out + rows(name)[:, None]
    for name in names:
        if name.kind == f"{side}_norm":
            channels = get(name.full).double().reshape(-1, heads.d_head)  # one row for all heads, or one for each
            channels = torch.stack([channels[head % len(channels)] for head in chosen])[:, None]
            out = out + channels if "bias" in name.leaf else out * channels
    return out


def _viewed(tensor: Tensor, name: Name, side: Side, heads: Heads, fused: Fused | None) -> Float[Tensor, "h d …"]:
    """The heads of one side, as the models' code views its output."""
    n, g, d, first = heads.n_heads, heads.key_heads, heads.d_head, side == "q"
    of_heads: Tensor = tensor[None, heads.latent :] if name.kind == "latent" else tensor.unflatten(0, (-1, d))
    if name.kind == "q":
        return of_heads[:: len(of_heads) // n]  # a gate may follow each
    if name.kind != "fused":
        return of_heads
    if fused == "concatenated":
        return of_heads[:n] if first else of_heads[n : n + g]
    if fused == "grouped":
        groups: Tensor = of_heads.unflatten(0, (g, -1))
        return groups[:, :-2].flatten(0, 1) if first else groups[:, -2]
    blocks: Tensor = of_heads.unflatten(0, (4, 3, -1))  # four times q, v, k
    return blocks[:, 0 if first else 2].flatten(0, 1)
