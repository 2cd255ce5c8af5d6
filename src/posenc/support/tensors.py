"""Tensors at the seams: the dtypes that positions are computed in, checks that name the argument, tables, shapes.

Positions are computed in float32, or float64 for float64, whatever the model's dtype. Every check raises ValueError or
TypeError that names the argument, what it got and what was expected.
Legend: b batch, h query heads, g key heads, i query, j key, t tokens, d channel, n distances.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import torch
from torch import Tensor, nn

from posenc.support.checked import INT64
from posenc.support.checks import shown
from posenc.support.identity import label, without_digests

if TYPE_CHECKING:
    from posenc.encoding import PositionalEncoding
    from posenc.positions import Positions
    from posenc.support.shapes import Float, Int, Num

STORED_ELSEWHERE = (
    *("inv_freq", "cos_cached", "sin_cached", "cos_sin_cache", "freqs", "freqs_cis", "pe"),
    *("position_ids", "relative_position_index"),
)
"""Tables and indices that other programs keep in checkpoints. Here they are computed from the configuration."""


NO_CONTEXT = contextlib.nullcontext()


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in: float64 for float64, float32 for everything else."""
    if type(dtype) is not torch.dtype:
        raise TypeError(f"dtype: expected a floating torch.dtype, got {dtype!r}")
    return torch.float64 if dtype == torch.float64 else torch.float32


def exact_dtype() -> torch.dtype:
    """The dtype in which fresh `exact_parameters` are computed: torch's default, or float32 where that is narrower."""
    return working_dtype(torch.get_default_dtype())


def full_precision(tensor: Tensor) -> contextlib.AbstractContextManager[Any]:
    """Autocast off: positions are computed in float32 or float64 whatever the caller has switched on."""
    kind = tensor.device.type
    if kind == "meta" or not torch.is_autocast_enabled(kind):  # meta: nothing is computed, autocast does not know it
        return NO_CONTEXT  # autocast would cost 4 µs for each decoded token
    return torch.autocast(device_type=kind, enabled=False)


