"""Encodings that read hidden states: q and k no longer show them, so the positions carry what they say.

    at_layer = encoding.read_hidden(x, at)      once a layer, with the tokens that go into its projections; `Attention` does
    attend(q, k, v, encoding, at_layer, …)

What was read travels with the positions: gathered by take, joined by cat, unknown to every other layer's encoding.
Legend: b batch, t tokens, h query heads, m d_model, s what is read for every head (no axis, or one).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn, PositionalEncoding
from posenc.kernels.eager import exporting
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.identity import label
from posenc.support.tensors import check_tokens, check_width, exact_dtype, full_precision, readable, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float, Int

COPIED = 2**16  # entries of a matrix that are looked up one by one, whatever is asked for
Reads = Literal["hidden", "query"]


class ReadsHidden(PositionalEncoding):
    """Says for every token and head a state of its hidden state ("hidden"), or of its rotated query ("query").

    "query" needs no `read_hidden` and serves where a model has no say in the matter; families read hidden states.
    Raises ValueError where positions carry nothing read by this very module.
    """

    def __init__(self, *, reads: Reads, **configuration: Any) -> None:
        checks.one_of(get_args(Reads), reads=reads)
        super().__init__(reads=reads, **configuration)
        self.reads = reads
        self.learned_tables = reads == "hidden"

    @property
    def reads_vectors(self) -> bool:
        return self.reads == "query"

    @abstractmethod
    def of_hidden(self, x: Float[Tensor, "b t m"]) -> Float[Tensor, "b t h *s"]:
        """The state of every token and head, from hidden states."""

    @abstractmethod
    def of_query(self, q: Float[Tensor, "b h t d"]) -> Float[Tensor, "b h t *s"]:
        """The state of every token and head, from queries."""

    def read_hidden(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None = None) -> Positions:
        """The same positions carrying the state of every token and head; `at` itself where queries are read."""
        if self.reads != "hidden":
            return at
        check_tokens(self, x, at, axis=1)
        with full_precision(x):
            state = self.of_hidden(x.to(working_dtype(x.dtype)))
        at = at.expand(x.shape[0])
        return at.replaced(states={**at.states, self.identity: (state,)})

    def state(self, q: Float[Tensor, "b h t d"], at_q: Positions) -> Float[Tensor, "b h t *s"]:
        """What was read for the queries of this call."""
        if self.reads == "query":
            return self.of_query(q)
        if self.identity not in at_q.states:
            raise ValueError(
                f"positions: carry nothing read by {label(self)}; call read_hidden(x, at) of this layer's encoding "
                "with its hidden states"
            )
        return at_q.states[self.identity][0].transpose(1, 2).to(q.dtype)


class ReadsEarlierTokens(PositionalEncoding):
    """Says for every token a state that depends on the hidden states of this token and of those before it.

    A class says `state_of`; `read_hidden` puts the state into the positions, and `state` takes it out again.

    earlier   how many of the tokens before it in its document a token's state is made of, through what is stored of them:
              1 for a running sum, conv_size - 1 for a short convolution. None: all, which a cache then keeps
    """

    earlier: int | None = None

    traits = frozenset({"local", "shift_invariant", "norm_preserving", "causal_only"})
    learned_tables = True
    d_model: int

    @abstractmethod
    def state_of(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None) -> tuple[Tensor, ...]:
        """The state kept for these tokens, each [b, t, …]; `past` carries the state of earlier tokens."""

    def read_hidden(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None = None) -> Positions:
        """The same positions carrying the state of every token."""
        check_tokens(self, x, at, axis=1)
        check_width(self, "d_model", x.shape[-1], self.d_model)
        at = at.expand(x.shape[0])
        with full_precision(x):
            state = self.state_of(x.to(working_dtype(x.dtype)), at, past)
        return at.replaced(states={**at.states, self.identity: state})

    def state(self, at: Positions) -> tuple[Tensor, ...]:
        """The state that `read_hidden` put into these positions. Raises ValueError if they carry none from this module."""
        if self.identity not in at.states:
            raise ValueError(
                f"at: carries nothing read by {label(self)}; "
                "call read_hidden(x, at) of this layer's encoding with its hidden states"
            )
        return at.states[self.identity]


class ForgetGates(ReadsEarlierTokens):
    """S of every token: the running sum of ln σ(w·x + b) over the tokens of a document, for each gate of each head.

    d_model    channels of the hidden states that go into the projections
    n_heads    query heads
    per_head   gates of a head
    offset     b at the start

    Parameters: weight [n_heads·per_head, d_model], N(0, 0.02²) at the start, and offset [n_heads·per_head]. Sums are kept
    in fp64, so that neighbours are told apart after a million tokens.
    """

    exact_parameters = ("offset",)
    earlier = 1

    def __init__(self, d_model: int, n_heads: int, *, per_head: int = 1, offset: float = 0.0, **configuration: Any) -> None:
        super().__init__(d_model=d_model, n_heads=n_heads, **configuration)
        self.d_model, self.n_heads, self.per_head = d_model, n_heads, per_head
        self.weight = nn.Parameter(torch.empty(n_heads * per_head, d_model))
        self.offset = nn.Parameter(torch.full((n_heads * per_head,), float(offset), dtype=exact_dtype()))
        nn.init.normal_(self.weight, std=0.02)

    def log_gates(self, logits: Float[Tensor, "b t n"]) -> Float[Tensor, "b t n"]:
        """The logarithms of the gates, from w·x + b."""
        return F.logsigmoid(logits)

    def state_of(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None) -> tuple[Tensor, ...]:
        gates = self.log_gates(F.linear(x, self.weight.to(x.dtype), self.offset.to(x.dtype)))
        return (running_sum(gates, at, None if past is None else (past, self.sums(past))),)

    def sums(self, at: Positions) -> Float[Tensor, "b t n"]:
        """S of every token and gate, in fp64."""
        return self.state(at)[0]

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> Self:
        part = type(self)(**{**self.configuration, "n_heads": stop - start}).to(self.weight)
        rows = slice(start * self.per_head, stop * self.per_head)
        part.weight.copy_(self.weight[rows])
        part.offset.copy_(self.offset[rows])
        return part


def running_sum(
    steps: Float[Tensor, "b t *s"], at: Positions, past: tuple[Positions, Float[Tensor, "b s *s"]] | None = None
) -> Float[Tensor, "b t *s"]:
    """The sum of `steps` up to every token, itself included, along the causal order, in fp64. Padding adds nothing.

    past   the positions of the tokens before these in the same rows, and their sums: every document goes on from its own
           last token, whatever stands in the row after it, such as padding or drafts that were rejected

    Only differences within a document mean something: without a past the sum goes on from one document to the next.
    """
    steps = steps.double()
    steps = steps.masked_fill((at.document < 0).view(*at.document.shape, *[1] * (steps.ndim - 2)), 0.0)
    if past is not None and not past[0].length:
        past = None
    if at.consecutive_in == "row" and past is not None:
        return steps.cumsum(dim=1) + _of_real(past[1], *_last_tokens(past[0], 1)).double()
    if at.consecutive_in is not None and past is None:
        return steps.cumsum(dim=1)
    index = by_document_and_order(at)
    steps = taken(steps, index)
    total = steps.cumsum(dim=1)
    if past is not None:
        document = at.document.gather(1, index)
        begins, last = _places(document, document), _last_of_documents(past[0], document)
        total = total - taken(total - steps, begins) + _of_real(past[1], *last).double()
    return taken(total, index.argsort(dim=1))


def _last_tokens(at: Positions, count: int) -> tuple[Int[Tensor, "b n"], Bool[Tensor, "b n"]]:
    """The last tokens of document 0 in every row, in causal order, and whether they are such: a row may have fewer."""
    stored = torch.arange(at.length, device=at.order.device).expand(at.batch, -1)
    if at.consecutive_in == "row":
        last = stored[:, max(at.length - count, 0) :]
        return last, torch.ones_like(last, dtype=torch.bool)
    place = (at.order - at.order.amin(dim=1, keepdim=True)) * at.length + stored  # of equal orders the one stored last
    found = place.masked_fill(at.document != 0, -1).topk(min(count, at.length), dim=1)
    return found.indices.flip(1), found.values.flip(1) >= 0


def _last_of_documents(at: Positions, document: Int[Tensor, "b t"]) -> tuple[Int[Tensor, "b t"], Bool[Tensor, "b t"]]:
    """The last token of each of these documents in the same row, and whether there is one."""
    index = by_document_and_order(at)
    place = _places(at.document.gather(1, index), document, right=True) - 1
    last = index.gather(1, place.clamp(min=0))
    return last, at.document.gather(1, last) == document


def _of_real(x: Float[Tensor, "b s *s"], index: Int[Tensor, "b n"], real: Bool[Tensor, "b n"]) -> Float[Tensor, "b n *s"]:
    """The tokens of every row at its own indices, 0 where they are not real."""
    return taken(x, index).masked_fill(~real.view(*real.shape, *[1] * (x.ndim - 2)), 0.0)


def _places(ordered: Int[Tensor, "b s"], x: Int[Tensor, "b t"], *, right: bool = False) -> Int[Tensor, "b t"]:
    """How many of the growing numbers of a row are smaller than x, or as large with `right`."""
    if not exporting():
        return torch.searchsorted(ordered, x, right=right)
    before = ordered[:, None] <= x[..., None] if right else ordered[:, None] < x[..., None]  # ONNX has no searchsorted
    return before.sum(dim=-1)


def stable_argsort(x: Int[Tensor, "b t"]) -> Int[Tensor, "b t"]:
    """Equal numbers stay as they stand."""
    if not exporting():
        return x.argsort(dim=-1, stable=True)
    # ONNX has no stable sort. Of n numbers, x·n + index is in the same order and never equal.
    n = x.shape[1]
    return (x * n + torch.arange(n, device=x.device)).argsort(dim=-1)


def by_document_and_order(at: Positions) -> Int[Tensor, "b t"]:
    """The indices of the tokens of every row, document by document, each in causal order."""
    by_order = stable_argsort(at.order)
    return by_order.gather(1, stable_argsort(at.document.gather(1, by_order)))


def along_the_path(at_q: Positions, at_k: Positions) -> tuple[Int[Tensor, "b j"] | None, Int[Tensor, "b i"]]:
    """Keys as a path: the index that puts them in document and causal order, None where they stand so; and for every query
    the place on that path of the last key that is not after it, -1 where there is none.
    """
    if at_q.consecutive_in == at_k.consecutive_in == "row":
        return None, at_q.order - at_k.order[:, :1]
    index = by_document_and_order(at_k)
    if at_q is at_k:
        return index, index.argsort(dim=1)
    query, key = (torch.stack([at.document, at.order], dim=-1) for at in (at_q, at_k))
    same = query[:, :, None, 0] == key[:, None, :, 0]
    before = (query[:, :, None, 0] > key[:, None, :, 0]) | (same & (query[:, :, None, 1] >= key[:, None, :, 1]))
    return index, before.sum(dim=-1) - 1


def short_convolution(
    x: Float[Tensor, "b t c"], taps: Float[Tensor, "c s"], at: Positions, past: tuple[Positions, Tensor] | None = None
) -> Float[Tensor, "b t c"]:
    """Each token with those before it in its document, channel by channel: the last of s taps is for the token itself.

    past   the positions and the x of the tokens before these in the same rows
    """
    if past is not None and past[0].length and at.consecutive_in != "row":
        return _convolved_after(x, taps.to(x.dtype), at, *past)
    index = None if at.consecutive_in == "row" else by_document_and_order(at)
    document, back = at.document, taps.shape[1] - 1
    if index is not None:
        x, document = taken(x, index), document.gather(1, index)
    row, documents = x, document
    if past is not None and past[0].length and back:
        last, real = _last_tokens(past[0], back)
        row = torch.cat([_of_real(past[1].to(x.dtype), last, real), row], dim=1)
        documents = torch.cat([real.long() - 1, documents], dim=1)
    missing = back + x.shape[1] - row.shape[1]
    row, documents = F.pad(row, (0, 0, missing, 0)), F.pad(documents, (missing, 0), value=-2)
    out = torch.zeros_like(x)
    for step in range(back + 1):
        reached = slice(step, step + x.shape[1])
        same = (documents[:, reached] == document)[..., None]
        out = out + row[:, reached] * taps[:, step].to(x.dtype) * same
    return out if index is None else taken(out, index.argsort(dim=1))


def _convolved_after(
    x: Float[Tensor, "b t c"], taps: Float[Tensor, "c s"], at: Positions, at_past: Positions, held: Float[Tensor, "b p c"]
) -> Float[Tensor, "b t c"]:
    """The same after the tokens at `at_past`: every token's own document, wherever its earlier tokens stand."""
    every = Positions.cat([part.replaced(tables={}, states={}) for part in (at_past, at)])
    index, back = by_document_and_order(every), torch.arange(taps.shape[1] - 1, -1, -1, device=x.device)
    place = index.argsort(dim=1)[:, at_past.length :, None] - back  # [b, t, s]
    source = index.gather(1, place.clamp(min=0).flatten(1))
    same = (every.document.gather(1, source).view_as(place) == at.document[..., None]) & (place >= 0)
    reached = taken(torch.cat([held.to(x.dtype), x], dim=1), source).unflatten(1, place.shape[1:])  # [b, t, s, c]
    out: Tensor = (reached * taps.T * same[..., None]).sum(dim=2)
    return out


