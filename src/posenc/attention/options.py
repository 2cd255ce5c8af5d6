"""What a model may ask of attention besides an encoding: mask, scale, window, chunk, soft cap, sinks, dropout.

    logits = cap(q·k·scale) + bias + mask        cap(x) = softcap·tanh(x / softcap)
    out    = dropout(softmax over the visible keys and the sink)·v

Legend: b batch, h query heads, i query, j key.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypedDict

import torch
from torch import Tensor

from posenc.positions import Positions, may_attend
from posenc.support import checks

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float


class AttendOptions(TypedDict, total=False):
    """The options of `attend` that change its output, for functions that pass them on."""

    mask: Tensor | None
    scale: float | None
    window: tuple[int | None, int | None] | None
    chunk: int | None
    softcap: float | None
    sinks: Tensor | None
    dropout: float


@dataclass(frozen=True, eq=False)
class Options:
    """The options of one call, checked where they are taken; `attend` describes them.

    Raises TypeError for wrong types and ValueError for wrong values; each names the option.
    """

    mask: Bool[Tensor, "#b #h #i #j"] | Float[Tensor, "#b #h #i #j"] | None = None
    scale: float | None = None
    window: tuple[int | None, int | None] | None = None
    chunk: int | None = None
    softcap: float | None = None
    sinks: Float[Tensor, "h"] | None = None
    dropout: float = 0.0
    return_lse: bool = False

    def __post_init__(self) -> None:
        checks.positive(**{name: x for name in ("scale", "softcap") if (x := getattr(self, name)) is not None})
        if self.chunk is not None:
            checks.whole(chunk=self.chunk)
        if self.window is not None:
            both = self.window if isinstance(self.window, (tuple, list)) else ()
            if len(both) != 2 or not all(limit is None or (type(limit) is int and limit >= 0) for limit in both):
                raise ValueError(
                    "window: expected (left, right), each a whole number of positions from 0 or None for no limit, "
                    f"got {self.window!r}"
                )
        checks.finite(dropout=self.dropout)
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout: expected a probability from 0 up to, not including, 1, got {self.dropout!r}")
        if not isinstance(self.return_lse, bool):
            raise TypeError(f"return_lse: expected True or False, got {self.return_lse!r}")
        if self.mask is not None and not isinstance(self.mask, Tensor):
            raise TypeError(f"mask: expected a tensor, bool or floating, got {type(self.mask).__name__}")
        if self.sinks is not None and not isinstance(self.sinks, Tensor):
            raise TypeError(f"sinks: expected a tensor with one logit per query head, got {type(self.sinks).__name__}")

    def check(self, q: Tensor, k: Tensor) -> None:
        """Raises ValueError or TypeError where mask or sinks do not fit q [b, h, i, d] and k [b, g, j, d]."""
        if self.mask is not None:
            wanted = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
            if self.mask.dtype != torch.bool and not self.mask.is_floating_point():
                raise TypeError(f"mask: expected bool (True: may attend) or a floating dtype, got {self.mask.dtype}")
            fits = self.mask.ndim == 4 and all(
                size in (1, whole) for size, whole in zip(self.mask.shape, wanted, strict=True)
            )
            if not fits:
                raise ValueError(
                    f"mask: expected 4 axes that broadcast to [b, h, i, j] = {list(wanted)}, got {list(self.mask.shape)}; "
                    "a mask of tokens [b, t] goes to Positions.from_mask"
                )
        if self.sinks is not None and (not self.sinks.is_floating_point() or self.sinks.shape != q.shape[1:2]):
            raise ValueError(
                f"sinks: expected one floating number for each of {q.shape[1]} query heads, as many as "
                f"the output has, got {self.sinks.dtype} {list(self.sinks.shape)}"
            )

    def used(self) -> list[str]:
        """The names of the options that differ from their defaults."""
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        return [name for name, value in options.items() if value is not None and value is not False and not _is_zero(value)]


PLAIN = Options()


def allowed(at_q: Positions, at_k: Positions, causal: bool, options: Options) -> Bool[Tensor, "b #h i j"]:
    """Which query may see which key: documents, padding, causal order, window, chunk and a mask, False or -inf there."""
    seen = may_attend(at_q, at_k, causal)
    if options.window is not None or options.chunk is not None:
        query, key = at_q.order[:, None, :, None], at_k.order[:, None, None, :]
        if options.chunk is not None:
            seen = seen & (query // options.chunk == key // options.chunk)
        left, right = options.window or (None, None)
        if left is not None:
            seen = seen & (query - key <= left)
        if right is not None:
            seen = seen & (key - query <= right)
    if options.mask is not None:
        seen = seen & (options.mask if options.mask.dtype == torch.bool else options.mask != -torch.inf)
    return seen


def capped(logits: Tensor, softcap: float | None) -> Tensor:
    """softcap·tanh(logits / softcap): close to the logits where they are small, never beyond ±softcap."""
    return logits if softcap is None else softcap * (logits / softcap).tanh()


def _is_zero(value: object) -> bool:
    return isinstance(value, (int, float)) and value == 0  # dropout
