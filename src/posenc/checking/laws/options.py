"""Masks, windows, chunks, scales and caps mean the same on every way through attention."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from posenc.attention import attend
from posenc.attention.backends import BACKENDS
from posenc.attention.own_finish import own_finish
from posenc.checking.engine import Measured
from posenc.checking.errors import LawBroken
from posenc.checking.laws.compare import close
from posenc.checking.laws.registry import breaks
from posenc.checking.laws.world import Setting, World, expressible
from posenc.encoding import PositionalEncoding
from posenc.structure import Blocks, Regions, addend_of


@breaks("")
def options_agree(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Under every option, "auto" and each backend that serves it give what the reference gives; the others raise.

    The reference computes all pairs and hides some; "auto" goes by blocks of queries under a window or a chunk. A sink s
    leaves exp(lse) / (exp(lse) + exp(s)) of what the weights mix. An encoding that replaces q·k refuses a
    scale and a soft cap, which would act on the product that it takes back; one that replaces the softmax refuses sinks
    and the log-sum-exp.
    """
    world = World(setting)
    q, k, v, at = world.heads(encoding, world.x, world.plain())
    drawn = world.draw("mask", setting.batch, 1, setting.length, setting.length)
    sinks = world.draw("sinks", setting.n_heads * encoding.query_copies)
    softmax = own_finish(encoding, setting.n_heads, setting.d_head) != "weights"
    combinations: list[dict[str, Any]] = [
        {"window": (3, 0)},
        {"chunk": 5},
        {"mask": drawn > -1},
        {"scale": 0.5},
        {"mask": drawn, "scale": 0.5},
        {"window": (4, None), "sinks": sinks},
        {"window": (3, 0), "softcap": 2.0, "mask": drawn > -1},
    ]
    called = functools.partial(attend, q, k, v, encoding, at, causal=setting.causal)
    for options in combinations:
        if isinstance(encoding.structure(), (Regions, Blocks)) and {"scale", "softcap"} & options.keys():
            _must_refuse(
                functools.partial(attend, q, k, v, encoding, at, causal=setting.causal, **options), "scale, softcap"
            )
            continue
        if not softmax and "sinks" in options:
            continue
        expected = called(impl="reference", **options)
        for impl in (*expressible(encoding, setting.device), "auto"):
            about = f"{' '.join(options)} by {impl}"
            lacking = [] if impl == "auto" else [name for name in options if name not in BACKENDS[impl].OPTIONS]
            try:
                out = called(impl=impl, **options)
            except ValueError as error:
                if lacking and all(name in str(error) for name in lacking):
                    continue
                raise
            if lacking:
                raise LawBroken(f"{about}: cannot serve {lacking[0]}, and did not raise")
            yield close(out, expected, setting.dtype, about)
    if softmax and addend_of(encoding) is None:
        out, lse = called(return_lse=True)
        with_sinks = called(sinks=sinks)
        share = (lse - sinks[:, None].to(lse.dtype)).sigmoid()[..., None]
        shared = (out.to(lse.dtype) * share).to(out.dtype)
        yield close(with_sinks, shared, setting.dtype, "sinks by return_lse")
    elif not softmax:
        for call in (functools.partial(called, sinks=sinks), functools.partial(called, return_lse=True)):
            _must_refuse(call, "sinks, return_lse")
    hidden = torch.zeros_like(drawn, dtype=torch.bool)
    if bool(called(mask=hidden).any()):
        raise LawBroken("a query that may see no key gets something else than zeros")
    if setting.causal:
        last = at.narrow(setting.length - 1, setting.length)
        for options in ({"window": (3, 0)}, {"chunk": 5}):  # of the cached keys only those inside are read
            whole = attend(q, k, v, encoding, at, impl="reference", **options)[:, :, -1:]
            single = attend(q[:, :, -1:], k, v, encoding, last, at, **options)
            yield close(single, whole, setting.dtype, f"{' '.join(options)} of one token")


def _must_refuse(call: Callable[[], Any], what: str) -> None:
    try:
        call()
    except ValueError as error:
        if what in str(error):
            return
        raise
    raise LawBroken(f"takes the place of what {what} act on, and did not refuse them")