def filled_up(count: int, block: int, device: torch.device) -> Int[Tensor, "n"]:
    """0 … count - 1, and the last one again until blocks of that size are full. A graph over lengths needs it: padding by
    nothing is another graph.
    """
    whole = (count + block - 1) // block * block
    return torch.arange(whole, device=device).clamp(max=count - 1)


def carried(
    queries: Float[Tensor, "b h n i d"],
    keys: Float[Tensor, "b h n j d"],
    near: Float[Tensor, "b h n i j"],
    carry: Callable[[Tensor, int], Tensor],
) -> Iterator[Float[Tensor, "b h i j"]]:
    """Products of every block of queries with all keys up to the end of the block, one block after the other.

    queries   as they are seen from the end of the block before
    keys      as they are seen from the end of their own block
    near      the products within each block
    carry     (keys as seen from the end of the block before n, n) -> the same keys as seen from the end of block n
    """
    held = keys[:, :, 0]
    yield near[:, :, 0]
    for n in range(1, near.shape[2]):
        yield torch.cat([queries[:, :, n] @ held.transpose(-1, -2), near[:, :, n]], dim=-1)
        held = torch.cat([carry(held, n), keys[:, :, n]], dim=2)


def cut(blocks: Iterator[Float[Tensor, "b h i j"]], tokens: int) -> Iterator[Float[Tensor, "b h i j"]]:
    """The blocks without the queries and keys that fill up the last one."""
    for block in blocks:
        beyond = max(block.shape[3] - tokens, 0)
        yield block[:, :, : block.shape[2] - beyond, :tokens] if beyond else block


