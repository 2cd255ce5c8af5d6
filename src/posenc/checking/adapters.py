"""From the usual shapes of libraries to the seams of `posenc.check`. An adapter computes nothing that the library computes.

    check(rotate=HuggingFaceRotary(model.model.rotary_emb))          module(x, position_ids) -> (cos, sin)
    check(rotate=CosSin(apply_rotary_pos_emb, table))                (q, k, cos, sin) functions
    check(rotate=ByOffset(rotary_embedding))                         rotate_queries_or_keys(x, offset=n)
    check(bias=Slopes(get_slopes, n_heads=6))                        ALiBi slope makers
    check(bias=Buckets(T5Attention._relative_position_bucket))       T5 bucket functions
    check(bias=ByLengths(module))                                    module(i, j) -> [h, i, j]
    check(bias=ScoreMod(alibi_mod, n_heads=6))                       FlexAttention's score_mods

Legend: b batch, h heads, t tokens, i query, j key, d channels.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from posenc.checking.errors import NotExpressible
from posenc.checking.subject import Seam
from posenc.support.checked import checked
from posenc.support.checks import shown
from posenc.support.tensors import readable

if TYPE_CHECKING:
    from posenc.support.shapes import Int


def _rotated_half(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """What transformers' Llama does with cos and sin [b, t, d]."""

    def turned(x: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return x * cos[:, None] + torch.cat([-second, first], -1) * sin[:, None]

    return turned(q), turned(k)


def _first(result: Any) -> Tensor:
    first: Tensor = result[0] if isinstance(result, tuple | list) else result
    return first


class CosSin:
    """A function of (q, k, cos, sin), and one that gives (cos, sin) at positions [b, t]."""

    @checked
    def __init__(self, apply: Callable[..., Any], table: Callable[[Tensor], Any]) -> None:
        self.apply, self.table = apply, table

    def __call__(self, x: Tensor, positions: Tensor) -> Tensor:
        cos, sin = self.table(positions)
        return _first(self.apply(x, x.clone(), cos, sin))


class HuggingFaceRotary:
    """A rotary module of transformers: module(x, position_ids) -> (cos, sin), and its (q, k, cos, sin) function.

    apply   the model's apply_rotary_pos_emb; None: Llama's rotation of halves
    width   how many of the channels turn; None: all of them
    """

    @checked
    def __init__(self, module: nn.Module, apply: Callable[..., Any] | None = None, width: int | None = None) -> None:
        self.module, self.apply, self.width = module, apply or _rotated_half, width

    def __call__(self, x: Tensor, positions: Tensor) -> Tensor:
        cos, sin = self.module(x, positions)
        turning = x[..., : self.width]
        turned = _first(self.apply(turning, turning.clone(), cos, sin))
        return turned if self.width is None else torch.cat([turned, x[..., self.width :]], -1)


class ByOffset:
    """An object that rotates tokens counted from an offset, the same for all rows: method(x, offset=n).

    takes_length  whether the number of tokens comes before it: method(x, length, offset=n)
    """

    @checked
    def __init__(
        self, module: Any, method: str = "rotate_queries_or_keys", argument: str = "offset", *, takes_length: bool = False
    ) -> None:
        self.module, self.method, self.argument, self.takes_length = module, method, argument, takes_length

    def __call__(self, x: Tensor, positions: Tensor) -> Tensor:
        length = [positions.shape[1]] * self.takes_length
        return _first(getattr(self.module, self.method)(x, *length, **{self.argument: offset_of(positions)}))


class TableByOffset:
    """A function that makes the rows of a table from a length and the first position: function(length, offset=n)."""

    @checked
    def __init__(self, function: Callable[..., Any], argument: str = "offset") -> None:
        self.function, self.argument, self.module = function, argument, function

    def __call__(self, positions: Tensor) -> Any:
        return self.function(positions.shape[1], **{self.argument: offset_of(positions)})


class TokensFirst:
    """A module that rotates x [b, t, h, d] with its positions by name: torchtune's module(x, input_pos=positions)."""

    @checked
    def __init__(self, module: Callable[..., Tensor], argument: str = "input_pos") -> None:
        self.module, self.argument = module, argument

    def __call__(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.module(x.transpose(1, 2), **{self.argument: positions}).transpose(1, 2)


class CosSinTable:
    """The tables alone of a module of transformers: module(x, position_ids) -> (cos, sin)."""

    @checked
    def __init__(self, module: Callable[..., Any]) -> None:
        self.module = module

    def __call__(self, positions: Tensor) -> Any:
        return self.module(torch.zeros(*positions.shape, 1), positions)


class Slopes:
    """-slope·|distance| with the slopes of a slope maker: make(n_heads) -> n_heads numbers."""

    @checked
    def __init__(self, make: Callable[[int], Any], n_heads: int) -> None:
        self.make, self.n_heads = make, n_heads

    def __call__(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        slopes = torch.as_tensor(self.make(self.n_heads), dtype=torch.float32).flatten()
        distance = (q_positions[:, None, :, None] - k_positions[:, None, None]).abs()
        return -slopes[:, None, None] * distance


class Buckets:
    """The bucket number of each pair as its bias: function(k_position - q_position, **options) -> whole numbers."""

    @checked
    def __init__(self, function: Callable[..., Tensor], **options: Any) -> None:
        self.function, self.options = function, options

    def __call__(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        relative = (k_positions[:, None] - q_positions[:, :, None]).long()
        return self.function(relative, **self.options).float()[:, None]


class ByLengths:
    """A module that takes lengths, with the last query at the last key: module(i, j) -> [h, i, j]."""

    @checked
    def __init__(self, module: Callable[[int, int], Tensor]) -> None:
        self.module = module

    def __call__(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        queries, keys = q_positions.shape[1], k_positions.shape[1]
        if offset_of(k_positions) or offset_of(q_positions) != keys - queries:
            raise NotExpressible("it takes lengths: keys from position 0, and the last query at the last key")
        return self.module(queries, keys)


class ScoreMod:
    """The bias that a score_mod of FlexAttention adds to scores of 0: f(score, b, h, q_idx, kv_idx)."""

    @checked
    def __init__(self, score_mod: Callable[..., Tensor], n_heads: int) -> None:
        self.score_mod, self.n_heads = score_mod, n_heads

    def __call__(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        batch, queries, keys = len(q_positions), q_positions.shape[1], k_positions.shape[1]
        b, h = torch.arange(batch)[:, None, None, None], torch.arange(self.n_heads)[:, None, None]
        score = torch.zeros(batch, self.n_heads, queries, keys)
        at_q, at_k = (p.expand(score.shape) for p in (q_positions[:, None, :, None], k_positions[:, None, None]))
        return self.score_mod(score, b.expand_as(score), h.expand_as(score), at_q, at_k)


class Counting:
    """A function of the tokens alone, or of them and a length: positions count from 0."""

    @checked
    def __init__(self, function: Callable[..., Any], seam: str, takes_length: bool) -> None:
        self.function, self.seam, self.takes_length = function, seam, takes_length
        self.module = function

    def __call__(self, *arguments: Tensor) -> Any:
        length = arguments[-1].shape[1]
        if offset_of(arguments[-1]):
            raise NotExpressible("it takes no positions: it counts from 0")
        if self.seam == "bias":
            queries = arguments[0].shape[1]
            if offset_of(arguments[0]) != length - queries:
                raise NotExpressible("it takes a length: the last query is at the last key")
            return self.function(length)[..., -queries:, :]
        return self.function(*arguments[:-1], *[length] * self.takes_length)


LENGTHS = frozenset(
    {"seq_len", "seqlen", "sequence_length", "length", "max_len", "max_seq_len", "n_tokens", "size"}
    | {"q_len", "k_len", "query_length", "key_length"}
)
OFFSETS = frozenset(
    {"offset", "start", "start_pos", "start_index", "past_length", "past_key_values_length", "cache_length"}
    | {"seq_offset", "pos_offset", "position_offset", "past_len", "past_seq_len", "cache_len", "cache_offset"}
)


@checked
def of_positions(
    function: Callable[..., Any], seam: Seam
) -> tuple[Callable[..., Any], Literal["positions", "offset", "none"]]:
    """The callable as one of positions, and what it takes in truth, by the names of its arguments.

    A function of an offset is called with the first position, one of a length or of the tokens alone with calls from 0.
    """
    try:
        called = function.forward if isinstance(function, nn.Module) else function
        parameters = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):
        return function, "positions"
    names = [p.name for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    needed = [p.name for p in parameters if p.default is p.empty and p.name in names]
    offset = next((p.name for p in parameters if p.name in OFFSETS), None)
    if not names or any(p.kind is p.VAR_POSITIONAL for p in parameters) or seam == "attention":
        return function, "positions"
    if seam == "table" and offset and names[0] in LENGTHS and set(needed) <= {names[0], offset}:
        return TableByOffset(function, offset), "offset"
    if seam in ("bias", "table"):
        if not LENGTHS.issuperset(names) or len(names) > 2:
            return function, "positions"
        return ByLengths(function) if len(names) == 2 else Counting(function, seam, True), "none"
    lengths = [name for name in needed[1:] if name in LENGTHS]
    if offset and names[0] != offset and set(needed[1:]) <= {*lengths[:1], offset}:
        return ByOffset(function, "__call__", offset, takes_length=bool(lengths)), "offset"
    if len(names) == 1 or names[1] in LENGTHS:
        return Counting(function, seam, len(names) > 1), "none"
    return function, "positions"


@checked
def offset_of(positions: Int[Tensor, "b t"]) -> int:
    """The first position, where all rows count up by one from it. Raises NotExpressible for other positions."""
    if not positions.numel() or not readable(positions):
        raise ValueError(f"positions: expected at least one position on the CPU, got {shown(positions)}")
    first = int(positions[0, 0])
    if not torch.equal(positions, (first + torch.arange(positions.shape[1])).expand_as(positions).to(positions.dtype)):
        raise NotExpressible("it takes an offset: positions that count up by one, alike in all rows")
    return first
