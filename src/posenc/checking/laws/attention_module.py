"""posenc.Attention, the module, is what its parts are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import nn

from posenc.attention.backends import AT_ONCE, BACKENDS
from posenc.attention.call import Call
from posenc.attention.module import Attention, KeyValueCache
from posenc.checking.engine import Measured
from posenc.checking.errors import LawBroken
from posenc.checking.laws.compare import close
from posenc.checking.laws.registry import breaks
from posenc.checking.laws.world import Setting, World, expressible
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions


@breaks("")
def module_equals_attend(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """The module gives what embedding, projections and `attend` give; decoding over its cache gives the same.

    A backend that cannot express the encoding refuses there too, and one that cannot serve later queries refuses to decode.
    """
    world = World(setting)
    at = world.plain()
    expected = world.output(encoding, world.x, at).transpose(1, 2).flatten(2)
    module = with_projections_of(world, encoding)
    out = module(world.x, at, causal=setting.causal, impl=setting.impl)
    yield close(out, expected, setting.dtype, "forward")
    if setting.causal and _refuses_later_queries(world, encoding):
        _, held = module.decode(world.x, at)
        later = Positions.arange(setting.batch, 1, setting.length, device=setting.device)
        with contextlib.suppress(ValueError):
            module.decode(world.x[:, :1], later, held, impl=setting.impl)
            raise LawBroken(f"decoding did not ask {setting.impl}, which refuses")
    elif setting.causal:
        cache: KeyValueCache | None = None
        outputs, begin = [], 0
        for size in (5, 1, 1, setting.length - 7):
            at = Positions.arange(setting.batch, size, begin, device=setting.device)
            out, cache = module.decode(world.x[:, begin : begin + size], at, cache, impl=setting.impl)
            outputs.append(out)
            begin += size
        yield close(torch.cat(outputs, dim=1), expected, setting.dtype, "decode 5, 1, 1, rest")
    for impl in set(AT_ONCE) - set(expressible(encoding, setting.device)):
        calls = [lambda impl=impl: module(world.x, world.plain(), causal=setting.causal, impl=impl)]
        if setting.causal:
            calls.append(lambda impl=impl: module.decode(world.x, world.plain(), impl=impl))
        for call in calls:
            try:
                call()
            except ValueError:
                continue
            raise LawBroken(f"the module did not ask {impl}, which cannot serve it")


def _refuses_later_queries(world: World, encoding: PositionalEncoding) -> bool:
    """Whether the backend that is asked for by name refuses a query after the keys of a cache."""
    setting = world.setting
    if setting.impl == "auto":
        return False
    q = world.draw("later", setting.batch, setting.n_heads, 1, setting.d_head)
    at_k = Positions.arange(setting.batch, setting.length, device=setting.device)
    at_q = at_k.narrow(setting.length - 1, setting.length)
    return BACKENDS[setting.impl].refuses_call(Call.of(q, q, q, encoding, at_q, at_k)) is not None


@torch.no_grad()
def with_projections_of(world: World, encoding: PositionalEncoding) -> Attention:
    """The module with the world's projections; the output projection changes nothing."""
    setting = world.setting
    module = Attention(setting.d_model, setting.n_heads, encoding, n_kv_heads=setting.n_kv_heads)
    identity = torch.eye(setting.d_model * encoding.query_copies, dtype=setting.dtype, device=setting.device)
    for linear, weight in (
        (module.query, world.w_q),
        (module.key, world.w_k),
        (module.value, world.w_v),
        (module.out, identity),
    ):
        linear.weight = nn.Parameter(weight.T.contiguous(), requires_grad=False)
    return module