def entries(matrix: Float[Tensor, "b h i j"]) -> BiasFn:
    """The term of every pair from a matrix of all pairs: a view of it, not a copy, where a large part is asked for."""

    def of_pair(*index: Tensor) -> Tensor:
        if torch.compiler.is_compiling() or matrix.numel() < COPIED or (part := _ranges(index)) is None:
            return matrix[index]
        return matrix[part]

    return of_pair


def _ranges(index: tuple[Tensor, ...]) -> tuple[slice, ...] | None:
    """Indices that count up by one, each along its own of four axes, as slices. None for others, and where they cannot be
    read."""
    ranges = []
    for axis, indices in enumerate(index):
        if indices.ndim != 4 or not 0 < indices.shape[axis] == indices.numel() or not readable(indices):
            return None
        first = int(indices.flatten()[0])
        if not torch.equal(indices.flatten(), torch.arange(first, first + indices.numel())):
            return None
        ranges.append(slice(first, first + indices.numel()))
    return tuple(ranges)


def taken(x: Float[Tensor, "b t *s"], index: Int[Tensor, "b n"]) -> Float[Tensor, "b n *s"]:
    """The tokens of every row at its own indices."""
    return x.gather(1, index.view(*index.shape, *[1] * (x.ndim - 2)).expand(*index.shape, *x.shape[2:]))