class ExactParameters(nn.Module):
    """A module that keeps the parameters named in `exact_parameters` in float32 or float64, and computes its tables.

    These parameters multiply positions, or add to each token of a sum. A position multiplies their rounding: bfloat16's
    2⁻⁹ of a frequency is 8 radians at position 4096.
    """

    exact_parameters: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: Any) -> None:
        """Widens one of `exact_parameters` to float32: constructors and loaders assign what they made or read."""
        if name in self.exact_parameters and isinstance(value, nn.Parameter):
            value.data = _wide(value.data, value.data)
        super().__setattr__(name, value)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """What `to`, `half` and `bfloat16` call: the `exact_parameters` and their gradients are moved, and stay float32."""
        kept = [parameter for name, parameter in self.named_parameters() if name in self.exact_parameters]
        exact = {id(tensor) for parameter in kept for tensor in (parameter, parameter.grad)}
        super()._apply(lambda tensor: _wide(fn(tensor), tensor) if id(tensor) in exact else fn(tensor), recurse)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Passes over STORED_ELSEWHERE, so that a checkpoint of another program loads strictly; nothing of it is used."""
        for name in STORED_ELSEWHERE:
            if name not in self._parameters and name not in self._buffers:
                state_dict.pop(prefix + name, None)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _wide(converted: Tensor, tensor: Tensor) -> Tensor:
    """What `tensor` was converted to; `tensor` in float32 on the same device where that is narrower than float32."""
    if converted.is_floating_point() and converted.itemsize < torch.float32.itemsize:
        return tensor.to(converted.device, torch.float32)
    return converted


INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
"""The dtypes of whole numbers that torch computes with."""


def floating(dtype: torch.dtype) -> None:
    """Raises TypeError for what is no dtype of real numbers."""
    if type(dtype) is not torch.dtype or not dtype.is_floating_point:
        raise TypeError(f"dtype: expected a floating torch.dtype, got {shown(dtype)}")


def on_device_of(parameter: Tensor, **tensors: Tensor) -> None:
    """Raises ValueError for a tensor that is not on the device of the parameter."""
    for name, value in tensors.items():
        if value.device != parameter.device:
            raise ValueError(f"{name}: expected to be on {parameter.device} as the parameters are, got {value.device}")


def with_values(**tensors: Tensor) -> None:
    """Raises ValueError for a tensor without elements, or whose elements have no values (meta)."""
    for name, value in tensors.items():
        if value.device.type == "meta" or not value.numel():
            raise ValueError(f"{name}: expected at least one number, got {shown(value)} on {value.device}")


def every_row(tensor: Tensor) -> Tensor:
    """The tensor behind those of torch.func: with the values of every row that vmap runs over, which can be checked."""
    if not torch.compiler.is_compiling():
        while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def readable(tensor: Tensor) -> bool:
    """Whether values may be read: in eager mode on the CPU. Elsewhere reading would synchronise or break a graph.

    Inside torch.func a tensor may stand for a whole batch, so nothing can be read there.
    """
    if torch.compiler.is_compiling() or type(tensor) not in (Tensor, torch.nn.Parameter) or not tensor.is_cpu:
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


Side = Literal["query", "key", "value", "output"]
SIDES = get_args(Side)
FEW = 64  # tokens: as many as a window of Swin. Up to here kernels and `prepare` have ways of their own, pair by pair


def check_coords(encoding: PositionalEncoding, at: Positions, *, integers: bool = False) -> None:
    """Raises ValueError for the wrong number of axes, TypeError for reals where whole positions are needed."""
    axes = 1 if at.coords.ndim == 2 else at.coords.shape[2]
    if axes != encoding.axes or (axes == 1 and at.coords.ndim == 3):
        raise ValueError(
            f"{type(encoding).__name__}: reads {encoding.axes} coordinate(s) per token, got coords {list(at.coords.shape)}"
        )
    if integers and at.coords.dtype not in INTEGERS:
        raise TypeError(f"{type(encoding).__name__}: needs integer positions, got {at.coords.dtype}")


def check_range(encoding: PositionalEncoding, at: Positions, low: float, high: float, why: str) -> None:
    """Positions outside low … high: ValueError that names position and limit on the CPU, device assert elsewhere."""
    check_between(at.coords, low, high, f"{type(encoding).__name__}: position", f": {why}")


def check_between(values: Tensor, low: float, high: float, name: str, why: str = "") -> None:
    """Values outside low … high: ValueError that names the first of them on the CPU, a device assert elsewhere."""
    values = every_row(values)
    if readable(values) and values.numel():  # one pass, for each decoded token
        least, largest = values.aminmax()
        if low <= least.item() and largest.item() <= high:
            return
    check_accepted(values, (values >= low) & (values <= high), f"{name} {{}} is outside {low} … {high}{why}")


def check_accepted(values: Tensor, accepted: Tensor, message: str) -> None:
    """Values that are not accepted: the same, with the first of them in place of "{}" in the message."""
    values, accepted = every_row(values), every_row(accepted)
    if not readable(values):
        torch._assert_async(accepted.all(), message)
    elif not bool(accepted.all()):
        raise ValueError(message.replace("{}", str(values[~accepted][0].tolist())))


def check_tokens(encoding: PositionalEncoding, x: Tensor, at: Positions, axis: int) -> None:
    """Raises TypeError for x of integers, ValueError where `at` has not the tokens of x, which are along `axis`."""
    if not x.is_floating_point():
        raise TypeError(f"{type(encoding).__name__}: x: expected real numbers, got {x.dtype}; they would be rounded to 0")
    if at.coords.is_meta is not x.is_meta:
        raise ValueError(f"x, at: expected one device, got {x.device} and positions on {at.coords.device}")
    # Not `at.batch not in (1, …)`: torch.compile does not find a batch there that is a symbol in the graph.
    if at.length != x.shape[axis] or (at.batch != 1 and at.batch != x.shape[0]):
        tokens = f"[{x.shape[0]}, {x.shape[axis]}] of x"
        raise ValueError(f"{type(encoding).__name__}: has positions [{at.batch}, {at.length}] for tokens {tokens}")


def check_pair(encoding: PositionalEncoding, q: Tensor, k: Tensor, at: Positions) -> None:
    """Raises ValueError and TypeError for queries and keys at the same positions as `check_width`, `check_tokens` do."""
    (rows, tokens), of_q, of_k, width = at.coords.shape[:2], q.shape, k.shape, encoding.d_head
    fit = of_q[2] == of_k[2] == tokens and of_q[3] == of_k[3] == width
    if not fit or rows != 1 or not (q.is_floating_point() and k.is_floating_point()) or at.coords.is_meta is not q.is_meta:
        for x in (q, k):
            check_width(encoding, "d_head", x.shape[-1], width)  # type: ignore[arg-type]
            check_tokens(encoding, x, at, axis=2)


def check_embeddings(encoding: PositionalEncoding, x: Tensor, at: Positions) -> None:
    """Raises ValueError for embeddings x [b, t, d] of another width than the encoding's, and as `check_tokens` does."""
    check_width(encoding, "d_model", x.shape[-1], encoding.d_model)  # type: ignore[arg-type]
    check_tokens(encoding, x, at, axis=1)


