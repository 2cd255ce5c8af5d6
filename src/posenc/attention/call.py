"""One call of attention, as it travels from `attend` to a backend: checked, with queries, keys and values rotated.

Legend: b batch, h query heads, g key heads (h is a multiple of g), i query, j key, d channel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from posenc.attention.options import PLAIN, Options
from posenc.structure import scale_of

if TYPE_CHECKING:
    from posenc.encoding import PositionalEncoding
    from posenc.positions import Positions
    from posenc.support.shapes import Float


class Call(NamedTuple):
    """Rotated q, k and v, where their tokens stand, and what is asked for."""

    q: Float[Tensor, "b h i d"]
    k: Float[Tensor, "b g j d"]
    v: Float[Tensor, "b g j dv"]
    encoding: PositionalEncoding
    at_q: Positions
    at_k: Positions
    causal: bool = True
    options: Options = PLAIN

    @property
    def scale(self) -> float:
        """What q·k is multiplied with: the call's own scale, or the encoding's."""
        scale = self.options.scale
        return scale_of(self.encoding, self.q.shape[-1]) if scale is None else scale

    @property
    def groups(self) -> int:
        """How many query heads share a key head."""
        return self.q.shape[1] // self.k.shape[1]

    def in_one_row(self) -> bool:
        """Whether queries and keys are the same tokens, which count up by one."""
        return self.at_q is self.at_k and self.at_q.consecutive_in == "row"

    def part(self, queries: slice, keys: slice, at: Positions | None = None) -> Call:
        """The call of these queries over these keys. `at`: the positions of both, where they are the same tokens."""
        options, mask = self.options, self.options.mask
        if mask is not None:  # axes of size 1 serve every part
            mask = mask if mask.shape[2] == 1 else mask[:, :, queries]
            options = replace(options, mask=mask if mask.shape[3] == 1 else mask[:, :, :, keys])
        at_q = at or self.at_q.narrow(queries.start, queries.stop)
        at_k = at or self.at_k.narrow(keys.start, keys.stop)
        q, k, v = self.q[:, :, queries], self.k[:, :, keys], self.v[:, :, keys]
        return Call(q, k, v, self.encoding, at_q, at_k, self.causal, options)

    def row(self, number: int) -> Call:
        """The call of one row of the batch."""
        options, mask, row = self.options, self.options.mask, slice(number, number + 1)
        if mask is not None and len(mask) > 1:
            options = replace(options, mask=mask[row])
        at_q = self.at_q.rows(number, number + 1)
        at_k = at_q if self.at_q is self.at_k else self.at_k.rows(number, number + 1)
        return Call(self.q[row], self.k[row], self.v[row], self.encoding, at_q, at_k, self.causal, options)

    def with_options(self, **changed: Any) -> Call:
        """The call with these options instead."""
        options = replace(self.options, **changed)
        return self._replace(options=options if options.used() else PLAIN)
