"""One call of attention, as it travels from `attend` to a backend: checked, with queries, keys and values rotated.

The scale and the structure of the encoding are asked once, where the call is made, and travel with it.

Legend: b batch, h query heads, g key heads (h is a multiple of g), i query, j key, d channel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from posenc.attention.options import PLAIN, Options
from posenc.encoding import PositionalEncoding, scale_of

if TYPE_CHECKING:
    from posenc.positions import Positions
    from posenc.structure import Structure
    from posenc.support.shapes import Float


class Call(NamedTuple):
    """Rotated q, k and v, where their tokens stand, and what is asked for."""

    q: Float[Tensor, "b h i d"]
    k: Float[Tensor, "b g j d"]
    v: Float[Tensor, "b g j dv"]
    encoding: PositionalEncoding
    at_q: Positions
    at_k: Positions
    causal: bool
    options: Options
    scale: float  # what q·k is multiplied with: the call's own scale, or the encoding's
    structure: Structure | None  # that of the encoding

    @classmethod
    def of(
        cls,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        encoding: PositionalEncoding,
        at_q: Positions,
        at_k: Positions,
        causal: bool = True,
        options: Options = PLAIN,
    ) -> Call:
        """The call of an encoding that is asked for its scale and structure here."""
        scale = scale_of(encoding, q.shape[-1]) if options.scale is None else options.scale
        return cls(q, k, v, encoding, at_q, at_k, causal, options, scale, encoding.structure())

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
        return self._replace(q=q, k=k, v=v, at_q=at_q, at_k=at_k, options=options)

    def row(self, number: int) -> Call:
        """The call of one row of the batch."""
        options, mask, row = self.options, self.options.mask, slice(number, number + 1)
        if mask is not None and len(mask) > 1:
            options = replace(options, mask=mask[row])
        at_q = self.at_q.rows(number, number + 1)
        at_k = at_q if self.at_q is self.at_k else self.at_k.rows(number, number + 1)
        return self._replace(q=self.q[row], k=self.k[row], v=self.v[row], at_q=at_q, at_k=at_k, options=options)

    def with_options(self, **changed: Any) -> Call:
        """The call with these options instead."""
        options = replace(self.options, **changed)
        return self._replace(options=options if options.used() else PLAIN)
