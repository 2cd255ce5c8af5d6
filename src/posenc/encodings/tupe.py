"""Untied positions: words are compared with words and positions with positions, each with their own projections.

    logits = (q_i·k_j + p_i U_Q · p_j U_K)/√(2d) + b[bucket(i - j)]
    [CLS]    the position terms of its row are one learned number, those of its column another: θ₁, θ₂ for each head

Ke et al. 2020, "Rethinking Positional Encoding in Language Pre-training" (TUPE), section 3: TUPE-A without b, TUPE-R with
it. As in the authors' code p goes through a layer norm, U_Q and U_K have offsets, and θ are products of two more rows of
the table. The code adds a learned number of its own to θ where TUPE-R has b; the paper's reset covers b, as here.
Legend: b batch, h query heads, i query, j key, d d_head, m d_model, p rows of the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn, PositionalEncoding, scale_of, usual_scale
from posenc.encodings.t5 import T5
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_range, check_width, full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Float

NORM_EPS = 1e-5


class TUPE(PositionalEncoding):
    """(p_i U_Q · p_j U_K)/√(2d) + b[bucket], shared by all layers; q·k is divided by √(2d) too.

    d_model, n_heads  channels of the table and query heads
    max_positions     positions 0 … max_positions-1 can be asked for
    d_head            channels of a head, d_model / n_heads if left out
    n_buckets         buckets of b, as T5's in both directions (TUPE-R); None: no b (TUPE-A)
    max_distance      from here on, everything falls into the last bucket
    class_token       position 0 is [CLS], whose terms are θ

    Parameters: table [max_positions + 2, d_model], whose first two rows make θ₁ ([CLS] as query) and θ₂ ([CLS] as key);
    norm and norm_offset [d_model]; query and key [n_heads, d_head, d_model], query_offset and key_offset [n_heads,
    d_head]; relative.table. Time O(queries·keys·d) once more for the products of positions, memory O(queries·keys).
    Raises ValueError for a position outside the table and for sizes that do not fit, TypeError for real positions.
    """

    traits = frozenset({"local", "norm_preserving"})

    @checked
    def __init__(
        self,
        d_model: int,
        n_heads: int,
        max_positions: int,
        *,
        d_head: int | None = None,
        n_buckets: int | None = 32,
        max_distance: int = 128,
        class_token: bool = True,
    ) -> None:
        checks.whole(d_model=d_model, n_heads=n_heads, max_positions=max_positions, max_distance=max_distance)
        if d_head is None and d_model % n_heads:
            raise ValueError(f"d_model: expected a multiple of n_heads={n_heads}, got {d_model}; or say d_head")
        d_head = d_model // n_heads if d_head is None else d_head
        checks.whole(d_head=d_head)
        super().__init__(
            d_model=d_model,
            n_heads=n_heads,
            max_positions=max_positions,
            d_head=d_head,
            n_buckets=n_buckets,
            max_distance=max_distance,
            class_token=class_token,
        )
        self.d_head, self.n_heads, self.max_positions, self.class_token = d_head, n_heads, max_positions, class_token
        self.table = nn.Parameter(torch.empty(max_positions + 2, d_model))
        self.norm, self.norm_offset = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.query = nn.Parameter(torch.empty(n_heads, d_head, d_model))
        self.key = nn.Parameter(torch.empty(n_heads, d_head, d_model))
        self.query_offset = nn.Parameter(torch.zeros(n_heads, d_head))
        self.key_offset = nn.Parameter(torch.zeros(n_heads, d_head))
        for parameter in (self.table, self.query, self.key):
            nn.init.normal_(parameter, std=0.02)
        self.relative = None
        if n_buckets is not None:
            self.relative = T5(n_heads, n_buckets=n_buckets, max_distance=max_distance, bidirectional=True)

    @checked
    def largest_position(self, dtype: torch.dtype = torch.float32) -> int | None:
        return self.max_positions - 1

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        check_width(self, "n_heads", q.shape[1], self.n_heads, "q")
        for at in (at_q, at_k):
            check_coords(self, at, integers=True)
            check_range(self, at, 0, self.max_positions - 1, "the table ends there")
        query, key = at_q.coords, at_k.coords
        with full_precision(q):
            queries, keys = self._projected("query", q.dtype), self._projected("key", q.dtype)  # [h, p, d]
            scale = scale_of(self, self.d_head)
            absolute = queries[:, query + 2].transpose(0, 1) @ keys[:, key + 2].permute(1, 0, 3, 2) * scale  # [b, h, i, j]
            first, second = ((queries[:, row] * keys[:, row]).sum(dim=-1) * scale for row in (0, 1))  # θ of every head
        relative = None if self.relative is None else self.relative.bias(q, k, at_q, at_k)

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            term = absolute[b, h, i, j]
            if relative is not None:
                term = term + relative(b, h, i, j)
            if self.class_token:
                term = torch.where(query[b, i] == 0, first[h], torch.where(key[b, j] == 0, second[h], term))
            return term

        return of_pair

    def _projected(self, name: str, dtype: torch.dtype) -> Float[Tensor, "h p d"]:
        """Every row of the table as queries or keys of every head."""
        rows = F.layer_norm(
            self.table.to(dtype), self.table.shape[-1:], self.norm.to(dtype), self.norm_offset.to(dtype), NORM_EPS
        )
        weight, offset = getattr(self, name).to(dtype), getattr(self, f"{name}_offset").to(dtype)
        heads: Tensor = rows @ weight.transpose(-1, -2) + offset[:, None]
        return heads

    def softmax_scale(self, d_head: int) -> float:
        return usual_scale(2 * d_head if type(d_head) is int else d_head)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> TUPE:
        part = TUPE(**{**self.configuration, "n_heads": stop - start}).to(self.table)
        sources = dict(self.named_parameters())
        for name, target in part.named_parameters():
            if name == "relative.table":
                target.copy_(sources[name][:, start:stop])
            else:
                target.copy_(sources[name][start:stop] if name.startswith(("query", "key")) else sources[name])
        return part
