"""How a family of transformers turns queries and keys, found by trying its function on random channels and angles.

    apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1)                  most families
    apply_rotary_pos_emb_interleave(q, k, cos, sin, position_ids=None, …)  DeepSeek-V3 and what follows it
    apply_rotary_pos_emb(x, cos, sin, unsqueeze_dim=1)                     one tensor a call: Gemma 3n and 4, DeepSeek-V4
    apply_rotary_pos_emb(tensor, sin, cos)                                 GPT-J, CodeGen
    apply_rotary_emb(xq, xk, freqs_cis)                                    complex numbers: Llama 4, DeepSeek-V2

What a family's function does is a `Form`. The form that gives the function's own results is the family's; two different
forms give different results, so there is at most one.
Legend: b batch, h heads, t tokens, d channels of a head, n pairs.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from posenc.frequencies.layouts import Layout
from posenc.kernels.rotation import rotate, rotate_both

NAMES = ("apply_rotary_pos_emb", "apply_rotary_pos_emb_interleave", "apply_rotary_emb")
Rotate = Callable[..., Any]


@dataclass(frozen=True)
class Form:
    """How a family rotates.

    layout    which channels make a pair
    returns   the layout of the rotated channels
    tables    how cos and sin hold each number twice: "half" is c0 c1 c0 c1, "interleaved" c0 c0 c1 c1; None: once, c0 c1
    reverse   it turns by the negative angle
    trailing  the last 2n channels turn, not the first
    heads     the axis of the heads, where the function's signature does not say it: 1 for [b, h, t, d], 2 for [b, t, h, d]
    """

    layout: Layout
    returns: Layout
    tables: Layout | None
    reverse: bool = False
    trailing: bool = False
    heads: int = 1


FORMS = tuple(
    itertools.starmap(
        Form,
        itertools.product(
            *(("half", "interleaved"), ("half", "interleaved"), ("half", "interleaved", None)),
            *((False, True), (False, True), (1, 2)),
        ),
    )
)


def of_pair(form: Form) -> Rotate:
    """A function that turns q [b, h, t, d] and k [b, g, t, d] by cos and sin [b, t, 2n or n]; `heads` is their axis."""

    def turned(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, heads: int) -> tuple[Tensor, Tensor]:
        cos, sin, start = _tables(form, q, cos, sin)
        if heads == 1:
            return rotate_both(q, k, cos, sin, form.layout, form.returns, start=start, back=form.reverse)
        q, k = q.transpose(1, 2), k.transpose(1, 2)
        q, k = rotate_both(q, k, cos, sin, form.layout, form.returns, start=start, back=form.reverse)
        return q.transpose(1, 2), k.transpose(1, 2)

    return turned


def of_one(form: Form) -> Rotate:
    """The same for one tensor."""

    def turned(x: Tensor, cos: Tensor, sin: Tensor, heads: int) -> Tensor:
        cos, sin, start = _tables(form, x, cos, sin)
        x = x if heads == 1 else x.transpose(1, 2)
        x = rotate(x, cos, sin, form.layout, form.returns, start=start, back=form.reverse)
        return x if heads == 1 else x.transpose(1, 2)

    return turned


def _tables(form: Form, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, int]:
    """cos and sin with each number once, in the dtype of the arithmetic, and the first channel that turns."""
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    if form.tables is not None:
        once = slice(cos.shape[-1] // 2) if form.tables == "half" else slice(None, None, 2)
        cos, sin = cos[..., once], sin[..., once]
    start = x.shape[-1] - 2 * cos.shape[-1] if form.trailing else 0
    return cos.to(dtype), sin.to(dtype), start


# Functions with the signatures of the families' own.


def _standard(form: Form) -> Rotate:
    turned = of_pair(form)

    def rotated(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> Any:
        return turned(q, k, cos, sin, unsqueeze_dim)

    return rotated


def _with_position_ids(form: Form) -> Rotate:
    turned = of_pair(form)

    def rotated(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, position_ids: Any = None, unsqueeze_dim: int = 1) -> Any:
        return turned(q, k, cos, sin, unsqueeze_dim)

    return rotated


def _one_at_a_time(form: Form) -> Rotate:
    turned = of_one(form)

    def rotated(x: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> Any:
        return turned(x, cos, sin, unsqueeze_dim)

    return rotated


def _sin_first(form: Form) -> Rotate:
    turned = of_one(form)

    def rotated(tensor: Tensor, sin: Tensor, cos: Tensor) -> Any:
        return turned(tensor, cos, sin, form.heads)

    return rotated


def _complex(form: Form) -> Rotate:
    turned = of_pair(form)

    def rotated(xq: Tensor, xk: Tensor, freqs_cis: Tensor) -> Any:
        return turned(xq, xk, freqs_cis.real, freqs_cis.imag, form.heads)

    return rotated


SIGNATURES: dict[tuple[str, ...], Callable[[Form], Rotate]] = {
    ("q", "k", "cos", "sin", "unsqueeze_dim"): _standard,
    ("q", "k", "cos", "sin", "position_ids", "unsqueeze_dim"): _with_position_ids,
    ("x", "cos", "sin", "unsqueeze_dim"): _one_at_a_time,
    ("tensor", "sin", "cos"): _sin_first,
    ("xq", "xk", "freqs_cis"): _complex,
}
ROTATED = frozenset({"q", "k", "x", "tensor", "xq", "xk"})


def is_served(function: Rotate) -> bool:
    """Whether the function has one of the signatures."""
    return tuple(inspect.signature(function).parameters) in SIGNATURES


def matching(function: Rotate, calls: Sequence[Mapping[str, Any]]) -> Rotate | None:
    """posenc's rotation with the signature and the results of a family's function, in calls with such arguments; or None.

    Every form is tried on random channels, with the tables of each call and with random ones.
    """
    make, generator = SIGNATURES[tuple(inspect.signature(function).parameters)], torch.Generator().manual_seed(0)
    for form in FORMS:
        ours = make(form)
        if all(_fits(form, arguments) and _agree(function, ours, form, arguments, generator) for arguments in calls):
            return ours
    return None


def _fits(form: Form, arguments: Mapping[str, Any]) -> bool:
    """Complex tables hold each number once; doubled ones have an even number of columns."""
    table = _table(arguments)
    return form.tables is None or not (table.is_complex() or table.shape[-1] % 2)


def _table(arguments: Mapping[str, Any]) -> Tensor:
    table: Tensor = arguments["cos"] if "cos" in arguments else arguments["freqs_cis"]
    return table


def _agree(function: Rotate, ours: Rotate, form: Form, call: Mapping[str, Any], generator: torch.Generator) -> bool:
    """Whether both functions give the same within four roundings."""
    for arguments in _trials(form, call, generator):
        expected = function(**arguments)
        try:
            got = ours(**arguments)
        except (ValueError, TypeError):  # shapes or dtypes that posenc's rotation does not take in this form
            return False
        both = zip(*((result,) if isinstance(result, Tensor) else result for result in (expected, got)), strict=True)
        if not all(_near(actual, other) for actual, other in both):
            return False
    return True


def _trials(form: Form, call: Mapping[str, Any], generator: torch.Generator) -> Iterator[dict[str, Any]]:
    """The arguments of a call with random channels, and with random tables too, as this form holds them."""
    arguments = dict(call)
    for name in ROTATED & arguments.keys():
        arguments[name] = torch.randn(arguments[name].shape, generator=generator).to(arguments[name])
    yield arguments
    like = _table(call)
    width = like.shape[-1] if form.tables is None else like.shape[-1] // 2
    angle = 6 * torch.rand((*like.shape[:-1], width), generator=generator)
    if like.is_complex():
        yield arguments | {"freqs_cis": torch.polar(torch.ones_like(angle), angle).to(like)}
        return
    if form.tables == "half":
        angle = torch.cat([angle, angle], dim=-1)
    elif form.tables == "interleaved":
        angle = angle.repeat_interleave(2, dim=-1)
    yield arguments | {"cos": angle.cos().to(like), "sin": angle.sin().to(like)}


def _near(expected: Tensor, got: Tensor) -> bool:
    rounding = 4 * torch.finfo(expected.dtype).eps * float(expected.abs().max())
    same = expected.dtype == got.dtype and expected.shape == got.shape
    return same and torch.allclose(got, expected, rtol=0, atol=rounding)
