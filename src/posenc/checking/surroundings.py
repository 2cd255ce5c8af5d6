"""Laws about what surrounds a call: dtypes, autocast, modes, threads, memory, and what happens to the module."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from posenc.checking.engine import Measured, apart, budget, default_dtype, law, need_module, need_torch, within_reach, worst
from posenc.checking.errors import Declined, NotApplicable
from posenc.checking.preemption import lines_of, preempted
from posenc.checking.subject import FIRST, Seam, Subject, arange, numbers

ALL: tuple[Seam, ...] = ("rotate", "embed", "table", "bias", "attention")
BF16 = 2.0**-9  # half a unit in the last place below 1
NEAR_AND_FAR = ({"length": 8, "start": 0}, {"length": 8, "start": 3001}, {"length": 8, "start": 65_530})


def _compared(subject: Subject, actual: Tensor, expected: Tensor, farthest: int, what: str) -> Measured:
    return apart(actual.float(), expected.float(), budget(subject, expected, farthest), what)


@law(*ALL, bug="cache key", must_run=True, inputs=({"length": 8, "start": 0},), start=0)
def the_same_call_gives_the_same(subject: Subject, length: int, start: int) -> Measured:
    """Three equal calls give equal results, bit by bit."""
    first = subject.sample(length, start).clone()
    again = [subject.sample(length, start).clone() for _ in range(2)]
    return worst(*(apart(repeat, first, 0.0, "a repeated call") for repeat in again))


@law(*ALL, bug="not finite", must_run=True, inputs=NEAR_AND_FAR, start=0)
def no_number_is_nan(subject: Subject, length: int, start: int) -> Measured:
    """Every number of a result is one; an infinity may hide a key."""
    within_reach(subject, start + length)
    return Measured(float(subject.sample(length, start).isnan().sum()), 0.0, "how many numbers are NaN")


@law(*ALL, bug="strides", must_run=True, inputs=({"length": 5},))
def forward_writes_nothing(subject: Subject, length: int) -> Measured:
    """A call changes neither its tokens nor its positions."""
    at = arange(0, length)
    if subject.seam == "rotate":
        inputs = [subject.tokens(1, length).unflatten(-1, (subject.n_heads, -1)).transpose(1, 2).contiguous(), at]
    elif subject.seam == "embed":
        inputs = [subject.tokens(1, length), at]
    elif subject.seam == "attention":
        inputs = [*subject.heads(1, length, length), at, at.clone()]
    else:
        inputs = [at] if subject.seam == "table" else [at, at.clone()]
    before = [x.clone() for x in inputs]
    subject(*inputs)
    return worst(*(apart(x, was, 0.0, "the input before and after") for x, was in zip(inputs, before, strict=True)))


@law("rotate", "embed", "attention", bug="strides", inputs=({"length": 5},))
def strides_do_not_matter(subject: Subject, length: int) -> Measured:
    """Tokens that lie otherwise in memory (transposed, part of wider storage) give the same."""
    at = arange(0, length)
    dense = list(subject.heads(2, length, length)) if subject.seam == "attention" else [_tokens(subject, length)]
    ats = [at.repeat(2, 1)] * (2 if subject.seam == "attention" else 1)
    expected = subject(*[tensor.clone() for tensor in dense], *ats)
    spread = [_spread(tensor) for tensor in dense]
    return _compared(subject, subject(*spread, *ats), expected, length, "dense and strided tokens")


def _tokens(subject: Subject, length: int) -> Tensor:
    x = subject.tokens(2, length)
    return x.unflatten(-1, (subject.n_heads, -1)).transpose(1, 2).contiguous() if subject.seam == "rotate" else x


def _spread(x: Tensor) -> Tensor:
    """The same numbers as every other channel of wider, transposed storage."""
    wide = torch.full((*x.shape[:-3], x.shape[-2], *x.shape[-3:-2], 2 * x.shape[-1]), 7.0)
    view = wide.transpose(-2, -3)[..., ::2] if x.ndim > 2 else wide[..., ::2]
    view.copy_(x)
    return view


@law(*ALL, bug="default dtype", inputs=({"length": 8, "start": 0}, {"length": 8, "start": 3001}), start=0)
def default_dtype_does_not_matter(subject: Subject, length: int, start: int) -> Iterator[Measured]:
    """The same under torch.set_default_dtype(bfloat16) and (float64)."""
    need_torch(subject)
    within_reach(subject, start + length)
    unused, expected = subject.fresh(), _sample(subject, length, start)
    for dtype in (torch.bfloat16, torch.float64):
        with default_dtype(dtype), subject.kept.as_before():
            actual = _sample(unused.fresh(), length, start)
        yield _compared(subject, actual, expected, start + length, f"default dtype {dtype}")


@law(*ALL, bug="autocast", inputs=NEAR_AND_FAR, start=0)
def autocast_does_not_matter(subject: Subject, length: int, start: int) -> Measured:
    """The same inside autocast(bfloat16), up to the rounding of tokens to 16 bits that autocast is asked for."""
    need_torch(subject)
    within_reach(subject, start + length)
    unused, expected = subject.fresh(), _sample(subject, length, start)
    with torch.autocast("cpu", dtype=torch.bfloat16), subject.kept.as_before():
        actual = _sample(unused, length, start)
    size = float(expected.detach().abs().nan_to_num(posinf=0.0).max())
    allowed = budget(subject, expected, start + length) + 16 * BF16 * size
    return apart(actual.float(), expected.float(), allowed, "inside autocast and outside")


@law("rotate", "embed", bug="low precision rotation", inputs=NEAR_AND_FAR, start=0)
def tokens_of_16_bits_lose_16_bits_only(subject: Subject, length: int, start: int) -> Measured:
    """bfloat16 tokens give the float32 result up to five roundings: cosine, sine, two products and their sum."""
    need_torch(subject)
    within_reach(subject, start + length)
    at = arange(start, length, 2)
    x = _tokens(subject, length).bfloat16()
    expected = subject(x.float(), at)
    actual = subject(x, at)
    allowed = budget(subject, expected, start + length) + 5 * BF16 * float(expected.detach().abs().max()) * math.sqrt(2)
    return apart(actual.float(), expected.float(), allowed, f"bfloat16 (result {actual.dtype}) and float32")


@law(*ALL, bug="cache key", inputs=({"length": 8, "start": 0}, {"length": 8, "start": 500}), start=0)
def other_dtypes_do_not_matter(subject: Subject, length: int, start: int) -> Iterator[Measured]:
    """A first call on bfloat16 tokens, in autocast or under that default dtype does not change later ones in float32."""
    need_torch(subject)
    within_reach(subject, start + length)
    unused, expected = subject.fresh(), _sample(subject, length, start)
    ways: dict[str, contextlib.AbstractContextManager[Any]] = {
        "on bfloat16 tokens": contextlib.nullcontext(),
        "in autocast": torch.autocast("cpu", dtype=torch.bfloat16),
        "under the default dtype bfloat16": default_dtype(torch.bfloat16),
    }
    tried = False
    for way, inside in ways.items():
        with subject.kept.as_before():
            this = unused.fresh()
            try:
                with inside:
                    if way == "on bfloat16 tokens":
                        _on_bfloat16(this, length, start)
                    else:
                        _sample(this, length, start)
            except Exception:  # such a call is refused
                continue
            after = _sample(this, length, start)
        tried = True
        yield _compared(subject, after, expected, start + length, f"float32, after a call {way}")
    if not tried:
        raise Declined("not declared", "it refuses bfloat16")


def _on_bfloat16(subject: Subject, length: int, start: int) -> None:
    at = arange(start, length)
    if subject.seam == "attention":
        subject(*(x.bfloat16() for x in subject.heads(1, length, length)), at, at)
    elif subject.seam in ("rotate", "embed"):
        subject(_tokens(subject, length)[:1].bfloat16(), at)


def _sample(subject: Subject, length: int, start: int) -> Tensor:
    """A row of tokens from position `start`; queries see keys from position 0 too, at large distances."""
    n, at = numbers(1, length), arange(start, length)
    if not start or subject.seam not in ("bias", "attention"):
        return subject.read(n, at)
    return subject.read(n, at, torch.cat([n, n], 1), torch.cat([arange(0, length), at], 1))


@law("rotate", "embed", "attention", bug="gradient", inputs=({"length": 4, "start": 3}, {"length": 4, "start": 0}), start=0)
def gradients(subject: Subject, length: int, start: int) -> Measured:
    """The gradient with respect to the tokens is what finite differences give."""
    need_torch(subject)
    tensors = list(subject.heads(1, length, length)) if subject.seam == "attention" else [_tokens(subject, length)[:1]]
    at = arange(start, length)
    ats = [at, at] if subject.seam == "attention" else [at]
    dtype, step = (torch.float64, 1e-4) if _computes_in_float64(subject, tensors, ats) else (torch.float32, 1e-2)
    step = 0.1 if subject.rounding else step
    inputs = [x.to(dtype).requires_grad_() for x in tensors]
    out = subject(*inputs, *ats)
    upstream = subject.draw("upstream", *out.shape, dtype=dtype)
    if not out.requires_grad:
        return Measured(math.inf, 0.0, "no gradient reaches the tokens")
    gradients = torch.autograd.grad((out * upstream).sum(), inputs, allow_unused=True)
    measured = []
    for n, (tensor, gradient) in enumerate(zip(inputs, gradients, strict=True)):
        along = subject.draw(f"along {n}", *tensor.shape, dtype=dtype)
        with torch.no_grad():
            ends = [subject(*[g + s * along if m == n else g for m, g in enumerate(inputs)], *ats) for s in (step, -step)]
        numeric = float(((ends[0] - ends[1]) / (2 * step) * upstream).sum())
        analytic = 0.0 if gradient is None else float((gradient * along).sum())
        size = float(upstream.norm() * along.norm())
        allowed = size * (1e-5 if out.dtype == dtype == torch.float64 else 1e-3)
        allowed += subject.rounding / step * float((out * upstream).detach().norm())  # of results in 16 bits
        what = "gradient and finite differences, along one direction"
        measured.append(Measured(abs(numeric - analytic), allowed, what))
    return worst(*measured)


def _computes_in_float64(subject: Subject, tensors: list[Tensor], ats: list[Tensor]) -> bool:
    """Whether float64 tokens are taken and kept to the last operation: every value that a change of the tokens by 2⁻¹⁰
    reaches, a change by 2⁻⁴⁰, which float32 rounds away, reaches too. Tried for each of the tensors alone."""
    inputs = [tensor.double() for tensor in tensors]

    def changed(n: int, by: float) -> Tensor:
        with torch.no_grad():
            return subject.fresh()(*[tensor * (1 + by) if m == n else tensor for m, tensor in enumerate(inputs)], *ats)

    try:
        plain = changed(-1, 0.0)
        return all(bool((changed(n, 2.0**-40) != plain)[changed(n, 2.0**-10) != plain].all()) for n in range(len(inputs)))
    except Exception:  # float64 is refused
        return False


@law("rotate", "embed", "attention", bug="inference mode", inputs=({"length": 6},))
def inference_mode_does_not_matter(subject: Subject, length: int) -> Measured:
    """A call under inference_mode leaves nothing behind that a later call with gradients cannot use."""
    need_torch(subject)
    expected = subject.fresh().sample(length, 0)
    with torch.inference_mode():
        subject.sample(length, 0)
    tensors = list(subject.heads(1, length, length)) if subject.seam == "attention" else [_tokens(subject, length)[:1]]
    ats = [arange(0, length)] * (2 if subject.seam == "attention" else 1)
    try:
        out = subject(*[tensor.requires_grad_() for tensor in tensors], *ats)
        out.sum().backward()
    except RuntimeError as error:
        if "nference" not in str(error):
            raise
        return Measured(math.inf, 0.0, f"after inference mode it raises {str(error)[:90]}")
    return _compared(subject, subject.sample(length, 0), expected, length, "before and after inference mode")


@law(*ALL, bug="threads", inputs=({"length": 5},), length=5)
def calls_at_once_do_not_matter(subject: Subject, length: int) -> Measured:
    """A call that another thread interrupts by a call of its own gives what it gives alone; so does the other.

    The interruption is placed at one line of the implementation's Python after another, so that it always happens again.
    """
    need_torch(subject)
    within_reach(subject, length + 120)
    other = 3
    try:
        subject.fresh().sample(length, other)
    except NotImplementedError:  # it takes no offset
        other = 0
    points = [point for point in lines_of(lambda: subject.fresh().sample(length, 0)) for _ in range(2)]
    measured = [Measured(0.0, 0.0, "two calls at once")]
    for n, point in enumerate(points):
        shared = subject.fresh()
        sizes = (length + n % 7, 0), (length + 40 + n % 7, other)
        sizes = sizes if n % 2 else sizes[::-1]
        results = preempted(partial(shared.sample, *sizes[0]), partial(shared.sample, *sizes[1]), point)
        for (size, start), result in zip(sizes, results, strict=True):
            if isinstance(result, BaseException):
                return Measured(math.inf, 0.0, f"two calls at once: {type(result).__name__}: {str(result)[:120]}")
            separate = subject.fresh().sample(size, start)
            measured.append(_compared(subject, result, separate, size + start, "two calls at once and one after the other"))
        if not measured[-1].holds:
            break
    return worst(*measured)


# What happens to a module ---------------------------------------------------------------------------------------------


def _parameters(module: nn.Module) -> list[str]:
    """The names of trained parameters; a single number is an amplitude and holds no table."""
    return [name for name, parameter in module.named_parameters() if parameter.requires_grad and parameter.numel() > 1]


def _with_module(subject: Subject, change: Any) -> Subject:
    """A copy of the subject whose module is the result of `change(module)`."""
    fresh = subject.fresh()
    if fresh.function is subject.function:
        raise NotApplicable("the callable cannot be copied, and so its module cannot be changed")
    module = need_module(fresh)
    changed = change(module)
    if isinstance(fresh.function, nn.Module):
        return replace(fresh, function=changed)
    if changed is not module:
        fresh.function.module = changed  # type: ignore[attr-defined]
    return fresh


def _that_matter(subject: Subject, length: int) -> list[str]:
    """The trained parameters on which the result depends: a projection that is kept beside a table is none of them."""

    def moved(name: str) -> Any:
        def change(module: nn.Module) -> nn.Module:
            with torch.no_grad():
                module.get_parameter(name).add_(0.5)
            return module

        return change

    changed = {name: _with_module(subject, moved(name)) for name in _parameters(need_module(subject))}
    expected = subject.sample(length, 0)
    return [name for name, other in changed.items() if not torch.equal(other.sample(length, 0), expected)]


@law(*ALL, bug="cast state", inputs=({"length": 8, "start": 0}, {"length": 8, "start": 3001}), start=0)
def casting_a_module_does_not_round_its_angles(subject: Subject, length: int, start: int) -> Measured:
    """module.to(bfloat16).float() gives what the module gave before, where it has no trained parameters."""
    module = need_module(subject)
    if _parameters(module):
        raise NotApplicable("it has trained parameters, which a cast rounds by right")
    within_reach(subject, start + length)
    cast = _with_module(subject, lambda module: module.to(torch.bfloat16).float())  # before any call fills a cache
    expected = subject.sample(length, start)
    return _compared(
        subject, cast.sample(length, start), expected, start + length, "before and after .to(bfloat16).float()"
    )


@law(*ALL, bug="construction", inputs=({"length": 8, "start": 3}, {"length": 8, "start": 0}), start=0)
def tables_survive_to_empty(subject: Subject, length: int, start: int) -> Measured:
    """to("meta"), to_empty, poison, the saved state dict, and reset_parameters() where there is one: the same as before."""
    need_module(subject)

    def emptied(module: nn.Module) -> nn.Module:
        saved = copy.deepcopy(module.state_dict())
        emptied_module = module.to("meta").to_empty(device="cpu")
        with torch.no_grad():
            for tensor in (*emptied_module.parameters(), *emptied_module.buffers()):
                tensor.fill_(77 if not tensor.is_floating_point() else 7.7e4)
        for part in emptied_module.modules():
            reset = getattr(part, "reset_parameters", None)
            if callable(reset):
                reset()
        emptied_module.load_state_dict(saved)
        return emptied_module

    emptied_one = _with_module(subject, emptied)  # before any call fills a cache
    expected = subject.sample(length, start)
    return _compared(
        subject, emptied_one.sample(length, start), expected, start + length, "before and after to_empty and loading"
    )


@law("rotate", "embed", "table", bug="trainable constant", inputs=({"length": 8},))
def fixed_tables_are_not_trained(subject: Subject, length: int) -> Measured:
    """A sinusoid or a rotation by a known formula has no trainable parameters."""
    module = need_module(subject)
    from posenc.checking.identify import identity

    names = _that_matter(subject, length) if _parameters(module) else []
    if not names:
        return Measured(0.0, 0.0, "trainable parameters")
    known = identity(subject)
    if known.facts.get("base") is None:
        raise NotApplicable("it is no fixed formula that is known, so that it may be learned")
    return Measured(
        math.inf, 0.0, f"the parameters {', '.join(names[:4])} hold a formula ({known.sentence}) and are trainable"
    )


@law(*ALL, bug="length state", must_run=True, inputs=({"length": FIRST},), length=FIRST)
def earlier_calls_do_not_matter(subject: Subject, length: int) -> Measured:
    """The very first call gives the same again after all others, at far positions too, by all laws before."""
    assert subject.first is not None
    return apart(subject.sample(length, 0), subject.first, 0.0, f"positions 0 … {length - 1} at the end and at first")
