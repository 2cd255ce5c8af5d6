"""Masks, windows, chunks, scales and caps mean the same on every way through attention."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from posenc.attention import attend
from posenc.attention.backends import BACKENDS
from posenc.attention.backends.reference import own_finish
from posenc.checking.laws.compare import close
from posenc.checking.laws.errors import LawBroken
from posenc.checking.laws.registry import law
from posenc.checking.laws.world import Setting, World, expressible
from posenc.encoding import PositionalEncoding
from posenc.structure import Blocks, Regions, addend_of
from posenc.support.identity import label


@law
def options_agree(encoding: PositionalEncoding, setting: Setting) -> None:
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
    for options in combinations:
        if isinstance(encoding.structure(), (Regions, Blocks)) and {"scale", "softcap"} & options.keys():
            _must_refuse(
                functools.partial(attend, q, k, v, encoding, at, causal=setting.causal, **options),
                encoding,
                "scale, softcap",
            )
            continue
        if not softmax and "sinks" in options:
            continue
        expected = attend(q, k, v, encoding, at, causal=setting.causal, impl="reference", **options)
        for impl in (*expressible(encoding, setting.device), "auto"):
            about = f"{' '.join(options)} by {impl}"
            lacking = [] if impl == "auto" else [name for name in options if name not in BACKENDS[impl].OPTIONS]
            try:
                out = attend(q, k, v, encoding, at, causal=setting.causal, impl=impl, **options)
            except ValueError as error:
                if lacking and all(name in str(error) for name in lacking):
                    continue
                raise
            if lacking:
                raise LawBroken(f"options_agree: {label(encoding)}: {about}: cannot serve {lacking[0]}, and did not raise")
            close(options_agree, encoding, out, expected, setting.dtype, about)
    if softmax and addend_of(encoding) is None:
        out, lse = attend(q, k, v, encoding, at, causal=setting.causal, return_lse=True)
        with_sinks = attend(q, k, v, encoding, at, causal=setting.causal, sinks=sinks)
        share = (lse - sinks[:, None].to(lse.dtype)).sigmoid()[..., None]
        shared = (out.to(lse.dtype) * share).to(out.dtype)
        close(options_agree, encoding, with_sinks, shared, setting.dtype, "sinks by return_lse")
    elif not softmax:
        plain = functools.partial(attend, q, k, v, encoding, at, causal=setting.causal)
        for call in (functools.partial(plain, sinks=sinks), functools.partial(plain, return_lse=True)):
            _must_refuse(call, encoding, "sinks, return_lse")
    hidden = torch.zeros_like(drawn, dtype=torch.bool)
    if bool(attend(q, k, v, encoding, at, causal=setting.causal, mask=hidden).any()):
        raise LawBroken(f"options_agree: {label(encoding)}: a query that may see no key gets something else than zeros")
    if setting.causal:
        last = at.narrow(setting.length - 1, setting.length)
        for options in ({"window": (3, 0)}, {"chunk": 5}):  # of the cached keys only those inside are read
            whole = attend(q, k, v, encoding, at, impl="reference", **options)[:, :, -1:]
            alone = attend(q[:, :, -1:], k, v, encoding, last, at, **options)
            close(options_agree, encoding, alone, whole, setting.dtype, f"{' '.join(options)} of one token")


def _must_refuse(call: Callable[[], Any], encoding: PositionalEncoding, what: str) -> None:
    try:
        call()
    except ValueError as error:
        if what in str(error):
            return
        raise
    raise LawBroken(f"options_agree: {label(encoding)}: takes the place of what {what} act on, and did not refuse them")
