"""The contract: where position enters attention. Read this first.

Position can enter at four seams. An encoding overrides the seams it uses; the base class overrides none and *is* NoPE.

    x ── embed ──► q, k, v ── rotate ──► logits = q·k·scale + bias ── finish ──► softmax(logits)·v

Legend: b batch, t tokens, h query heads, i query, j key, d channel, n distances.
"""

from __future__ import annotations

import contextlib
import functools
import math
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, get_args

import torch
from torch import Tensor, nn

from posenc.positions import Positions, readable, repeat_one_row
from posenc.structure import Distances, Regions, Rotation, Scores
from posenc.support import checks
from posenc.support.checked import check_arguments, checked, explained
from posenc.support.identity import Configuration, Identity, described, without_digests
from posenc.support.tensor_checks import INTEGERS

if TYPE_CHECKING:
    from posenc.structure import Structure
    from posenc.support.shapes import Float, Int, Num

Side = Literal["query", "key", "value", "output"]
SIDES = get_args(Side)
Seam = Literal["embed", "rotate", "bias", "finish"]
SEAMS: tuple[Seam, ...] = get_args(Seam)  # in the order in which they act
NUMBERS = (int, float)
Trait = Literal["local", "shift_invariant", "norm_preserving", "causal_only"]
Heads = TypeVar("Heads", bound=Callable[..., Any])
BiasFn = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(b, h, i, j), integer tensors that broadcast together, to the term added to the logit there."""
Addend = Callable[[Any, Tensor, Positions, Positions, Tensor], Tensor]


# An inherited `structure` says nothing of a class that overrides one of these and not `structure` itself.
SAID_BY_STRUCTURE = {"structure", "rotate", "bias", "finish"}


def _with_checked_heads(heads: Heads) -> Heads:
    @functools.wraps(heads)
    def checked_heads(self: Any, start: int, stop: int) -> Any:
        n_heads = self.configuration.get("n_heads")
        whole = all(checks.is_whole(bound) for bound in (start, stop))
        if not whole or not 0 <= start < stop or (checks.is_whole(n_heads) and stop > n_heads):
            upper = f" <= n_heads={n_heads}" if checks.is_whole(n_heads) else ""
            raise ValueError(
                f"{type(self).__name__}: heads: expected whole numbers 0 <= start < stop{upper}, "
                f"got start={start!r}, stop={stop!r}"
            )
        return heads(self, start, stop)

    return checked_heads  # type: ignore[return-value]


# What an encoding may override: its arguments are checked before a call, or, where each token calls it, after a failure.
PER_CALL = frozenset(("bias", "at_length"))
PER_TOKEN = frozenset(
    {
        *("prepare", "tables", "tables_at", "embed", "rotate", "finish", "softmax_scale", "at_layer", "at_distance"),
        "read_hidden",
        "largest_position",
    }
)


STORED_ELSEWHERE = (
    *("inv_freq", "cos_cached", "sin_cached", "cos_sin_cache", "freqs", "freqs_cis", "pe"),
    *("position_ids", "relative_position_index"),
)
"""Tables and indices that other programs keep in checkpoints. Here they are computed from the configuration."""


class PositionalEncoding(nn.Module):
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
    coordinate_axes: ClassVar[int] = 1
    sets_softmax_scale: ClassVar[bool] = True  # False: in a stack the other parts say it
    learned_tables: bool = False  # True: the tables hold parameters, so that a copy cannot use them
    exact_parameters: tuple[str, ...] = ()  # those that multiply positions, or add to each token of a sum: never below fp32

    turns_embeddings: bool = False  # True: embed multiplies what comes in, so that no vector says what it adds
    query_copies: int = 1  # rotated queries for each query head, side by side; the output has as many heads more

    def __init_subclass__(cls, **options: Any) -> None:
        """Errors of what a class overrides name the argument; an inherited structure does not outlive a new seam."""
        super().__init_subclass__(**options)
        for names, guard in ((PER_CALL, checked), (PER_TOKEN, explained)):
            for name in names.intersection(vars(cls)):
                if vars(cls)[name] is getattr(PositionalEncoding, name, None) or isinstance(vars(cls)[name], property):
                    continue
                setattr(cls, name, guard(vars(cls)[name], getattr(super(cls, cls), name, None)))
        if "seams" not in vars(cls) and not isinstance(cls.seams, property):
            cls.seams = frozenset(s for s in SEAMS if getattr(cls, s) is not getattr(PositionalEncoding, s))
        nearest = next(one for one in cls.__mro__ if vars(one).keys() & SAID_BY_STRUCTURE)
        if "structure" not in vars(nearest):
            cls.structure = PositionalEncoding.structure  # type: ignore[method-assign]
        if "heads" in vars(cls):
            cls.heads = _with_checked_heads(cls.heads)  # type: ignore[method-assign]

    def __init__(self, **configuration: Any) -> None:
        """Keeps the configuration, whatever its names and values; a constructor checks its own arguments (`checks`)."""
        super().__init__()
        self.configure(**configuration)

    def configure(self, **configuration: Any) -> None:
        """Says what this encoding is made of: for constructors that have more to say than the one above them said."""
        self.configuration = Configuration(configuration)
        self._identity = Identity(type(self), self.configuration)

    @property
    def identity(self) -> str:
        """The identity of an encoding in its tables: class, configuration and, if tables hold parameters, which ones."""
        return self._identity.by_parameters if self.learned_tables else self._identity.by_configuration

    @property
    def label(self) -> str:
        """The identity as messages say it, without digests."""
        return without_digests(self.identity)

    def extra_repr(self) -> str:
        return described(type(self), self.configuration)

    def __setattr__(self, name: str, value: Any) -> None:
        """Widens one of `exact_parameters` to float32: constructors and loaders assign what they made or read."""
        if name in self.exact_parameters and isinstance(value, nn.Parameter):
            value.data = _wide(value.data, value.data)
        super().__setattr__(name, value)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """What `to`, `half` and `bfloat16` call: the `exact_parameters` and their gradients are moved, and stay float32.

        A position multiplies their rounding: bfloat16's 2⁻⁹ of a frequency is 8 radians at position 4096.
        """
        kept = [one for name, one in self.named_parameters() if name in self.exact_parameters]
        exact = {id(one) for parameter in kept for one in (parameter, parameter.grad)}
        super()._apply(lambda tensor: _wide(fn(tensor), tensor) if id(tensor) in exact else fn(tensor), recurse)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Passes over STORED_ELSEWHERE, so that a checkpoint of another program loads strictly; nothing of it is used."""
        for name in STORED_ELSEWHERE:
            if name not in self._parameters and name not in self._buffers:
                state_dict.pop(prefix + name, None)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    @property
    def reads_vectors(self) -> bool:
        """Whether a bias or a finish reads rotated queries and keys otherwise than as their products."""
        return "bias" in self.seams or "finish" in self.seams

    # Tables: computed once per call for all layers, carried by the positions, known by their identity.

    @explained
    def prepare(self, at: Positions, dtype: torch.dtype = torch.float32) -> Positions:
        """The same positions carrying this encoding's tables; `dtype` is float64 where the model computes in float64."""
        if type(at) is not Positions or type(dtype) is not torch.dtype:
            check_arguments(PositionalEncoding.prepare, self, at, dtype)
        tables = self.tables(at, dtype)
        return carrying(at, self.identity, tables) if tables else at

    @explained
    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """What `prepare` computes, each [b, t, …]; nothing by default."""
        if type(at) is not Positions or type(dtype) is not torch.dtype:
            check_arguments(PositionalEncoding.tables, self, at, dtype)
        return ()

    @explained
    def tables_at(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """The tables that `at` carries, or fresh ones where it carries none. Raises ValueError for somebody else's."""
        if type(dtype) is not torch.dtype:
            check_arguments(PositionalEncoding.tables_at, self, at, dtype)
        wanted = working_dtype(dtype)
        if not at.tables:
            return self.tables(at, wanted)
        if self.identity not in at.tables:
            prepared = ", ".join(map(without_digests, at.tables))
            another = "another " if self.label in prepared else ""
            raise ValueError(
                f"positions: prepared by {prepared}, used with {another}{self.label}; "
                "call prepare() of the encoding that reads them"
            )
        tables = at.tables[self.identity]
        if tables[0].dtype != wanted:
            raise ValueError(
                f"positions: prepared in {tables[0].dtype}, but {dtype} needs {wanted}; call prepare(at, dtype={wanted})"
            )
        if not torch.compiler.is_compiling() and tables[0].is_inference() and torch.is_grad_enabled():
            return tuple(table.clone() for table in tables)  # prepared in inference mode: autograd cannot save those
        return tables

    # Hidden states: for methods that read them. Queries and keys no longer show them, so the positions carry what they say.

    def read_hidden(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None = None) -> Positions:
        """Positions that carry what this encoding takes from hidden states; `at` itself where it reads none.

        x      the hidden states of these tokens that go into the layer's projections
        past   the positions of the tokens before them in the same rows, as their own `read_hidden` returned them; None:
               there are none, or these are the keys of another sequence

        Called once a layer, before the seams: `Attention` does, and caches what is carried with the keys. What is
        returned holds new `states` under this encoding's `identity`, or other coordinates.
        """
        if not _plain(x, at, 3) or (past is not None and type(past) is not Positions):
            check_arguments(PositionalEncoding.read_hidden, self, x, at, past)
        return at

    # The four seams.

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        """x plus the encoding."""
        if not _plain(x, at, 3):
            check_arguments(PositionalEncoding.embed, self, x, at)
        return x

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        """Turns queries and keys; identity on values and outputs unless the method says so.

        The result goes to `out` where that is given, which may be x itself; it is x itself where nothing turns. Queries
        and keys may become wider (PoPE), queries more: `query_copies` for each head (RoPE++).
        """
        if not _plain(x, at, 4) or side not in SIDES:
            check_arguments(PositionalEncoding.rotate, self, x, at, side, out)
        return into(x, out)

    @checked
    def bias(
        self, q: Float[Tensor, "b h i d"], k: Float[Tensor, "b h j d"], at_q: Positions, at_k: Positions
    ) -> BiasFn | None:
        """The term added to the scaled logit; sees rotated q and k, with k expanded to the query heads."""
        return None

    @explained
    def finish(self, scores: Scores) -> Float[Tensor, "b h i d"]:
        """The output from all logits, before it is rounded: their softmax times the values."""
        return scores.mix(scores.weights(scores.logits))

    def softmax_scale(self, d_head: int) -> float:
        """What the product q·k is multiplied with before anything is added."""
        if type(d_head) is not int or d_head < 1:
            checks.whole(d_head=d_head)
        return 1 / math.sqrt(d_head)

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

    @_with_checked_heads
    def heads(self, start: int, stop: int) -> PositionalEncoding:
        """The encoding of query heads start … stop-1 alone. Every class's own `heads` is called with checked numbers.

        Raises ValueError unless 0 <= start < stop, and stop <= n_heads where the encoding is configured with n_heads.
        """
        return self

    @checked
    def largest_position(self, dtype: torch.dtype = torch.float32) -> int | None:
        """The largest position it can represent in that dtype; None where there is no limit."""
        return None

    # Checks at the door, shared by the encodings.

    @explained
    def check_coords(self, at: Positions, *, integers: bool = False) -> None:
        """Raises ValueError for the wrong number of axes, TypeError for reals where whole positions are needed."""
        if integers is not True and integers is not False:
            raise TypeError(f"integers: expected True or False, got {integers!r}")
        axes = 1 if at.coords.ndim == 2 else at.coords.shape[2]
        if axes != self.coordinate_axes or (self.coordinate_axes == 1 and at.coords.ndim == 3):
            raise ValueError(
                f"{type(self).__name__}: reads {self.coordinate_axes} coordinate(s) per token, "
                f"got coords {list(at.coords.shape)}"
            )
        if integers and at.coords.dtype not in INTEGERS:
            raise TypeError(f"{type(self).__name__}: needs integer positions, got {at.coords.dtype}")

    @explained
    def check_range(self, at: Positions, low: float, high: float, why: str) -> None:
        """Positions outside low … high: ValueError that names position and limit on the CPU, device assert elsewhere."""
        if type(why) is not str or not (
            type(low) in NUMBERS and type(high) in NUMBERS and -math.inf < low <= high < math.inf
        ):
            check_arguments(PositionalEncoding.check_range, self, at, low, high, why)
        check_between(at.coords, low, high, f"{type(self).__name__}: position", f": {why}")


def check_between(values: Tensor, low: float, high: float, name: str, why: str = "") -> None:
    """Values outside low … high: ValueError that names the first of them on the CPU, a device assert elsewhere."""
    if readable(values) and values.numel():  # one pass, for each decoded token
        least, largest = values.aminmax()
        if low <= least.item() and largest.item() <= high:
            return
    check_accepted(values, (values >= low) & (values <= high), f"{name} {{}} is outside {low} … {high}{why}")


def check_accepted(values: Tensor, accepted: Tensor, message: str) -> None:
    """Values that are not accepted: the same, with the first of them in place of "{}" in the message."""
    if not readable(values):
        torch._assert_async(accepted.all(), message)
    elif not bool(accepted.all()):
        raise ValueError(message.replace("{}", str(values[~accepted][0].tolist())))


def _plain(x: Tensor, at: Positions, axes: int) -> bool:
    """Whether x is a dense tensor of real numbers with so many axes and `at` are positions: the usual case, quickly."""
    if type(x) is not Tensor or type(at) is not Positions:
        return False
    return x.layout is torch.strided and not x.is_nested and x.ndim == axes and x.is_floating_point()


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


def carrying(at: Positions, identity: str, tables: tuple[Tensor, ...]) -> Positions:
    """The same positions with these tables too."""
    return at.replaced(tables={**at.tables, identity: tables})


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


def for_heads(
    encoding: PositionalEncoding, table: Float[Tensor, "b t g ..."], x: Float[Tensor, "b h t d"], what: str
) -> Float[Tensor, "b h t ..."]:
    """A table of g key heads for each of the h heads of x: h/g heads in a row share one.

    what    what the table holds, in the plural, for the message
    Raises ValueError if g does not divide h.
    """
    heads, own = x.shape[1], table.shape[2]
    if heads % own:
        raise ValueError(f"{type(encoding).__name__}: x: {heads} heads cannot share the {what} of {own}")
    return table.transpose(1, 2).repeat_interleave(heads // own, dim=1)


def own_rows(b: Int[Tensor, "..."], at_q: Positions, at_k: Positions) -> Int[Tensor, "..."]:
    """b of a BiasFn that reads positions alone, or 0 where all rows have the same: it is then computed once for a batch.
    A backend that asks for one pair at a time keeps its b."""
    return b.new_zeros([1] * b.ndim) if b.ndim and repeat_one_row(at_q, at_k) else b


def into(x: Tensor, out: Tensor | None) -> Tensor:
    """x, or `out` holding it. Raises ValueError for an `out` of another shape or dtype."""
    if out is None or out is x:
        return x
    if not isinstance(out, Tensor) or out.is_nested:
        raise TypeError(f"out: expected a tensor, got {type(out).__name__}")
    if out.shape != x.shape or out.dtype != x.dtype:
        raise ValueError(f"out: expected {x.dtype} {list(x.shape)} as x is, got {out.dtype} {list(out.shape)}")
    return out.copy_(x)


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


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in: float64 for float64, float32 for everything else."""
    if type(dtype) is not torch.dtype:
        raise TypeError(f"dtype: expected a floating torch.dtype, got {dtype!r}")
    return torch.float64 if dtype == torch.float64 else torch.float32


def exact_dtype() -> torch.dtype:
    """The dtype in which fresh `exact_parameters` are computed: torch's default, or float32 where that is narrower."""
    return working_dtype(torch.get_default_dtype())


def _wide(converted: Tensor, tensor: Tensor) -> Tensor:
    """What `tensor` was converted to; `tensor` in float32 on the same device where that is narrower than float32."""
    if converted.is_floating_point() and converted.itemsize < torch.float32.itemsize:
        return tensor.to(converted.device, torch.float32)
    return converted


def full_precision(tensor: Tensor) -> contextlib.AbstractContextManager[Any]:
    """Autocast off: positions are computed in float32 or float64 whatever the caller has switched on."""
    kind = tensor.device.type
    if kind == "meta" or not torch.is_autocast_enabled(kind):  # meta: nothing is computed, autocast does not know it
        return contextlib.nullcontext()  # autocast would cost 4 µs for each decoded token
    return torch.autocast(device_type=kind, enabled=False)


def check_embeddings(encoding: PositionalEncoding, x: Tensor, at: Positions) -> None:
    """Raises ValueError for embeddings x [b, t, d] of another width than the encoding's, and as `check_tokens` does."""
    check_width(encoding, "d_model", x.shape[-1], encoding.d_model)  # type: ignore[arg-type]
    check_tokens(encoding, x, at, axis=1)


def added_to_output(addend: Addend) -> Callable[[Any, Scores], Tensor]:
    """A `finish` that adds to the default one. Backends compute the default as if there were none, and `attend` adds.

    addend  of the encoding, v, at_q, at_k and seen, as `Scores` has them: what is added to the output, [b, h, i, d]
    """

    @functools.wraps(addend)
    def finish(self: PositionalEncoding, scores: Scores) -> Tensor:
        out = PositionalEncoding.finish(self, scores)
        return out + addend(self, scores.v, scores.at_q, scores.at_k, scores.seen)

    finish.addend = addend  # type: ignore[attr-defined]
    return finish


def addend_of(encoding: PositionalEncoding) -> Callable[..., Tensor] | None:
    """What the encoding adds to the default finish, a function of v, at_q, at_k and seen; None: its finish is no such."""
    if "finish" not in encoding.seams:
        return None
    finish: Any = encoding.finish
    addend = getattr(finish, "addend", None)
    return None if addend is None else functools.partial(addend, finish.__self__)


def distance_terms(encoding: PositionalEncoding) -> tuple[DistanceBias, ...] | None:
    """The biases of the distance alone whose sum is the bias; none where there is no bias, None where it is another."""
    structure = encoding.structure()
    if type(structure) is Distances:
        return structure.terms
    return None if "bias" in encoding.seams else ()


def rotation_of(encoding: PositionalEncoding) -> Rotation:
    """How it rotates, as far as its structure says."""
    structure = encoding.structure()
    if type(structure) is Regions:
        return structure.rotation
    if type(structure) is Rotation:
        return structure
    return Rotation(None, None) if "rotate" in encoding.seams else Rotation((), ())


def rotated(
    encoding: PositionalEncoding, q: Float[Tensor, "b h i d"], k: Float[Tensor, "b g j d"], at_q: Positions, at_k: Positions
) -> tuple[Float[Tensor, "b h i d"], Float[Tensor, "b g j d"]]:
    """Queries and keys turned: both at once where the encoding's structure says how, else `rotate` for each."""
    structure = encoding.structure()
    if type(structure) is Regions:
        structure = structure.rotation
    if type(structure) is Rotation and structure.both is not None:
        return structure.both(q, k, at_q, at_k)
    return encoding.rotate(q, at_q, "query"), encoding.rotate(k, at_k, "key")


_NOTHING = PositionalEncoding()  # made once: a compiler cannot trace the digest of a configuration


class AbsoluteEncoding(PositionalEncoding):
    """Added to the embeddings, at layer 0 only: deeper layers find it in the residual stream, and have NoPE.

    A class says what is added in `tables`, or overrides `embed`.
    """

    traits = frozenset({"local", "norm_preserving"})
    d_model: int

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        (table,) = self.tables_at(at, x.dtype)
        return (x.to(table.dtype) + table).to(x.dtype)

    def at_layer(self, n: int) -> PositionalEncoding:
        checks.whole(0, n=n)
        return self if n == 0 else _NOTHING


class DistanceBias(PositionalEncoding):
    """A bias of the distance alone: ALiBi, T5. Say `at_distance`; `bias` follows, and fast paths can use it."""

    reads_vectors = False

    @abstractmethod
    def at_distance(self, delta: Num[Tensor, "n"]) -> Float[Tensor, "h n"]:
        """The bias of every head where the query is `delta` positions after the key."""

    def structure(self) -> Structure | None:
        return Distances((self,))

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        """With consecutive positions on both sides b[i-j] is a vector, not a matrix: queries + keys - 1 entries."""
        self.check_coords(at_q)
        self.check_coords(at_k)
        if at_q.consecutive_in == at_k.consecutive_in == "row" and at_q.length and at_k.length:
            keys = at_k.length
            offset = at_q.coords[:, :1] - at_k.coords[:, :1]
            delta = offset + torch.arange(1 - keys, at_q.length, device=offset.device)  # [b, n]
            vector = one_per_head(self.at_distance(delta.reshape(-1)), q).to(q.dtype).unflatten(1, delta.shape)  # [h, b, n]
            return lambda b, h, i, j: vector[h, own_rows(b, at_q, at_k), i - j + (keys - 1)]
        query, key = at_q.coords, at_k.coords

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            b = own_rows(b, at_q, at_k)
            delta = query[b, i] - key[b, j]
            flat = one_per_head(self.at_distance(delta.reshape(-1)), q).to(q.dtype)
            return flat[h, torch.arange(delta.numel(), device=delta.device).view(delta.shape)]

        return of_pair


def check_distances(delta: Tensor) -> None:
    """Raises TypeError or ValueError for what is no tensor [n] of integers or reals."""
    if type(delta) is not Tensor or delta.layout is not torch.strided or delta.ndim != 1 or delta.is_complex():
        check_arguments(DistanceBias.at_distance, None, delta)


def one_per_head(bias: Float[Tensor, "h n"], q: Tensor) -> Tensor:
    """The bias, after a check that it has the heads of q, [b, h, i, d].

    Raises ValueError otherwise: with fewer heads, kernels would read past its end; with more, the last would be lost.
    """
    if bias.shape[0] != q.shape[1]:
        raise ValueError(
            f"the encoding has a bias for {bias.shape[0]} heads, q has {q.shape[1]}: make it with n_heads={q.shape[1]}, "
            "or give every slice of the heads its own with encoding.heads(start, stop)"
        )
    return bias