def check_width(encoding: PositionalEncoding, name: str, got: int, expected: int, of: str = "x") -> None:
    """Raises ValueError for an axis of argument `of` that has another size than the encoding was built for."""
    if got != expected:
        raise ValueError(f"{type(encoding).__name__}: built for {name}={expected}, got a tensor with {got} as {of}")


def check_added(encoding: PositionalEncoding, added: Float[Tensor, "*s d"], v: Float[Tensor, "b g j d"]) -> None:
    """Raises ValueError for values v of another width than the vectors that the encoding adds to the output."""
    if added.shape[-1] != v.shape[-1]:
        raise ValueError(
            f"v: {type(encoding).__name__} adds vectors of {added.shape[-1]} channels to the output, expected values of as "
            f"many, got {list(v.shape)}"
        )


def check_distances(delta: Num[Tensor, "n"]) -> None:
    """Raises TypeError or ValueError for what is no tensor [n] of integers or reals."""
    if not isinstance(delta, Tensor) or delta.layout is not torch.strided or delta.ndim != 1:
        raise ValueError(f"delta: expected a tensor [n] of numbers, got {shown(delta)}")
    if delta.is_complex():
        raise ValueError(f"delta: expected a tensor [n] of numbers, got {delta.dtype}")


def turns(side: Side) -> bool:
    """Whether a rotation acts on that side: on queries and keys. Raises ValueError for a side that there is not."""
    if side not in SIDES:
        raise ValueError(f"side: expected one of {', '.join(map(repr, SIDES))}, got {side!r}")
    return side in ("query", "key")


def rotates(encoding: PositionalEncoding, x: Tensor, at: Positions, side: Side) -> bool:
    """`turns(side)`; if it is true, x [b, h, t, d] is checked too. Raises ValueError and TypeError as these checks do."""
    if not turns(side):
        return False
    check_width(encoding, "d_head", x.shape[-1], encoding.d_head)  # type: ignore[arg-type]
    check_tokens(encoding, x, at, axis=2)
    return True


def into(x: Tensor, out: Tensor | None) -> Tensor:
    """x, or `out` holding it. Raises ValueError for an `out` of another shape or dtype."""
    if out is None or out is x:
        return x
    if not isinstance(out, Tensor) or out.is_nested:
        raise TypeError(f"out: expected a tensor, got {type(out).__name__}")
    if out.shape != x.shape or out.dtype != x.dtype:
        raise ValueError(f"out: expected {x.dtype} {list(x.shape)} as x is, got {out.dtype} {list(out.shape)}")
    return out.copy_(x)


