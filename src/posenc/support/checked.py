"""Arguments are checked against their annotations: one decorator for every public function off the hot path.

    @checked
    def shift_matrix(k: float, d_model: int, base: float = 10000.0) -> Float[Tensor, "d d"]: ...

    shift_matrix("3", 8)      ValueError: k: expected a finite number, got '3'

    int                       a whole number that fits into 64 bits
    float                     a finite number
    bool, str, a class        an instance of it; True is not a number
    Literal["half", …]        one of these words
    Sequence[X], tuple[X, …]  a list or tuple of X;  Mapping[str, X]  a mapping to X
    Float[Tensor, "b t d"]    a dense tensor of real numbers with these axes (Int, Num, Bool alike); "#b" may be 1
    X | None                  None as well
    what is not known here    anything

A word means the same wherever it names an argument, so its range stands here once: LEAST and POSITIVE. An axis has one
size in all tensors of a call, and all of them are on one device. Positions named `at`, `at_q` or `at_k` are those of axis
t, i or j.

`checked` costs 2 to 5 µs a call; `checked_on_failure`, for what is called for every token, checks after a failure.
"""

from __future__ import annotations

import builtins
import collections.abc
import functools
import inspect
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, ParamSpec, TypeVar

from posenc.support.checks import is_finite, is_whole, shown

P = ParamSpec("P")
R = TypeVar("R")

INT64 = 2**63 - 1  # the largest whole number that torch computes with
LEAST = {
    **dict.fromkeys(("n", "d", "d_model", "d_head", "n_heads", "n_kv_heads", "n_layers", "layers", "rotary_dim"), 1),
    **dict.fromkeys(("axes", "batch", "length", "trained_length", "max_positions"), 1),
    **dict.fromkeys(("height", "width", "size", "clocks"), 1),
    **dict.fromkeys(("rank", "prefix", "rest", "layer", "right"), 0),
}
POSITIVE = (
    *("base", "factor", "alpha", "attention_factor", "mscale", "mscale_all_dim", "beta_fast", "beta_slow", "fraction"),
    *("low_freq_factor", "high_freq_factor", "bias_max", "cos_sin_scale", "softmax_scale", "std", "eps", "norm_eps"),
)
POSITIONED = {"at": ("b", "t"), "at_q": ("b", "i"), "at_k": ("b", "j")}
CHOICES = {
    (
        "half",
        "interleaved",
    ): "half is that of rotate_half (LLaMA and Qwen on the hub, GPT-NeoX), interleaved that of RoPE's "
    "paper, GPT-J and Meta's own files"
}
REMEDIES = {
    "Positions": "Positions.arange(batch, length) makes plain ones",
    "Frequencies": "ask a family by length for at_length(n) first",
}


class Rule(NamedTuple):
    """Whether a value is accepted; what is expected, in words; which error says so; a tensor's axes; what to do."""

    accepts: Callable[[Any], bool]
    expected: str
    error: type[Exception] = TypeError
    axes: tuple[str, ...] = ()
    remedy: str = ""

    def message(self, name: str, got: str) -> str:
        return f"{name}: expected {self.expected}, got {got}" + (f"; {self.remedy}" if self.remedy else "")


def checked(function: Callable[P, R], contract: Callable[..., Any] | None = None) -> Callable[P, R]:
    """The function behind a check of its arguments. Raises TypeError or ValueError that names the argument.

    `contract` is the method whose annotations say what is expected, the function itself if left out.
    """
    specified = inspect.unwrap(contract or function)
    compiling = sys.modules["torch"].compiler.is_compiling if "torch" in sys.modules else bool  # bool() is False

    @functools.wraps(function)
    def check_and_call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not compiling():
            _check(specified, args, kwargs)
        return function(*args, **kwargs)

    return check_and_call


