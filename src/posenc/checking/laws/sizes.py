"""Sizes of a call: no rows, no tokens, values of another width than the heads.

Legend: b batch, h query heads, g key heads, i query, j key, d channel.
"""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc.attention import attend
from posenc.attention.own_finish import own_finish
from posenc.checking.engine import Measured
from posenc.checking.errors import LawBroken
from posenc.checking.laws.attention_module import with_projections_of
from posenc.checking.laws.compare import close, errors_allowed, within
from posenc.checking.laws.derivatives import gradients_of
from posenc.checking.laws.registry import breaks
from posenc.checking.laws.world import Setting, World, expressible
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.support.checks import shown
from posenc.support.tensors import working_dtype


@breaks("")
def empty_calls(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Calls of no rows, no queries or no keys are served: what comes back has no rows, no tokens, or zeros for no keys.

    So do the gradients, and the log-sum-exp of no keys is -inf. Tried with tokens that are counted, listed and padded,
    prepared or not, by every backend, under options and in `Attention`. A backend may refuse and say which to use.
    """
    world = World(setting)
    for rows, length in ((0, setting.length), (setting.batch, 0)):
        x = world.x[:rows, :length]
        none = torch.zeros(rows, length, dtype=torch.long, device=setting.device)
        counted = Positions.arange(rows, length, device=setting.device)
        for what, at in {"counted": counted, "listed": Positions.at(none), "padded": Positions.from_mask(none)}.items():
            about = f"{rows} rows of {length} tokens, {what}"
            with _served(about):
                at = at if what == "listed" else encoding.prepare(at, working_dtype(setting.dtype))
                q, k, v, at = world.heads(encoding, x, at)
            _serves(encoding, world, (q, k, v), at, at, about)
        yield from _module_serves(encoding, world, x, counted)
    q, k, v, at = world.heads(encoding, world.x, world.plain())
    for queries, keys in ((0, setting.length), (setting.length, 0), (1, 0)):
        some, about = (q[:, :, :queries], k[:, :, :keys], v[:, :, :keys]), f"{queries} queries, {keys} keys"
        _serves(encoding, world, some, at.narrow(0, queries), at.narrow(0, keys), about)


@contextlib.contextmanager
def _served(about: str) -> Iterator[None]:
    """Errors that do not come from a check as LawBroken."""
    try:
        yield
    except (IndexError, RuntimeError) as error:
        raise LawBroken(f"{about}: {type(error).__name__}: {error}") from error


def _serves(
    encoding: PositionalEncoding,
    world: World,
    tensors: tuple[Tensor, Tensor, Tensor],
    at_q: Positions,
    at_k: Positions,
    about: str,
) -> None:
    """Raises LawBroken unless every backend gives zeros of the right shape, forwards and backwards, or refuses by name."""
    q, k, v = (x.detach().requires_grad_() for x in tensors)
    expected = q.new_zeros(q.shape[0], q.shape[1] * encoding.query_copies, q.shape[2], v.shape[3])
    cases: list[dict[str, Any]] = [{}, {"window": (3, 0)}, {"chunk": 5}]
    cases += [{"mask": torch.ones(1, 1, 1, 1, dtype=torch.bool, device=q.device)}]
    if own_finish(encoding, q.shape[1], v.shape[3]) != "weights":
        cases += [{"return_lse": True}, {"sinks": world.draw("sinks", expected.shape[1])}]
    for impl in (*expressible(encoding, world.setting.device), "auto"):
        with _served(f"{about} by {impl}"):
            try:
                out = attend(q, k, v, encoding, at_q, at_k, causal=world.setting.causal, impl=impl)
            except ValueError as error:
                if impl == "auto" or "use impl=" not in str(error):
                    raise
                continue
            results = [out]
            if out.requires_grad:
                results += gradients_of(out, torch.ones_like(out), {"q": q, "k": k, "v": v}).values()
            for actual, zeros in zip(results, (expected, q, k, v), strict=False):
                _is_filled(actual, 0.0, zeros.shape, f"{about} by {impl}")
    for options in cases:
        what = f"{about}{''.join(f', {name}' for name in options)}"
        with torch.no_grad(), _served(what):
            results = attend(q, k, v, encoding, at_q, at_k, causal=world.setting.causal, **options)
        out, lse = results if isinstance(results, tuple) else (results, None)
        _is_filled(out, 0.0, expected.shape, what)
        if lse is not None:
            _is_filled(lse, -torch.inf, expected.shape[:3], f"{what}: log-sum-exp")


def _is_filled(x: Tensor, number: float, shape: torch.Size, about: str) -> None:
    if x.shape != shape or not bool((x == number).all()):
        raise LawBroken(f"{about}: expected {list(shape)} filled with {number:g}, got {shown(x)}")


def _module_serves(encoding: PositionalEncoding, world: World, x: Tensor, at: Positions) -> Iterator[Measured]:
    """`Attention` serves x, which is empty, and decodes tokens after it as if it had not been."""
    setting, module = world.setting, with_projections_of(world, encoding)
    about = f"Attention of {list(x.shape)}"
    shape = torch.Size((*x.shape[:2], len(module.out.weight)))
    with torch.no_grad(), _served(about):
        _is_filled(module(x, at, causal=setting.causal), 0.0, shape, about)
        if not setting.causal:
            return
        out, cache = module.decode(x, at)
        _is_filled(out, 0.0, shape, f"{about}, decoded")
        if not len(x):
            return
        some, at_some = world.x[:, :3], Positions.arange(len(x), 3, device=setting.device)
        out, cache = module.decode(some, at_some, cache)
        yield close(out, module(some, at_some), setting.dtype, "tokens decoded after none")
        out, _ = module.decode(x, at, cache)
        _is_filled(out, 0.0, shape, f"{about}, decoded after tokens")


@breaks("")
def width_of_values(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Values may be narrower or wider than the heads: every channel of the output is what it is beside any others.

    Where the encoding turns values or adds vectors to them, one ValueError names v. What is expected is the reference's in
    float64 over values of the heads' own width, filled up with zeros; every backend is within twice the error that the
    reference has at the setting's dtype, gradients included.
    """
    world, wide, exact = World(setting), World(replace(setting, dtype=torch.float64)), copy.deepcopy(encoding).double()
    for width in (1, setting.d_head // 2 + 1, setting.d_head + 3):
        about, by_impl, refused = f"values of {width} channels", dict[str, dict[str, Tensor]](), []
        for impl in (*expressible(encoding, setting.device), "auto"):
            try:
                by_impl[impl] = _of_width(encoding, world, width, impl)
            except ValueError as error:
                if re.search(r"\bv\b", str(error)):
                    refused.append(impl)
                elif impl == "auto" or "use impl=" not in str(error):
                    raise
        if refused and by_impl:
            raise LawBroken(f"{about}: {refused[0]} refuses them, {next(iter(by_impl))} does not")
        if refused:
            continue
        true = _of_width(exact, wide, width, "reference", filled=True)
        for name, actual in _of_width(exact, wide, width, "reference").items():
            yield close(actual, true[name], torch.float64, f"{about}: {name} by the reference")
        allowed = errors_allowed(by_impl["reference"], true, setting.dtype)
        for impl, results in by_impl.items():
            for name, actual in results.items():
                yield within(actual, true[name], allowed[name], f"{about}: {name} by {impl}")


def _of_width(encoding: PositionalEncoding, world: World, width: int, impl: str, filled: bool = False) -> dict[str, Tensor]:
    """The output over values of that width, and gradients; `filled`: by calls with values of the heads' width each."""
    setting, d_head = world.setting, world.setting.d_head
    q, k, _, at = world.heads(encoding, world.x, world.plain())
    inputs = {"q": q, "k": k, "v": world.draw("values", *k.shape[:3], width)}
    q, k, v = inputs.values()
    inputs = {name: tensor.detach().requires_grad_() for name, tensor in inputs.items()}

    def called(v: Tensor) -> Tensor:
        return attend(inputs["q"], inputs["k"], v, encoding, at, causal=setting.causal, impl=impl)

    if not filled:
        out = called(inputs["v"])
    else:
        parts = inputs["v"].split(d_head, dim=3)
        out = torch.cat([called(F.pad(x, (0, d_head - x.shape[3])))[..., : x.shape[3]] for x in parts], dim=3)
    with torch.no_grad():
        unrecorded = out if filled else called(v)
    gradients = gradients_of(out, world.draw("upstream", *out.shape), inputs)
    return {"output": out, "output without gradients": unrecorded, **gradients}
