"""The contract: where position enters attention. Read this first.

Position can enter at four seams. An encoding overrides the seams it uses; the base class overrides none and *is* NoPE.

    x ── embed ──► q, k, v ── rotate ──► logits = q·k·scale + bias ── finish ──► softmax(logits)·v

What the seams share (checks, tables, dtypes) is in support/tensors.py; what `structure` returns, in structure.py.

Legend: b batch, t tokens, h query heads, i query, j key, d channel, n distances.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from torch import Tensor

from posenc.positions import Positions, own_rows
from posenc.structure import Distances, Scores, Structure
from posenc.support import checks, tensors
from posenc.support.checked import checked, checked_heads, checked_on_failure, guard
from posenc.support.identity import Configuration, Identity, described
from posenc.support.tensors import ExactParameters
from posenc.support.tensors import Side as Side

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num


class PositionalEncoding(ExactParameters):
    """An encoding that does nothing: the base of all others.

    `seams` are those it uses: of a class, what it overrides; an instance may use fewer. `traits` say what holds for it, and
    the laws check it:
    local             an embedded or rotated token depends on itself and its own coordinates only
    shift_invariant   moving all positions by the same amount changes nothing
    norm_preserving   rotating keeps the length of queries and keys
    causal_only       defined for causal attention only
    """

    seams: frozenset[Seam] = frozenset()
    traits: frozenset[Trait] = frozenset({"local", "shift_invariant", "norm_preserving"})
    axes: int = 1  # coordinates that it reads of each token
    query_copies: int = 1  # rotated queries for each query head, side by side; the output has as many heads more
    learned_tables: bool = False  # True: the tables hold parameters, so that a copy cannot use them

    def __init_subclass__(cls, **options: Any) -> None:
        """Errors of what a class overrides name the argument; an inherited structure does not outlive a new seam."""
        super().__init_subclass__(**options)
        guard(cls, PositionalEncoding)
        if "seams" not in vars(cls) and not isinstance(cls.seams, property):
            cls.seams = frozenset(s for s in SEAMS if getattr(cls, s) is not getattr(PositionalEncoding, s))
        nearest = next(base for base in cls.__mro__ if vars(base).keys() & {"structure", "rotate", "bias", "finish"})
        if "structure" not in vars(nearest):
            cls.structure = PositionalEncoding.structure  # type: ignore[method-assign]

    def __init__(self, **configuration: Any) -> None:
        """Keeps the configuration, whatever its names and values; a constructor checks its own arguments (`checks`)."""
        super().__init__()
        self._configure(**configuration)

    def _configure(self, **configuration: Any) -> None:
        """Says what this encoding is made of: for constructors that have more to say than the one above them said."""
        self.configuration = Configuration(configuration)
        self._identity = Identity(type(self), self.configuration)

    @property
    def identity(self) -> str:
        """The identity of an encoding in its tables: class, configuration and, if tables hold parameters, which ones."""
        return self._identity.by_parameters if self.learned_tables else self._identity.by_configuration

    def extra_repr(self) -> str:
        return described(type(self), self.configuration)

    @property
    def reads_vectors(self) -> bool:
        """Whether a bias or a finish reads rotated queries and keys otherwise than as their products."""
        return "bias" in self.seams or "finish" in self.seams

    # Tables: computed once per call for all layers, carried by the positions, known by their identity.

    @checked_on_failure
    def prepare(self, at: Positions, dtype: torch.dtype = torch.float32) -> Positions:
        """The same positions carrying this encoding's tables; `dtype` is float64 where the model computes in float64."""
        tables = self.tables(at, dtype)
        return at.replaced(tables={**at.tables, self.identity: tables}) if tables else at

    @checked
    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """What `prepare` computes, each [b, t, …]; nothing by default."""
        return ()

    # Hidden states: for methods that read them. Queries and keys no longer show them, so the positions carry what they say.

    @checked
    def read_hidden(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None = None) -> Positions:
        """Positions that carry what this encoding takes from hidden states; `at` itself where it reads none.

        x      the hidden states of these tokens that go into the layer's projections
        past   the positions of the tokens before them in the same rows, as their own `read_hidden` returned them; None:
               there are none, or these are the keys of another sequence

        `Attention` calls it once a layer. The result has new `states` under this `identity`, or other coordinates.
        """
        return at

    # The four seams.

    @checked
    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        """x plus the encoding."""
        return x

    @checked
    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        """Turns queries and keys; identity on values and outputs unless the method says so.

        The result goes to `out` where that is given, which may be x itself; it is x itself where nothing turns. Queries
        and keys may become wider (PoPE), queries more: `query_copies` for each head (RoPE++).
        """
        tensors.turns(side)
        return tensors.into(x, out)

    @checked
    def bias(
        self, q: Float[Tensor, "b h i d"], k: Float[Tensor, "b h j d"], at_q: Positions, at_k: Positions
    ) -> BiasFn | None:
        """The term added to the scaled logit, -inf hides the key; sees rotated q and k, k expanded to the query heads."""
        return None

    @checked_on_failure
    def finish(self, scores: Scores) -> Float[Tensor, "b h i d"]:
        """The output from all logits, before it is rounded: their softmax times the values."""
        return scores.mix(scores.weights(scores.logits))

    def softmax_scale(self, d_head: int) -> float | None:
        """What the product q·k is multiplied with before anything is added. None: in a Stack, the other parts say it."""
        return usual_scale(d_head)

    # What a backend may use in place of asking the seams.

    def structure(self) -> Structure | None:
        """What it is made of, if it is one of these kinds. A subclass that overrides `rotate`, `bias` or `finish` says its
        own, or has none."""
        return None

    # The encoding of one layer, one length, one tensor-parallel slice of the query heads.

    def at_layer(self, n: int) -> PositionalEncoding:
        """The encoding of layer n, the first being 0."""
        checks.whole(0, n=n)
        return self

    @checked
    def at_length(self, n: int) -> PositionalEncoding:
        """The encoding of a request of n tokens."""
        return self

    @checked_heads
    def heads(self, start: int, stop: int) -> PositionalEncoding:
        """The encoding of query heads start … stop-1 alone; a class with a number for each head overrides it. Every class's
        own is called with checked numbers: ValueError unless 0 <= start < stop <= n_heads, where it is configured with one.
        """
        return self

    @checked
    def largest_position(self, dtype: torch.dtype = torch.float32) -> int | None:
        """The largest position it can represent in that dtype; None where there is no limit."""
        return None


