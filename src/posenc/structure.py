"""What an encoding and a backend tell each other: scores to finish, and vectors of the distance (Shaw, Transformer-XL).

    logits_ij = (content_i·k_j + position_i·keys_[j-i]) · scale,     out_i = Σ_j softmax_ij · (v_j + values_[j-i])

Such an encoding declares its vectors for fast paths (`PositionalEncoding.relative_vectors`); its `bias` and `finish` say
the same pair by pair.

Legend: b batch, h query heads, g key heads, i query, j key, d channel, c channel of the vectors, R rows: consecutive j - i.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.attention.options import Options
    from posenc.support.shapes import Bool, Float, Int


@dataclass(frozen=True, eq=False)
class Scores:
    """What `PositionalEncoding.finish` makes the output of; all in the dtype that attention computes in.

    logits      cap(q·k·scale) + bias, of all pairs
    q, v        rotated queries and values. A key head of v serves a row of query heads; there may be values of keys that
                come after those of the logits, which no query sees
    seen        which query sees which key, documents, masks and a bias of -inf included
    options     those of the call, None where it has none
    none_blind  whether every query is known to see a key
    kept        what `weights` was given under "logits", and `mix` under "weights"
    """

    logits: Float[Tensor, "b h i j"]
    q: Float[Tensor, "b h i d"]
    v: Float[Tensor, "b g j dv"]
    at_q: Positions
    at_k: Positions
    seen: Bool[Tensor, "b #h i j"]
    options: Options | None = None
    none_blind: bool = False
    kept: dict[str, Tensor] = field(default_factory=dict)

    def masked(self, logits: Float[Tensor, "b h i j"]) -> Float[Tensor, "b h i j"]:
        """The logits plus the call's mask, -inf where a query does not see a key."""
        mask = None if self.options is None else self.options.mask
        if mask is not None and mask.dtype != torch.bool:
            logits = logits + mask.to(logits.dtype)
        return logits.masked_fill(~self.seen, float("-inf"))

    def weights(self, logits: Float[Tensor, "b h i j"]) -> Float[Tensor, "b h i j"]:
        """The softmax of the logits over the keys that are seen, after the call's sinks and dropout; zeros for a query that
        sees none. A sink is one more logit per head whose share goes to no value."""
        self.kept["logits"] = logits
        logits = self.masked(logits)
        sinks = None if self.options is None else self.options.sinks
        if sinks is not None:
            sink = sinks.to(logits.dtype)[None, :, None, None].expand(*logits.shape[:3], 1)
            weights = torch.cat([logits, sink], dim=-1).softmax(dim=-1)[..., :-1]
        else:
            weights = logits.softmax(dim=-1)
        return self.dropped(weights if self.none_blind else weights.masked_fill(~self.seen, 0.0))

    def dropped(self, weights: Float[Tensor, "b h i j"]) -> Float[Tensor, "b h i j"]:
        """The weights after the call's dropout."""
        return F.dropout(weights, self.options.dropout) if self.options is not None and self.options.dropout else weights

    def mix(self, weights: Float[Tensor, "b h i j"]) -> Float[Tensor, "b h i dv"]:
        """The weights times the values."""
        self.kept["weights"] = weights
        unseen = self.v.shape[2] - weights.shape[3]
        return shared(F.pad(weights, (0, unseen)) if unseen else weights, self.v.to(weights.dtype))


def shared(x: Float[Tensor, "b h i c"], of_keys: Float[Tensor, "b g c n"]) -> Float[Tensor, "b h i n"]:
    """The product of every query head with its key head; the queries that share one stand below each other."""
    groups, heads = of_keys.shape[1], x.shape[1]
    if groups == heads:
        return x @ of_keys
    return torch.einsum("bgric,bgcn->bgrin", x.unflatten(1, (groups, -1)), of_keys).flatten(1, 2)


class Relative(NamedTuple):
    """What the formula above is made of; tables of one row of the batch or one head serve all.

    Of one query there may be several vectors `position`, one for each run of R distances: the keys of the first run, of one
    head, then serve all runs. Only in eager code without a gradient.
    """

    content: Float[Tensor, "b h i d"]
    position: Float[Tensor, "b h i c"]
    keys: Float[Tensor, "#b #h R c"]
    values: Float[Tensor, "#b #h R dv"] | None
    first: Int[Tensor, "#b"]  # j - i of the first row; less counts as this, and more than the last row has as the last


class RelativeVectors(Protocol):
    """What `PositionalEncoding.relative_vectors` returns: a function."""

    def __call__(
        self, q: Float[Tensor, "b h i d"], at_q: Positions, at_k: Positions, first: Int[Tensor, "#b"], n: int
    ) -> Relative:
        """The vectors for key - query = first, first + 1, …, first + n - 1, all that the call needs, q in working dtype."""
