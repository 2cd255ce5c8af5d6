"""What an encoding and a backend tell each other: scores to finish, and vectors of the distance (Shaw, Transformer-XL).

    logits_ij = (content_i·k_j + position_i·keys_[j-i]) · scale,     out_i = Σ_j softmax_ij · (v_j + values_[j-i])

An encoding says in `structure()` what a backend may use in place of asking it pair by pair: one of the classes below.

Legend: b batch, h query heads, g key heads, i query, j key, d channel, c channel of the vectors, R rows: consecutive j - i.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc.support.tensors import one_per_head, working_dtype

if TYPE_CHECKING:
    from posenc.attention.options import Options
    from posenc.encoding import DistanceBias, PositionalEncoding, Side
    from posenc.frequencies.layouts import Planes
    from posenc.positions import Positions
    from posenc.support.shapes import Bool, Float, Int, Num


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
    """What makes the vectors of a call."""

    def __call__(
        self, q: Float[Tensor, "b h i d"], at_q: Positions, at_k: Positions, first: Int[Tensor, "#b"], n: int
    ) -> Relative:
        """The vectors for key - query = first, first + 1, …, first + n - 1, all that the call needs, q in working dtype."""


class Region(NamedTuple):
    """Pairs whose query and key are turned to other positions than their own.

    query, key   the positions to turn to; None: their own
    pairs        which pairs these are
    """

    query: Num[Tensor, "b i"] | None
    key: Num[Tensor, "b j"] | None
    pairs: Bool[Tensor, "b i j"]


QUERY_AND_KEY: frozenset[Side] = frozenset({"query", "key"})
EVERY_SIDE: frozenset[Side] = frozenset({"query", "key", "value", "output"})

# Named tuples, which are made in half the time of a frozen dataclass: a call makes several.


class Rotation(NamedTuple):
    """`rotate` turns channels in planes.

    turned   the planes in which it turns by position, as its result has them; () none; None: others, or not known
    mixed    the planes in which it changes what comes in, by position or not; () if by factors of a whole head
    sides    what it turns
    both     turns q and k of (q, k, at_q, at_k) by one call of the kernel and one node of the graph, which takes less time
             for few tokens; None: `rotate` for each
    """

    turned: tuple[Planes, ...] | None
    mixed: tuple[Planes, ...] | None
    sides: frozenset[Side] = QUERY_AND_KEY
    both: Callable[[Tensor, Tensor, Positions, Positions], tuple[Tensor, Tensor]] | None = None


class Distances(NamedTuple):
    """`bias` is the sum of these biases of the distance alone.

    few   of queries and few consecutive tokens, the bias of every pair, [#b, h, i, j], from the tables that `prepare` left
          with them; None where they carry none
    """

    terms: tuple[DistanceBias, ...]
    few: Callable[[Tensor, Positions], Tensor | None] | None = None


class Vectors(NamedTuple):
    """`bias` and `finish` are made of vectors of the distance, which `make` gives.

    cached   whether a cache of keys holds the tables that `bias` reads; False where they take more room than the keys
    """

    make: RelativeVectors
    cached: bool = True


class Regions(NamedTuple):
    """The products of regions are the logits: `bias` takes q·k back where a pair is turned to other positions.

    find       of the positions of queries and keys, the regions. No pair is in two of them, and a pair in none is not seen.
               `rotate` by the difference to a region's positions turns a rotated query or key there
    rotation   how `rotate` turns
    """

    find: Callable[[Tensor, Tensor], list[Region]]
    rotation: Rotation


class Blocks(NamedTuple):
    """`bias` takes q·k back and puts another product there.

    logits   of q, k and positions of consecutive tokens, each a query and a key: the logits, bias included, of one block of
             queries after the other, in the memory of one block. A block of n queries comes with the j keys up to its last
             query, and has -inf where a key comes after the query. None: only the bias says them
    beyond   the tokens of a row beyond which they serve
    """

    logits: Callable[[Tensor, Tensor, Positions], Iterator[Tensor]] | None
    beyond: int = 0


Structure = Rotation | Distances | Vectors | Regions | Blocks


# What a backend asks about an encoding.


def added_to_output(
    addend: Callable[[Any, Tensor, Positions, Positions, Tensor], Tensor],
) -> Callable[[Any, Scores], Tensor]:
    """A `finish` that adds to the default one. Backends compute the default as if there were none, and `attend` adds.

    addend  of the encoding, v, at_q, at_k and seen, as `Scores` has them: what is added to the output, [b, h, i, d]
    """

    @functools.wraps(addend)
    def finish(self: PositionalEncoding, scores: Scores) -> Tensor:
        out = scores.mix(scores.weights(scores.logits))
        return out + addend(self, scores.v, scores.at_q, scores.at_k, scores.seen)

    finish.addend = addend  # type: ignore[attr-defined]
    return finish


def addend_of(encoding: PositionalEncoding) -> Callable[..., Tensor] | None:
    """What the encoding adds to the default finish, a function of v, at_q, at_k and seen; None for any other finish."""
    if "finish" not in encoding.seams:
        return None
    finish: Any = encoding.finish
    addend = getattr(finish, "addend", None)
    return None if addend is None else functools.partial(addend, finish.__self__)


def why_not_fused(encoding: PositionalEncoding) -> str | None:
    """Why a kernel that does not expose logits and probabilities can never serve the encoding, or None."""
    if "finish" in encoding.seams and addend_of(encoding) is None:
        return "its finish reads the logits or the attention probabilities, which the fused kernel does not expose"
    return None


def distance_terms(encoding: PositionalEncoding, structure: Structure | None) -> tuple[DistanceBias, ...] | None:
    """The biases of the distance alone whose sum is the bias; empty without a bias, None for any other bias.

    structure   that of the encoding
    """
    if type(structure) is Distances:
        return structure.terms
    return None if "bias" in encoding.seams else ()


def bias_at(terms: tuple[DistanceBias, ...], delta: Num[Tensor, "n"], q: Tensor) -> Float[Tensor, "h n"]:
    """The sum of these biases, in the dtype that logits of q are computed in."""
    total: Tensor = functools.reduce(operator.add, [one_per_head(term.at_distance(delta), q) for term in terms])
    return total.to(working_dtype(q.dtype))


def declared_rotation(structure: Structure | None) -> Rotation | None:
    """The rotation that a structure declares; None where it declares none."""
    if type(structure) is Regions:
        return structure.rotation
    return structure if type(structure) is Rotation else None


def rotation_of(encoding: PositionalEncoding) -> Rotation:
    """The declared rotation; without one, an unknown rotation for an encoding that rotates, and an empty one for others."""
    declared = declared_rotation(encoding.structure())
    if declared is not None:
        return declared
    return Rotation(None, None) if "rotate" in encoding.seams else Rotation((), ())


def rotated(
    encoding: PositionalEncoding, q: Float[Tensor, "b h i d"], k: Float[Tensor, "b g j d"], at_q: Positions, at_k: Positions
) -> tuple[Float[Tensor, "b h i d"], Float[Tensor, "b g j d"]]:
    """Queries and keys turned: both at once where the encoding's structure says how, else `rotate` for each."""
    rotation = declared_rotation(encoding.structure())
    if rotation is not None and rotation.both is not None:
        return rotation.both(q, k, at_q, at_k)
    return encoding.rotate(q, at_q, "query"), encoding.rotate(k, at_k, "key")
