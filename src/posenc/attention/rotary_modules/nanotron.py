"""nanotron's rotary module, 0.4, and the rotation by tables that its attention takes from flash-attn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from posenc.attention.rotary_modules.tokens_first import both_turned, check_both, check_table, turned
from posenc.encodings.rope import RoPE
from posenc.frequencies import rotary
from posenc.support import checks
from posenc.support.checked import checked, checked_on_failure
from posenc.support.checks import shown

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int


class RotaryEmbedding(nn.Module):
    """nanotron.models.llama.RotaryEmbedding: (a, b) -> (a cos - b sin, b cos + a sin) at angle p·theta^(-2i/dim).

    dim           channels of a head, all of which turn
    end           taken and checked; there is no table that could end
    theta         the slowest pair turns once in about 2π·theta positions
    interleaved   whether neighbours make a pair, as in nanotron's Llama, or halves, as its Qwen2 may be configured

    Raises ValueError for an odd dim and for an end or a theta that is not positive.
    """

    @checked
    def __init__(self, dim: int, end: int, theta: float = 10000.0, *, interleaved: bool = True) -> None:
        super().__init__()
        checks.even(dim=dim)
        checks.whole(1, end=end)
        checks.positive(theta=theta)
        self.end = end
        self.rope = RoPE(dim, frequencies=rotary(dim, theta), layout="interleaved" if interleaved else "half")

    def init_rotary_embeddings(self) -> None:
        """Does nothing: nanotron's module fills its table here, and there is none."""

    @checked_on_failure
    def forward(
        self, x: Float[Tensor, "b t h d"], position_ids: Int[Tensor, "#b t"] | None = None
    ) -> Float[Tensor, "b t h d"]:
        """x turned at position_ids, of the batch or of one row for all; at 0, 1, 2, … without. Raises ValueError for other
        shapes."""
        return turned(self.rope, x, position_ids, "position_ids")


@checked_on_failure
def apply_rotary_emb(
    q: Float[Tensor, "b t h d"],
    k: Float[Tensor, "b t g d"],
    cos: Float[Tensor, "*b t n"],
    sin: Float[Tensor, "*b t n"],
    interleaved: bool = False,
) -> tuple[Float[Tensor, "b t h d"], Float[Tensor, "b t g d"]]:
    """Queries and keys with their first 2n channels turned: flash-attn's apply_rotary_emb, for both in one call.

    cos, sin      one for each pair, [t, n] or [b or 1, t, n]
    interleaved   whether neighbours make a pair, or halves

    The rotation is in fp32 whatever the dtype of the tables. Gradients flow to all four. Raises ValueError for shapes that
    do not fit.
    """
    check_both(q=q, k=k)
    if type(interleaved) is not bool:
        raise TypeError(f"interleaved: expected True or False, got {shown(interleaved)}")
    b, t = q.shape[:2]
    for name, table in (("cos", cos), ("sin", sin)):
        check_table(name, table, q)
        fits = table.ndim == 2 or (table.ndim == 3 and (table.shape[0] == 1 or table.shape[0] == b))
        if not fits or table.shape[-2] != t or table.shape != cos.shape:
            expected = f"[{t}, n] or [{b} or 1, {t}, n] for q of {list(q.shape)}, cos and sin alike"
            raise ValueError(f"{name}: expected {expected}, got {list(table.shape)}")
    cos, sin = (table if table.ndim == 3 else table[None] for table in (cos, sin))
    return both_turned(q, k, cos, sin, "interleaved" if interleaved else "half")