def checked_on_failure(function: Callable[P, R], contract: Callable[..., Any] | None = None) -> Callable[P, R]:
    """The function, unchanged. If a call fails, its arguments are checked, so that the error names the wrong one.

    For what is called for every token: it costs 0.1 µs.
    """
    specified = inspect.unwrap(contract or function)
    compiling = sys.modules["torch"].compiler.is_compiling if "torch" in sys.modules else bool

    @functools.wraps(function)
    def call_and_explain(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            if not compiling():
                _explain(specified, args, kwargs, error)
            raise

    return call_and_explain


def _explain(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], failure: Exception) -> None:
    """Raises what the check of the arguments says, unless the failure's own message begins with one of their names."""
    if re.search(rf"(^|: )({'|'.join(inspect.signature(function).parameters)})[:,]", str(failure)):
        return
    try:
        _check_missing(function, args, kwargs)
        _check(function, args, kwargs)
    except (TypeError, ValueError) as error:
        raise error from None


def _check_missing(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises TypeError for the first argument that was left out and has no default."""
    (names, _, rules), parameters = _rules(function), inspect.signature(function).parameters
    for name in names[len(args) :]:
        if parameters[name].default is inspect.Parameter.empty and name not in kwargs and name in rules:
            raise TypeError(rules[name].message(name, "nothing"))


def checked_heads(heads: Callable[..., R], contract: Callable[..., Any] | None = None) -> Callable[..., R]:
    """A `heads` method that is called with whole numbers 0 <= start < stop, up to the configuration's n_heads."""

    @functools.wraps(heads)
    def checked_heads(self: Any, start: int, stop: int) -> R:
        n_heads = self.configuration.get("n_heads")
        whole = all(is_whole(bound) for bound in (start, stop))
        if not whole or not 0 <= start < stop or (is_whole(n_heads) and stop > n_heads):
            upper = f" <= n_heads={n_heads}" if is_whole(n_heads) else ""
            raise ValueError(
                f"{type(self).__name__}: heads: expected whole numbers 0 <= start < stop{upper}, "
                f"got start={start!r}, stop={stop!r}"
            )
        return heads(self, start, stop)

    return checked_heads


# How the arguments of a method that an encoding overrides are checked.
GUARDS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("bias", "at_length"), checked),
    **dict.fromkeys(("prepare", "tables", "read_hidden", "embed", "rotate", "finish", "softmax_scale"), checked_on_failure),
    **dict.fromkeys(("at_layer", "at_distance", "largest_position"), checked_on_failure),
    "heads": checked_heads,
}


def guard(cls: type, base: type) -> None:
    """Puts the check of GUARDS before the methods of an encoding's class that are not those of the base."""
    for name in GUARDS.keys() & vars(cls).keys():
        method, inherited = vars(cls)[name], getattr(super(cls, cls), name, None)
        if method is not getattr(base, name, None) and not isinstance(method, property):
            setattr(cls, name, GUARDS[name](method, inherited))


def check_fields(record: Any) -> None:
    """The same for a dataclass, from its __post_init__."""
    if "torch" in sys.modules and sys.modules["torch"].compiler.is_compiling():
        return
    kind: Callable[..., Any] = type(record)
    rules = _rules_of_fields(kind)
    _check_given({name: getattr(record, name) for name in rules}, rules)