Seam = Literal["embed", "rotate", "bias", "finish"]
SEAMS: tuple[Seam, ...] = get_args(Seam)  # in the order in which they act
Trait = Literal["local", "shift_invariant", "norm_preserving", "causal_only"]
BiasFn = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(b, h, i, j), integer tensors that broadcast together, to the term added to the logit there: at_q.coords[b, i], …"""

NO_ENCODING = PositionalEncoding()  # made once: a compiler cannot trace the digest of a configuration


class AbsoluteEncoding(PositionalEncoding):
    """Added to the embeddings, at layer 0 only: deeper layers find it in the residual stream, and have NoPE. A class says
    what is added in `tables`, or overrides `embed`.
    """

    traits = frozenset({"local", "norm_preserving"})
    d_model: int

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        tensors.check_embeddings(self, x, at)
        (table,) = tensors.tables_at(self, at, x.dtype)
        return (x.to(table.dtype) + table).to(x.dtype)

    def at_layer(self, n: int) -> PositionalEncoding:
        checks.whole(0, n=n)
        return self if n == 0 else NO_ENCODING


class DistanceBias(PositionalEncoding):
    """A bias of the distance alone: ALiBi, T5. Say `at_distance`; `bias` follows, and fast paths can use it."""

    reads_vectors = False

    @abstractmethod
    def at_distance(self, delta: Num[Tensor, "n"]) -> Float[Tensor, "h n"]:
        """Bias of every head, the query being `delta` positions after the key: below 0 too, even in causal attention."""

    def structure(self) -> Structure | None:
        return Distances((self,), self._of_few)

    @checked
    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """Of few tokens the bias of every pair, [b, t, h, j]; nothing if parameters or buffers, which change, say it."""
        back = tensors.distances_of_few(at)
        if back is None or any(True for held in (self.parameters(), self.buffers()) for _ in held):
            return ()
        n = len(back)
        vector = self.at_distance(torch.arange(n - 1, -n, -1)).to(dtype)
        return (vector[:, n - 1 - back].transpose(0, 1).expand(at.batch, -1, -1, -1),)

    def _of_few(self, q: Float[Tensor, "b h i d"], at: Positions) -> Float[Tensor, "#b h i j"] | None:
        """The bias of every pair from the tables, [#b, h, i, j]; None: the tokens carry none that fits q."""
        bias = tensors.carried_by_few(self, at)
        if bias is None or bias.shape[2] != q.shape[1] or bias.dtype != tensors.working_dtype(q.dtype):
            return None
        return bias.transpose(1, 2)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        """With consecutive positions on both sides b[i-j] is a vector, not a matrix: queries + keys - 1 entries."""
        tensors.check_coords(self, at_q)
        tensors.check_coords(self, at_k)
        if at_q.consecutive_in == at_k.consecutive_in == "row" and at_q.length and at_k.length:
            keys = at_k.length
            offset = at_q.coords[:, :1] - at_k.coords[:, :1]
            delta = offset + torch.arange(1 - keys, at_q.length, device=offset.device)  # [b, n]
            flat = tensors.one_per_head(self.at_distance(delta.reshape(-1)), q).to(q.dtype)
            vector = flat.unflatten(1, delta.shape)  # [h, b, n]
            return lambda b, h, i, j: vector[h, own_rows(b, at_q, at_k), i - j + (keys - 1)]
        query, key = at_q.coords, at_k.coords

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            b = own_rows(b, at_q, at_k)
            delta = query[b, i] - key[b, j]
            flat = tensors.one_per_head(self.at_distance(delta.reshape(-1)), q).to(q.dtype)
            return flat[h, torch.arange(delta.numel(), device=delta.device).view(delta.shape)]

        return of_pair


def usual_scale(d_head: int) -> float:
    """1/√d_head, the softmax scale of an encoding that asks for no other."""
    if type(d_head) is not int or d_head < 1:
        checks.whole(d_head=d_head)
    return 1 / math.sqrt(d_head)


def scale_of(encoding: PositionalEncoding, d_head: int) -> float:
    """The encoding's softmax scale, or the usual one where it leaves that to others."""
    scale = encoding.softmax_scale(d_head)
    return usual_scale(d_head) if scale is None else scale
