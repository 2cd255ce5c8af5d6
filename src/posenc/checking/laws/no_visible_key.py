"""Queries that see no key: they get zeros, and nothing comes back through them.

Legend: b batch, h query heads, i query, j key.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from posenc.attention import attend
from posenc.attention.backends.reference import scores_of
from posenc.attention.call import Call
from posenc.attention.options import Options
from posenc.attention.own_finish import own_finish
from posenc.checking.engine import Measured
from posenc.checking.errors import LawBroken
from posenc.checking.laws.compare import errors_allowed, same, within
from posenc.checking.laws.derivatives import gradients_of
from posenc.checking.laws.registry import breaks
from posenc.checking.laws.world import Setting, World, expressible
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.structure import rotated

STEEP = 16  # what is read of hidden states is read of so many times these: gates that leave nothing within a row
EVERY = slice(None)


class Blind(NamedTuple):
    """A call in which some queries see no key: which of the tokens at `at` are queries, and which are keys."""

    name: str
    at: Positions
    queries: slice = EVERY
    keys: slice = EVERY
    options: dict[str, Any] = {}
    times: int = 1  # what `read_hidden` is given of the hidden states: so many times these


@breaks("not finite")
def rows_that_see_no_key(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """A query that sees no key gets zeros and a log-sum-exp of -inf, and what comes back for it reaches no gradient.

    Keys are hidden by padding, documents, causal order, a window, a chunk, a mask, and by a bias of -inf. The reference in
    float64 is held to this; every backend to the reference: within twice the error that it has at the setting's dtype.
    """
    world, wide, exact = World(setting), World(replace(setting, dtype=torch.float64)), copy.deepcopy(encoding).double()
    for case in _blind(encoding, world):
        true, blind = _expected(exact, wide, case)
        by_impl = {
            impl: _by_backend(encoding, world, case, impl) for impl in (*expressible(encoding, setting.device), "auto")
        }
        allowed = errors_allowed(by_impl["reference"], true, setting.dtype)
        for impl, results in by_impl.items():
            for name, actual in results.items():
                what = f"{case.name}: {name} by {impl}"
                yield within(actual, true[name], allowed[name], what)
                if name == "output" and bool(actual.masked_select(blind).any()):
                    raise LawBroken(f"{what}: not zeros for a query that sees no key")


def _blind(encoding: PositionalEncoding, world: World) -> Iterator[Blind]:
    length, half, device = world.setting.length, world.setting.length // 2, world.setting.device
    plain = world.plain()
    real = torch.zeros(plain.batch, length, dtype=torch.long, device=device)
    real[:1, 3:-3] = 1  # the other rows are padding alone
    padded = Positions.from_mask(real)
    yield Blind("padding", padded, times=STEEP)
    yield Blind("padding, listed", Positions(padded.coords, padded.order, padded.document), times=STEEP)
    yield Blind("one query of padding", padded, slice(length - 1, length))
    two = (plain.coords >= half).long()
    yield Blind(
        "keys of another document", Positions(plain.coords, plain.order, two), slice(0, half + 2), slice(half, length)
    )
    if world.setting.causal:
        yield Blind("keys that come later", plain, slice(0, half), slice(2, length))
    yield Blind("keys far away", plain, slice(half, length), slice(1, 3), {"window": (half, 0)})
    yield Blind("keys of another chunk", plain, slice(half, length), slice(0, half), {"chunk": half - 1})
    mask = torch.ones(1, 1, length, length, dtype=torch.bool, device=device).tril(-1)
    sinks = {"sinks": world.draw("sinks", world.setting.n_heads * encoding.query_copies)}
    softmax = own_finish(encoding, world.setting.n_heads, world.setting.d_head) != "weights"
    yield Blind("mask", plain, options={"mask": mask, **(sinks if softmax else {})})
    added = world.draw("mask", 1, 1, length, length).masked_fill(~mask, -torch.inf)
    yield Blind("mask of -inf", plain, options={"mask": added})


class Called(NamedTuple):
    """What a case gives `attend`, and the tensors whose gradients are looked at."""

    arguments: tuple[Tensor, Tensor, Tensor, PositionalEncoding, Positions, Positions]
    options: dict[str, Any]
    inputs: dict[str, Tensor]


def _called(encoding: PositionalEncoding, world: World, case: Blind) -> Called:
    x = world.x.clone().requires_grad_()
    q, k, v, _ = world.heads(encoding, x, case.at)
    at = encoding.read_hidden(encoding.embed(case.times * x, case.at), case.at)
    at_q = _part(at, case.queries)
    at_k = at_q if case.queries == case.keys else _part(at, case.keys)
    inputs = {"x": x, **{name: parameter for name, parameter in encoding.named_parameters() if parameter.requires_grad}}
    options = {**case.options}
    if "sinks" in options:
        inputs["sinks"] = options["sinks"] = options["sinks"].to(x.dtype).detach().requires_grad_()
    return Called((q[:, :, case.queries], k[:, :, case.keys], v[:, :, case.keys], encoding, at_q, at_k), options, inputs)


def _expected(encoding: PositionalEncoding, world: World, case: Blind) -> tuple[dict[str, Tensor], Tensor]:
    """The output and all gradients by the reference, and which queries see no key [b, h, i, 1].

    Raises LawBroken where such a query has another output or log-sum-exp than it should, or where a gradient is another
    once nothing comes back for it.
    """
    about = f"{case.name} by the reference"
    arguments, options, inputs = _called(encoding, world, case)
    q, k, v, _, at_q, at_k = arguments
    with torch.no_grad():
        turned = rotated(encoding, q, k, at_q, at_k)
        scores = scores_of(Call.of(*turned, v, encoding, at_q, at_k, world.setting.causal, Options(**options)))
        blind = (scores.masked(scores.logits) == -torch.inf).all(dim=-1, keepdim=True)
    if not bool(blind.any()):
        raise LawBroken(f"{about}: every query sees a key")
    softmax: Any = own_finish(encoding, world.setting.n_heads, world.setting.d_head) != "weights"
    result = attend(*arguments, **options, causal=world.setting.causal, impl="reference", return_lse=softmax)
    out, lse = result if softmax else (result, None)
    if bool(out.masked_select(blind).any()):
        raise LawBroken(f"{about}: not zeros for a query that sees no key")
    if lse is not None and not torch.equal(blind[..., 0], lse == -torch.inf):
        raise LawBroken(f"{about}: the log-sum-exp is not -inf where no key is seen, and only there")
    gradients = _checked_gradients(about, out, world.draw("upstream", *out.shape), blind, inputs)
    if lse is not None:
        _checked_gradients(about, lse, world.draw("upstream of sums", *lse.shape), blind[..., 0], inputs)
    return {"output": out, **gradients}, blind


def _checked_gradients(
    about: str, result: Tensor, upstream: Tensor, blind: Tensor, inputs: dict[str, Tensor]
) -> dict[str, Tensor]:
    """All gradients. Raises LawBroken unless they are the same where nothing comes back for queries that see no key."""
    gradients, silenced = (gradients_of(result, g, inputs) for g in (upstream, upstream.masked_fill(blind, 0)))
    for name, actual in gradients.items():
        if not (measured := same(actual, silenced[name], f"{name}, {about}")).holds:
            raise LawBroken(str(measured))
    return gradients


def _by_backend(encoding: PositionalEncoding, world: World, case: Blind, impl: str) -> dict[str, Tensor]:
    """The output and all gradients; by "auto" the output alone, without a record. Nothing where the backend refuses."""
    arguments, options, inputs = _called(encoding, world, case)
    if impl == "auto":
        with torch.no_grad():
            return {"output": attend(*arguments, **options, causal=world.setting.causal)}
    try:
        out = attend(*arguments, **options, causal=world.setting.causal, impl=impl)
    except ValueError as error:
        if "use impl=" not in str(error):
            raise
        return {}
    return {"output": out, **gradients_of(out, world.draw("upstream", *out.shape), inputs)}


def _part(at: Positions, part: slice) -> Positions:
    return at if part == EVERY else at.narrow(part.start, part.stop)