def _check(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    names, rest, rules = _rules(function)
    arguments = dict(zip(names, args, strict=False))
    arguments.update(kwargs)
    _check_given(arguments, rules)
    if rest is not None:
        for argument in args[len(names) :]:
            _check_given({rest: argument}, rules)


def _check_given(arguments: dict[str, Any], rules: Mapping[str, Rule]) -> None:
    tensors = {}
    for name, value in arguments.items():
        rule = rules.get(name)
        if rule is None:
            continue
        if not rule.accepts(value):
            raise rule.error(rule.message(name, _got(value)))
        if rule.axes and _is_tensor(value):
            tensors[name] = (value, rule.axes)
    if tensors:
        _check_together(tensors, {name: value for name, value in arguments.items() if name in POSITIONED and name in rules})


def _got(value: Any) -> str:
    """Words and numbers as they are, objects by their class."""
    known = value is None or isinstance(value, (str, bytes, int, float, list, tuple, dict)) or hasattr(value, "dtype")
    return shown(value) if known else type(value).__name__


def _check_together(tensors: dict[str, tuple[Any, tuple[str, ...]]], positions: dict[str, Any]) -> None:
    """Raises ValueError if axes of one name have different sizes, or if tensors are on different devices."""
    sizes: dict[str, tuple[int, str]] = {}
    first, (of_first, _) = next(iter(tensors.items()))
    for name, (tensor, axes) in tensors.items():
        if tensor.device != of_first.device:
            raise ValueError(f"{name}: expected to be on {of_first.device} as {first} is, got {tensor.device}")
        if len(axes) != tensor.ndim or any(axis.startswith("*") for axis in axes):
            continue
        for axis, size in zip(axes, tensor.shape, strict=True):
            if (axis.startswith("#") and size == 1) or not axis.removeprefix("#").isalnum():
                continue
            axis = axis.removeprefix("#")
            expected, where = sizes.setdefault(axis, (int(axis) if axis.isdigit() else size, name))
            if size != expected:
                also = f", as in {where}" if where != name else ""
                raise ValueError(
                    f"{name}: expected [{', '.join(axes)}] with {axis}={expected}{also}, got {list(tensor.shape)}"
                )
    broadcast = {name: tensor.shape for name, (tensor, axes) in tensors.items() if axes[0].startswith("*#")}
    if len(broadcast) > 1:
        _check_broadcast(broadcast)
    for name, at in positions.items():
        batch, tokens = POSITIONED[name]
        if at is not None and at.coords.device != of_first.device:
            raise ValueError(f"{name}: expected to be on {of_first.device} as {first} is, got {at.coords.device}")
        if at is None or tokens not in sizes:
            continue
        (length, where), b = sizes[tokens], sizes.get(batch, (1, ""))[0]
        if at.length != length or (at.batch != 1 and at.batch != b):
            raise ValueError(f"{name}: has positions [{at.batch}, {at.length}] for tokens [{b}, {length}] of {where}")


def _check_broadcast(shapes: dict[str, Any]) -> None:
    try:
        sys.modules["torch"].broadcast_shapes(*shapes.values())
    except RuntimeError:
        got = " and ".join(str(list(shape)) for shape in shapes.values())
        raise ValueError(f"{', '.join(shapes)}: expected shapes that broadcast, got {got}") from None


# Annotations as rules ------------------------------------------------------------------------------------------------


@functools.cache
def _rules(function: Callable[..., Any]) -> tuple[tuple[str, ...], str | None, dict[str, Rule]]:
    """Names of positional arguments, the name of those that come after (*parts), and the rule of every argument."""
    parameters = inspect.signature(function).parameters
    positional = tuple(n for n, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    rest = next((n for n, p in parameters.items() if p.kind is p.VAR_POSITIONAL), None)
    hints = {n: p.annotation for n, p in parameters.items() if p.kind is not p.VAR_KEYWORD and p.annotation is not p.empty}
    return positional, rest, _read(hints, vars(sys.modules[function.__module__]))


@functools.cache
def _rules_of_fields(kind: Callable[..., Any]) -> dict[str, Rule]:
    return _read(dict(kind.__annotations__), vars(sys.modules[kind.__module__]))


def _read(annotations: dict[str, Any], names: dict[str, Any]) -> dict[str, Rule]:
    known = _Names({**vars(builtins), "PathLike": os.PathLike, **names, **{kind: _Shaped(kind) for kind in DTYPES}})
    hints = {name: eval(hint, {}, known) if isinstance(hint, str) else hint for name, hint in annotations.items()}
    rules = {name: _device(hint) if name == "device" else _rule(hint, name) for name, hint in hints.items()}
    return {name: rule for name, rule in rules.items() if rule is not None}


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by tools that look through frames
            raise KeyError(name)
        return Any  # imported for type checkers only


class _Shaped:
    """Float, Int, Num and Bool of posenc.support.shapes, which modules import for type checkers only."""

    def __init__(self, kind: str, axes: str = "") -> None:
        self.kind, self.axes = kind, axes

    def __getitem__(self, tensor_and_axes: tuple[Any, str]) -> _Shaped:
        return _Shaped(self.kind, tensor_and_axes[1])

    def __or__(self, other: Any) -> Any:
        return _Either((self, other))

    def __ror__(self, other: Any) -> Any:
        return _Either((other, self))


class _Either(tuple[Any, ...]):
    def __or__(self, other: Any) -> _Either:
        return _Either((*self, other))


DTYPES = {"Float": "real numbers", "Int": "whole numbers", "Num": "numbers", "Bool": "booleans"}


def _rule(hint: Any, name: str) -> Rule | None:
    """None where anything is accepted."""
    if hint is Any:
        return None
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, _Either) or origin in (typing.Union, types.UnionType):
        return _either(tuple(hint) if isinstance(hint, _Either) else inner, name)
    if isinstance(hint, _Shaped):
        return _tensor(hint)
    if hint is None or hint is type(None):
        return Rule(lambda value: value is None, "None")
    if hint is int:
        least = LEAST.get(name, -INT64)
        words = f"a whole number from {least}" if name in LEAST else "a whole number of up to 64 bits"
        return Rule(lambda value: is_whole(value) and least <= value <= INT64, words, ValueError)
    if hint is float and name in POSITIVE:
        return Rule(lambda value: is_finite(value) and value > 0, "a positive number", ValueError)
    if hint is float:
        return Rule(is_finite, "a finite number", ValueError)
    if hint is bool:
        return Rule(lambda value: isinstance(value, bool), "True or False")
    if origin is typing.Literal:
        words = f"one of {', '.join(map(repr, inner))}"
        return Rule(
            lambda value: isinstance(value, str) and value in inner, words, ValueError, remedy=CHOICES.get(inner, "")
        )
    if origin is not None:
        return _generic(origin, inner)
    if isinstance(hint, type):
        return _instance(hint)
    return None


def _device(hint: Any) -> Rule:
    """A torch.device or its name."""

    def accepts(value: Any) -> bool:
        if value is None:
            return type(None) in typing.get_args(hint)
        try:
            return isinstance(value, (str, sys.modules["torch"].device)) and bool(sys.modules["torch"].device(value).type)
        except RuntimeError:
            return False

    return Rule(accepts, "a device such as 'cpu' or 'cuda:0'", ValueError)


def _either(hints: tuple[Any, ...], name: str) -> Rule | None:
    rules = [_rule(hint, name) for hint in hints]
    if None in rules:
        return None
    known = [rule for rule in rules if rule is not None]
    axes = next((rule.axes for rule in known if rule.axes), ())
    remedy = next((rule.remedy for rule in known if rule.remedy), "")
    words = " or ".join(rule.expected for rule in known)
    error = ValueError if any(rule.error is ValueError for rule in known) else TypeError
    return Rule(lambda value: any(rule.accepts(value) for rule in known), words, error, axes, remedy)


def _instance(kind: type) -> Rule | None:
    if kind.__module__ == "torch" and kind.__name__ == "Tensor":
        return Rule(lambda value: isinstance(value, kind) and _dense(value), "a dense tensor")
    if getattr(kind, "_is_protocol", False) and not getattr(kind, "_is_runtime_protocol", False):
        return None
    if kind.__name__ == "PositionalEncoding":
        return Rule(lambda value: _is_made(value, kind), "a PositionalEncoding such as posenc.create('rope', …)")
    words = kind.__name__ if kind.__name__.endswith("s") else "a string" if kind is str else f"a {kind.__name__}"
    return Rule(lambda value: isinstance(value, kind), words, remedy=REMEDIES.get(kind.__name__, ""))


def _is_made(encoding: Any, kind: type) -> bool:
    """Whether it is an encoding. Raises TypeError for one whose constructor has not called the one above it."""
    if isinstance(encoding, kind) and "configuration" not in vars(encoding):
        raise TypeError(
            f"{type(encoding).__name__}: expected super().__init__(…) in its constructor with each of its arguments by "
            "name, got an encoding without a configuration"
        )
    return isinstance(encoding, kind)


def _generic(origin: Any, inner: tuple[Any, ...]) -> Rule | None:
    if origin is collections.abc.Callable:
        return Rule(callable, "a function")
    if not isinstance(origin, type):
        return None
    if issubclass(origin, collections.abc.Mapping):
        of_values = _rule(inner[1], "") if len(inner) == 2 else None
        return Rule(
            lambda value: isinstance(value, origin) and (of_values is None or all(map(of_values.accepts, value.values()))),
            "a mapping" + (f" whose values are each {of_values.expected}" if of_values else ""),
        )
    if issubclass(origin, collections.abc.Iterable) and inner:
        return _several(origin, inner)
    return Rule(lambda value: isinstance(value, origin), f"a {origin.__name__}")


def _several(origin: type, inner: tuple[Any, ...]) -> Rule:
    """A tuple of given kinds, or a list or tuple of any length of one kind; what counts as Iterable may be used up."""
    if origin is tuple and len(inner) > 1 and inner[1] is not Ellipsis:
        each = [_rule(hint, "") for hint in inner]
        return Rule(
            lambda value: (
                isinstance(value, (tuple, list))
                and len(value) == len(each)
                and all(rule is None or rule.accepts(item) for rule, item in zip(each, value, strict=True))
            ),
            f"{len(inner)} values: {', '.join(rule.expected if rule else 'anything' for rule in each)}",
            ValueError,
        )
    rule = _rule(inner[0], "")
    kinds: Any = origin if origin in (list, set, frozenset) else (list, tuple, range)
    if origin is collections.abc.Iterable:
        kinds = collections.abc.Iterable
    words = f"a sequence, each {rule.expected}" if rule else "a sequence"

    def accepts(value: Any) -> bool:
        if hasattr(value, "dtype"):  # tensors and arrays
            return False
        several = (isinstance(value, kinds) and not isinstance(value, (str, bytes))) or _is_sequence(value, origin)
        looked_at = several and (isinstance(value, collections.abc.Collection))
        return several and (rule is None or not looked_at or all(map(rule.accepts, value)))

    return Rule(accepts, words, rule.error if rule else TypeError)


def _is_sequence(value: Any, origin: type) -> bool:
    """Sequences of ours, such as Frequencies."""
    return isinstance(value, origin) and not isinstance(value, (str, bytes, Mapping)) and not hasattr(value, "dtype")


def _tensor(shaped: _Shaped) -> Rule:
    axes = tuple(shaped.axes.split())
    open_ended = any(axis.startswith("*") for axis in axes)

    def accepts(value: Any) -> bool:
        if not _is_tensor(value) or not _dense(value) or not _holds(shaped.kind, value.dtype):
            return False
        rank: int = value.ndim
        return rank >= len(axes) - 1 if open_ended else rank == len(axes)

    words = f"a tensor [{', '.join(axes)}] of {DTYPES[shaped.kind]}"
    return Rule(accepts, words, ValueError, axes)


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _dense(tensor: Any) -> bool:
    """Neither sparse nor nested."""
    return tensor.layout is sys.modules["torch"].strided and not tensor.is_nested


def _holds(kind: str, dtype: Any) -> bool:
    boolean = dtype is sys.modules["torch"].bool
    real = dtype.is_floating_point
    whole = not real and not dtype.is_complex and not boolean
    return bool({"Float": real, "Int": whole, "Bool": boolean, "Num": real or whole}[kind])
