"""Ms-PoE: every head reads positions divided by a number of its own.

    angle of pair n in head h = p·ω_n / r_h,    r_h = 1.2 + 0.6·rank_h/H

Zhang et al. 2024, "Found in the Middle: How Language Models Use Long Contexts Better via Plug-and-Play Positional
Encoding", and the authors' code. `measured_ratios` finds the ranks: a head whose last query gives more keys over three
times the mean weight is more aware of positions, and its ratio is smaller. The authors' code indexes with the sorted order
of the heads instead of their ranks, which is the inverse permutation, and turns a key by the ratio of its group's first
query head, so that scores of grouped heads depend on absolute positions. Here ranks are ranks, and a group has one ratio.
Legend: b batch, h query heads, g key heads, i query, j key, t tokens, n pairs, d d_head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encodings.bases.by_key_head import RotationByKeyHead
from posenc.frequencies import layouts, rotary
from posenc.frequencies.layouts import Layout
from posenc.kernels.eager import constant
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, floating, full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class MsPoE(RotationByKeyHead):
    """RoPE whose positions are divided by another ratio in every head.

    d_head      channels of a head, even
    n_heads     query heads
    n_kv_heads  key heads, each with a ratio that its query heads share; None: n_heads
    ratios      one for each key head; None: 1.2 + 0.6·g/n_kv_heads; see measured_ratios
    base        of the frequencies
    layout      which channels make a pair; models on the hub have "half"

    No parameters and nothing to train: it takes the place of the RoPE of a trained model. The authors leave the first two
    layers as they are. Time O(t·d), like RoPE; tables for every key head.
    Raises ValueError for ratios that are not one positive number for each key head, and sizes that do not fit.
    """

    per_head = "ratios"

    @checked
    def __init__(
        self,
        d_head: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        ratios: tuple[float, ...] | None = None,
        base: float = 10000.0,
        layout: Layout = "half",
    ) -> None:
        checks.even(d_head=d_head)
        key_heads = n_heads if n_kv_heads is None else n_kv_heads
        checks.whole(n_heads=n_heads, n_kv_heads=key_heads)
        if n_heads % key_heads:
            raise ValueError(f"n_kv_heads: expected a number that divides n_heads={n_heads}, got {key_heads}")
        if ratios is not None and len(ratios) != key_heads:
            raise ValueError(f"ratios: expected one for each of {key_heads} key heads, got {len(ratios)}")
        for ratio in ratios or ():
            checks.positive(ratios=ratio)
        super().__init__(d_head=d_head, n_heads=n_heads, n_kv_heads=n_kv_heads, ratios=ratios, base=base, layout=layout)
        self.d_head, self.n_heads, self.key_heads, self.layout = d_head, n_heads, key_heads, layouts.check(layout)
        self.ratios = _spread(range(key_heads)) if ratios is None else ratios
        self.frequencies = rotary(d_head, base)

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the angle of every pair of every key head, [b, t, g, n] each."""
        check_coords(self, at)
        floating(dtype)
        every = tuple(frequency / ratio for ratio in self.ratios for frequency in self.frequencies)
        with full_precision(at.coords):
            angle = at.coords.double()[..., None] * constant(every, torch.float64, at.coords.device)
            angle = angle.unflatten(-1, (self.key_heads, self.d_head // 2))
            return angle.cos().to(dtype), angle.sin().to(dtype)

    def heads(self, start: int, stop: int) -> MsPoE:
        """The slice's query heads: key heads as before where the slice has whole groups, else one for each query head."""
        shared = self.n_heads // self.key_heads
        step = 1 if start % shared or stop % shared else shared
        ratios = tuple(self.ratios[head // shared] for head in range(start, stop, step))
        sizes = {"n_heads": stop - start, "n_kv_heads": len(ratios)}
        return MsPoE(**{**self.configuration, **sizes, "ratios": ratios})


@checked
@torch.no_grad()
def measured_ratios(
    q: Float[Tensor, "b h i d"], k: Float[Tensor, "b g j d"], *, least: float = 1.2, largest: float = 1.8
) -> tuple[float, ...]:
    """The ratio of every key head: least + (largest - least)·rank/g, rank 0 for the head that is most aware of positions.

    q, k            queries and keys of one layer for one text, before they are rotated; the last query sees all keys
    least, largest  between which the ratios lie; largest itself is not reached

    Awareness is the share of keys whose weight for the last query is over three times the mean, averaged over the texts
    and over the query heads of a group. Equal heads keep their order.
    Raises ValueError where query heads cannot be shared by the key heads, and unless 0 < least <= largest.
    """
    checks.positive(least=least, largest=largest)
    if least > largest:
        raise ValueError(f"least: expected a number up to largest={largest}, got {least}")
    if q.shape[1] % k.shape[1] or q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3]:
        raise ValueError(f"q, k: expected [b, h, i, d] and [b, g, j, d], g dividing h, got {[*q.shape]} and {[*k.shape]}")
    last = q[:, :, -1:].unflatten(1, (k.shape[1], -1)).double()  # [b, g, h/g, 1, d]
    weights = (last @ k[:, :, None].double().mT * q.shape[3] ** -0.5).softmax(-1)
    awareness = (weights > 3 / k.shape[2]).double().mean(dim=(0, 2, 3, 4)).tolist()
    order = sorted(range(len(awareness)), key=lambda head: -awareness[head])
    return _spread([order.index(head) for head in range(len(order))], least, largest)


def _spread(ranks: range | list[int], least: float = 1.2, largest: float = 1.8) -> tuple[float, ...]:
    return tuple(least + (largest - least) * (rank / len(ranks)) for rank in ranks)