def tables_at(encoding: PositionalEncoding, at: Positions, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """The tables of the encoding that `at` carries, or fresh ones where it carries none; for x of that dtype.

    Raises ValueError for tables of another encoding alone, and for some of another dtype.
    """
    wanted = working_dtype(dtype)
    if not at.tables:
        return encoding.tables(at, wanted)
    if (tables := at.tables.get(encoding.identity)) is None:
        prepared = ", ".join(map(without_digests, at.tables))
        another = "another " if label(encoding) in prepared else ""
        raise ValueError(
            f"positions: prepared by {prepared}, used with {another}{label(encoding)}; "
            "call prepare() of the encoding that reads them"
        )
    if tables[0].dtype != wanted:
        raise ValueError(
            f"positions: prepared in {tables[0].dtype}, but {dtype} needs {wanted}; call prepare(at, dtype={wanted})"
        )
    if not torch.compiler.is_compiling() and tables[0].is_inference() and torch.is_grad_enabled():
        return tuple(table.clone() for table in tables)  # prepared in inference mode: autograd cannot save those
    return tables


def distances_of_few(at: Positions) -> Int[Tensor, "t t"] | None:
    """query - key of every pair of a few tokens at 0, 1, 2, … in every row; None for other tokens, in a graph, and where
    gradients are recorded: the tables of positions that go into a graph do not depend on where their tokens are.

    A table [b, t, …, n] made of it has a row for each token: what it has to do with the keys at 0 … n - 1. So the row stays
    right where tokens are cut or joined, and n consecutive tokens that carry n such columns are those at 0 … n - 1.
    """
    coords = at.coords
    if at.consecutive_in != "row" or torch.is_grad_enabled() or not readable(coords):  # first: no graph depends on a length
        return None
    few = coords.ndim == 2 and coords.dtype == torch.int64 and 1 < coords.shape[1] <= FEW and coords.shape[0] > 0
    if not few or bool(coords[:, 0].any()):
        return None
    positions = torch.arange(coords.shape[1])
    return positions[:, None] - positions


def carried_by_few(encoding: PositionalEncoding, at: Positions) -> Tensor | None:
    """The table of `distances_of_few` that these consecutive tokens carry, [b, t, …, t]; None if they carry none."""
    tables = at.tables.get(encoding.identity)
    if tables is None:
        return None
    (table,) = tables
    size = table.shape
    if size[1] != at.coords.shape[1] or size[-1] != size[1] or (table.is_inference() and torch.is_grad_enabled()):
        return None
    return table


def for_heads(
    encoding: PositionalEncoding, table: Float[Tensor, "b t g ..."], x: Float[Tensor, "b h t d"], what: str
) -> Float[Tensor, "b h t ..."]:
    """A table of g key heads for each of the h heads of x: h/g heads in a row share one.

    what    what the table holds, in the plural, for the message
    Raises ValueError if g does not divide h.
    """
    heads, table_heads = x.shape[1], table.shape[2]
    if heads % table_heads:
        raise ValueError(f"{type(encoding).__name__}: x: {heads} heads cannot share the {what} of {table_heads}")
    return table.transpose(1, 2).repeat_interleave(heads // table_heads, dim=1)


def one_per_head(bias: Float[Tensor, "h n"], q: Tensor) -> Tensor:
    """The bias, after a check that it has the heads of q, [b, h, i, d].

    Raises ValueError for another number of axes or heads: with fewer heads, kernels would read past its end; with more, the
    last would be lost.
    """
    if bias.ndim != 2:
        raise ValueError(f"at_distance: expected a row for each of {q.shape[1]} heads, [h, n], got {list(bias.shape)}")
    if bias.shape[0] != q.shape[1]:
        raise ValueError(
            f"the encoding has a bias for {bias.shape[0]} heads, q has {q.shape[1]}: make it with n_heads={q.shape[1]}, "
            "or give every slice of the heads its own with encoding.heads(start, stop)"
        )
    return bias


def coordinates(coords: Tensor, name: str = "coords") -> Tensor:
    """A copy in int64 or float64. TypeError for other kinds of numbers, ValueError for NaN and infinities."""
    if coords.layout is not torch.strided:
        raise ValueError(f"{name}: expected a dense tensor, got {shown(coords)}")
    if coords.dtype in INTEGERS:
        return coords.to(torch.int64, copy=True)
    if coords.dtype not in (torch.float32, torch.float64):
        advice = "a mask goes to from_mask()" if coords.dtype == torch.bool else "give integers, float32 or float64"
        raise TypeError(f"{name}: expected integers or reals, got {coords.dtype}; {advice}")
    if readable(coords) and not bool(torch.isfinite(coords).all()):
        raise ValueError(f"{name}: expected finite positions, got NaN or infinity")
    return coords.to(torch.float64, copy=True)


def integers(name: str, numbers: Any, axes: str, device: torch.device | str | None = None) -> Int[Tensor, "n"]:
    """A copy in int64 of integers on one axis: of a tensor, an array or a sequence. ValueError for anything else."""
    if type(numbers) is Tensor and numbers.dtype == torch.int64 and numbers.ndim == 1 and device is None and numbers.is_cpu:
        return numbers.clone()  # as decoding gives them, for every token
    if isinstance(numbers, (str, bytes)):
        raise ValueError(f"{name}: expected integers {axes}, as a tensor or a sequence, got {shown(numbers)}")
    if isinstance(numbers, Tensor) and numbers.is_meta and torch.device(device or "meta").type != "meta":
        raise ValueError(f"{name}: expected integers with values, got a tensor on meta")
    if hasattr(numbers, "__array__") and not isinstance(numbers, Tensor):
        numbers = torch.as_tensor(numbers)
    if isinstance(numbers, Tensor):
        if numbers.dtype not in INTEGERS or numbers.ndim != 1:
            raise ValueError(f"{name}: expected integers {axes}, got {shown(numbers)}")
        return numbers.to(device=device, dtype=torch.int64, copy=True)
    if not isinstance(numbers, Sequence) or not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        raise ValueError(f"{name}: expected integers {axes}, as a tensor or a sequence, got {shown(numbers)}")
    if any(abs(n) > INT64 for n in numbers):
        raise ValueError(f"{name}: expected integers {axes} of 64 bits, got {shown(numbers)}")
    return torch.tensor(list(numbers), dtype=torch.int64, device=device)


def ends_of(cu_seqlens: Any) -> list[int]:
    """Ends of documents as numbers. ValueError for those of vmap, of which every row could have another count."""
    ends = integers("cu_seqlens", cu_seqlens, "[n + 1]")
    if not torch.compiler.is_compiling() and torch._C._functorch.is_functorch_wrapped_tensor(ends):
        raise ValueError("cu_seqlens: expected integers that can be read, got rows of torch.func.vmap; call it before vmap")
    numbers: list[int] = ends.tolist()
    return numbers


def check_sum(total: Tensor, added: Tensor | float) -> None:
    """Raises ValueError where a sum of integers has wrapped around, in eager code on the CPU."""
    if total.dtype != torch.int64 or not readable(total) or (isinstance(added, Tensor) and not readable(added)):
        return
    if not bool(((total < total - added) == (added < 0)).all()):
        raise ValueError("positions do not fit in int64")


def check_mask(mask: Tensor, shape: str) -> None:
    if not isinstance(mask, Tensor) or mask.ndim != len(shape.split(",")):
        raise ValueError(f"mask: expected a tensor {shape} of 0 and 1")
    if mask.is_complex():
        raise TypeError(f"mask: expected 0 and 1, got {mask.dtype}")
    if readable(mask) and not bool(((mask == 0) | (mask == 1)).all()):
        raise ValueError("mask: expected 0 and 1 only; document numbers go to packed(cu_seqlens)")
