"""torchtune's rotary modules, 0.6: x [b, t, h, d], pairs of neighbours, positions by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from posenc.attention.rotary_modules.tokens_first import turned
from posenc.encodings.rope import RoPE
from posenc.frequencies import Frequencies, llama3, rotary
from posenc.support import checks
from posenc.support.checked import checked, checked_on_failure

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int


class RotaryPositionalEmbeddings(nn.Module):
    """torchtune.modules.RotaryPositionalEmbeddings: (a, b) -> (a cos - b sin, b cos + a sin) at angle p·base^(-2i/dim).

    dim           channels of a head, all of which turn
    max_seq_len   taken and checked; there is no table that could end
    base          the slowest pair turns once in about 2π·base positions

    Raises ValueError for an odd dim and for a max_seq_len or a base that is not positive.
    """

    @checked
    def __init__(self, dim: int, max_seq_len: int = 4096, base: float = 10_000) -> None:
        super().__init__()
        checks.whole(1, max_seq_len=max_seq_len)
        self.max_seq_len = max_seq_len
        self.rope = _rope(dim, base)

    def rope_init(self) -> None:
        """Does nothing: torchtune's recipes call it to fill the table, and there is none."""

    @checked_on_failure
    def forward(
        self, x: Float[Tensor, "b t h d"], *, input_pos: Int[Tensor, "#b t"] | None = None
    ) -> Float[Tensor, "b t h d"]:
        """x turned at input_pos, of the batch or of one row for all; at 0, 1, 2, … without. Raises ValueError for other
        shapes."""
        return turned(self.rope, x, input_pos, "input_pos")


class Llama3ScaledRoPE(RotaryPositionalEmbeddings):
    """torchtune.models.llama3_1.Llama3ScaledRoPE: the same with the frequencies of Llama 3.1, `posenc.frequencies.llama3`.

    scale_factor       divides the slow frequencies
    low_freq_factor    pairs with fewer turns in old_context_len are slow, those with more than high_freq_factor are kept
    old_context_len    tokens that the model was trained with

    Raises ValueError as RotaryPositionalEmbeddings does, and for factors that are not positive or are swapped.
    """

    @checked
    def __init__(
        self,
        dim: int,
        max_seq_len: int = 4096,
        base: float = 10_000,
        scale_factor: float = 8,
        low_freq_factor: float = 1,
        high_freq_factor: float = 4,
        old_context_len: int = 8192,
    ) -> None:
        super().__init__(dim, max_seq_len, base)
        checks.positive(scale_factor=scale_factor)
        checks.whole(1, old_context_len=old_context_len)
        self.rope = _of(llama3(self.rope.frequencies, scale_factor, low_freq_factor, high_freq_factor, old_context_len))


def _rope(dim: int, base: float) -> RoPE:
    checks.even(dim=dim)
    return _of(rotary(dim, base))


def _of(frequencies: Frequencies) -> RoPE:
    return RoPE(2 * len(frequencies), frequencies=frequencies)
