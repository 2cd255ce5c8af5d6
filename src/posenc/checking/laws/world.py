"""What the laws are tried on: sizes, seeded tokens and projections, and attention by the backend that was asked for."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from posenc.attention import attend, attend_rotated
from posenc.attention.backends import AT_ONCE, BACKENDS
from posenc.attention.call import Call
from posenc.attention.plan import backend_of
from posenc.checking.errors import LawBroken, NotApplicable
from posenc.encoding import PositionalEncoding, Side
from posenc.positions import Positions
from posenc.support.checked import check_fields, checked


@dataclass(frozen=True)
class Setting:
    """Sizes, dtype and backend under which a law is tried."""

    d_model: int = 32
    n_heads: int = 4
    n_kv_heads: int = 2
    batch: int = 2
    length: int = 12
    max_positions: int = 128
    dtype: torch.dtype = torch.float32
    impl: str = "auto"
    causal: bool = True
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_heads


@checked
@torch.no_grad()
def draw_parameters(encoding: PositionalEncoding, seed: int = 0, std: float = 0.5) -> PositionalEncoding:
    """A copy whose parameters are drawn from N(0, std²), so that no seam hides behind a start at zero."""
    drawn = copy.deepcopy(encoding)
    generator = torch.Generator().manual_seed(seed)
    for parameter in drawn.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * std)
    return drawn


@checked
def expressible(encoding: PositionalEncoding, device: str = "cpu") -> list[str]:
    """The backends that serve it there. One that compiles for seconds is tried by name on the CPU: Setting(impl="flex")."""
    names = BACKENDS if device == "cuda" else AT_ONCE
    return [name for name in names if not BACKENDS[name].refuses(encoding, encoding.structure())]


_used: ContextVar[dict[str, None] | None] = ContextVar("_used", default=None)


@contextlib.contextmanager
def backends_used() -> Iterator[dict[str, None]]:
    """The names of the backends that worlds take inside, in the order of first use."""
    used: dict[str, None] = {}
    token = _used.set(used)
    try:
        yield used
    finally:
        _used.reset(token)


class World:
    """Seeded tokens and projections for a setting: the same for every encoding."""

    @checked
    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.x = self.draw("x", setting.batch, setting.length, setting.d_model)
        width = setting.n_heads * setting.d_head
        narrow = setting.n_kv_heads * setting.d_head
        self.w_q, self.w_k, self.w_v = (
            self.draw(name, setting.d_model, size) * setting.d_model**-0.5
            for name, size in (("w_q", width), ("w_k", narrow), ("w_v", narrow))
        )

    def draw(self, name: str, *shape: int) -> Tensor:
        """Standard normal numbers in the setting's dtype; the same for the same name."""
        generator = torch.Generator().manual_seed(self.setting.seed + sum(map(ord, name)))
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
        return drawn.to(self.setting.dtype).to(self.setting.device)

    def plain(self) -> Positions:
        """0, 1, 2, … in every row."""
        return Positions.arange(self.setting.batch, self.setting.length, device=self.setting.device)

    def scattered(self) -> Positions:
        """Rows at different, growing, not consecutive positions within max_positions."""
        generator = torch.Generator().manual_seed(self.setting.seed)
        return Positions.randomized(
            self.setting.batch, self.setting.length, self.setting.max_positions, generator=generator
        ).to(self.setting.device)

    def heads(
        self, encoding: PositionalEncoding, x: Tensor, at: Positions, past: Positions | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Positions]:
        """Embedded tokens, projected: q [b, h, t, dh], k and v [b, g, t, dh]; and the positions after `read_hidden`."""
        x = encoding.embed(x, at)
        at = encoding.read_hidden(x, at, past)
        q, k, v = ((x @ w).unflatten(-1, (-1, self.setting.d_head)).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        return q, k, v, at

    def output(self, encoding: PositionalEncoding, x: Tensor, at: Positions) -> Tensor:
        """Embedding, projections and attention: [b, h, t, dh]."""
        q, k, v, at = self.heads(encoding, x, at)
        return self.attend(encoding, q, k, v, at)

    def attend(
        self,
        encoding: PositionalEncoding,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        at_q: Positions,
        at_k: Positions | None = None,
        impl: str | None = None,
    ) -> Tensor:
        """`posenc.attend` by `impl`, or by the setting's backend. Raises NotApplicable where that refuses the call."""
        impl, causal = impl or self.setting.impl, self.setting.causal
        call = Call.of(q, k, v, encoding, at_q, at_q if at_k is None else at_k, causal)
        return self._by(impl, call, lambda: attend(q, k, v, encoding, at_q, at_k, causal=causal, impl=impl))

    def attend_rotated(
        self, encoding: PositionalEncoding, q: Tensor, k: Tensor, v: Tensor, at_q: Positions, at_k: Positions
    ) -> Tensor:
        """`posenc.attend_rotated` by the setting's backend. Raises NotApplicable where that refuses the call."""
        impl, causal = self.setting.impl, self.setting.causal
        call = Call.of(q, k, v, encoding, at_q, at_k, causal)
        return self._by(impl, call, lambda: attend_rotated(q, k, v, encoding, at_q, at_k, causal=causal, impl=impl))

    def _by(self, impl: str, call: Call, attended: Callable[[], Tensor]) -> Tensor:
        """The call's result. A backend asked for by name is never replaced by another: it serves the call or raises."""
        if torch.compiler.is_compiling():
            return attended()
        backend = BACKENDS.get(impl)
        able = backend is not None and not backend.refuses(call.encoding, call.structure)
        why = backend.refuses_call(call) if backend and able else None
        try:
            out = attended()
        except ValueError as error:
            if why and "use impl=" in str(error):
                raise NotApplicable(str(error)) from error
            raise
        if why:
            raise LawBroken(f"{impl} says that it refuses the call ({why}), and did not raise")
        if (used := _used.get()) is not None:
            used[backend_of(call, impl).__name__.rpartition(".")[2]] = None
        return out

    def rows(self, encoding: PositionalEncoding, at: Positions, some: Tensor) -> list[tuple[str, Tensor, Tensor]]:
        """(seam, rows of the whole, the same rows computed alone)."""
        x = self.x
        heads = self.draw("rows", self.setting.batch, self.setting.n_heads, self.setting.length, self.setting.d_head)
        rows = [("embed", encoding.embed(x, at)[:, some], encoding.embed(x[:, some], at.take(some)))]
        at = encoding.read_hidden(encoding.embed(x, at), at)
        for side in get_args(Side):
            whole, separate = encoding.rotate(heads, at, side), encoding.rotate(heads[:, :, some], at.take(some), side)
            rows.append((f"rotate {side}", whole[:, :, some], separate))
        return rows
