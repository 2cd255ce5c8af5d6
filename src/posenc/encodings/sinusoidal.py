"""Sinusoidal absolute positions, added to the embeddings.

    PE(p, 2i) = sin(p·ω_i),  PE(p, 2i+1) = cos(p·ω_i),  ω_i = base^(-2i/d)

Vaswani et al. 2017, "Attention Is All You Need", section 3.5.
Legend: b batch, t tokens, d d_model, n = ⌈d/2⌉ frequencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc import frequencies
from posenc.encoding import AbsoluteEncoding
from posenc.encodings.bases.coordinates import Silent, check_reads, select, silent_tokens
from posenc.kernels.sin_cos import sin_cos_table
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_embeddings, tables_at

if TYPE_CHECKING:
    from posenc.support.shapes import Float

# interleaved  s0 c0 s1 c1 s2 c2      sin_cos  s0 s1 s2 | c0 c1 c2      cos_sin  c0 c1 c2 | s0 s1 s2
ChannelLayout = Literal["interleaved", "sin_cos", "cos_sin"]
Denominator = Literal["d/2", "d/2-1"]
OddWidth = Literal["drop", "zero"]


class Sinusoidal(AbsoluteEncoding):
    """x + PE(position). No parameters; defined for any real position.

    d_model      channels
    base         the slowest pair turns once in about 2π·base positions; one number, or one per block (DAB-DETR)
    layout       "interleaved" (the paper), "sin_cos" (tensor2tensor, Whisper) or "cos_sin" (MusicGen)
    denominator  of the exponent: "d/2" (the paper) or "d/2-1" (tensor2tensor: the last frequency is 1/base exactly)
    offset       added to every position, for tables that start later (M2M100)
    axes         coordinates per token
    reads        the coordinate that each block of d_model/len(reads) channels reads; all of them in turn unless said.
                 (1, 0) puts x before y (ViT-MAE), (1, 0, 2, 3) is what DETR makes of boxes (x, y, w, h)
    odd          an odd width has ⌈d/2⌉ frequencies and drops the last cosine, or ("zero", fairseq) ⌊d/2⌋ and a last 0
    repeats      channels in a row that share a frequency; 2 in the pointers of SAM 2's tracker
    scale        position + offset is multiplied with it: 2π for coordinates from 0 to 1
    amplitude    the encoding is multiplied with it: 1/√d in Canary
    silent       tokens that get nothing: "none", "padding" (M2M100), "negative": all that is read, with the offset, is
                 below 0 (the first frame of Kimi, offset -1), or "outside": something that is read is (ViT-MAE's CLS)

    Raises ValueError for an unknown layout, denominator, odd or silent, and a width that the blocks cannot share.
    """

    @checked
    def __init__(
        self,
        d_model: int,
        *,
        base: float | Sequence[float] = 10000.0,
        layout: ChannelLayout = "interleaved",
        denominator: Denominator = "d/2",
        offset: float = 0,
        axes: int = 1,
        reads: Sequence[int] | None = None,
        odd: OddWidth = "drop",
        repeats: int = 1,
        scale: float = 1.0,
        amplitude: float = 1.0,
        silent: Silent = "none",
    ) -> None:
        checks.whole(repeats=repeats)
        for of_block in base if isinstance(base, Sequence) and not isinstance(base, str) else (base,):
            checks.positive(base=of_block)
        checks.positive(scale=scale, amplitude=amplitude)
        checks.moderate(amplitude=amplitude)
        super().__init__(
            d_model=d_model,
            base=base,
            layout=layout,
            denominator=denominator,
            offset=offset,
            axes=axes,
            reads=reads,
            odd=odd,
            repeats=repeats,
            scale=scale,
            amplitude=amplitude,
            silent=silent,
        )
        self.reads = check_reads(reads, axes)
        blocks = len(self.reads)
        if d_model % blocks:
            raise ValueError(f"axes: {d_model} channels cannot be shared evenly by {blocks} axes")
        bases = tuple(base) if isinstance(base, Sequence) else (base,) * blocks
        if len(bases) != blocks:
            raise ValueError(f"base: expected one number or one for each of {blocks} blocks, got {len(bases)}")
        width = d_model // blocks
        turning = width - width % 2 if odd == "zero" else width  # channels that hold a sine or cosine
        if turning < 1 or turning % repeats:
            raise ValueError(f"repeats: {turning} channels cannot be shared evenly by {repeats} of each frequency")
        spacing = frequencies.rotary if denominator == "d/2" else frequencies.to_the_end
        self.d_model, self.layout, self.offset = d_model, layout, offset
        self.scale, self.amplitude, self.silent, self.turning = scale, amplitude, silent, turning
        self.axes = axes
        self.frequencies_of_blocks = tuple(
            tuple(f for f in spacing(turning // repeats, of_block) for _ in range(repeats))[: (turning + 1) // 2]
            for of_block in bases
        )
        self._scaled = tuple(tuple(f * scale for f in of_block) for of_block in self.frequencies_of_blocks)

    @property
    def frequencies(self) -> tuple[float, ...]:
        """The frequencies of the first block."""
        return self.frequencies_of_blocks[0]

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor]:
        check_coords(self, at)
        blocks = len(self.reads)
        moved = at.shift(self.offset) if self.offset else at
        read = select(moved, self.reads)
        per_block = sin_cos_table(read, self._scaled, dtype)  # [b, t, blocks·n, 2]
        per_block = per_block.unflatten(2, (blocks, -1))  # [b, t, blocks, n, 2]
        table = arrange(per_block, self.turning, self.layout)
        if self.turning * blocks < self.d_model:
            table = F.pad(table, (0, 1))
        table = table.flatten(2)
        if self.amplitude != 1:
            table = table * self.amplitude
        if self.silent != "none":
            table = table.masked_fill(silent_tokens(read, self.silent)[..., None], 0)
        return (table,)


class ScaledSinusoidal(Sinusoidal):
    """x + alpha·PE(position) with one learned number alpha, 1 at first. Options as for Sinusoidal.

    Li et al. 2018, "Neural Speech Synthesis with Transformer Network", section 3.2; SpeechT5.
    """

    def __init__(self, d_model: int, **options: Any) -> None:
        super().__init__(d_model, **options)
        self.alpha = nn.Parameter(torch.ones(()))

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        (table,) = tables_at(self, at, x.dtype)
        return (x.to(table.dtype) + self.alpha.to(table.dtype) * table).to(x.dtype)


def arrange(sin_cos: Float[Tensor, "*s n 2"], width: int, layout: ChannelLayout) -> Float[Tensor, "*s d"]:
    """(sin, cos) of n frequencies as `width` channels; an odd width loses the last cosine."""
    if layout == "interleaved":
        return sin_cos.flatten(-2)[..., :width]
    sin, cos = sin_cos.unbind(-1)
    cos = cos[..., : width // 2]
    return torch.cat([sin, cos] if layout == "sin_cos" else [cos, sin], dim=-1)


@checked
def sinusoidal_table(
    length: int, d_model: int, base: float = 10000.0, start: int = 0, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "length d_model"]:
    """PE(start) … PE(start+length-1), one row per position: sin in even channels, cos in odd ones.

    Computed in fp64 and rounded once to `dtype`. Raises ValueError for a length, width or base that is not positive.

    >>> sinusoidal_table(3, 4, base=100.0)[1]
    tensor([0.8415, 0.5403, 0.0998, 0.9950])
    """
    if not dtype.is_floating_point:
        raise TypeError(f"dtype: expected a floating dtype, got {dtype}")
    of_each = frequencies.rotary(d_model, base).values
    table = sin_cos_table(Positions.arange(1, length, start), [of_each], dtype)[0]
    return arrange(table, d_model, "interleaved")


@checked
def centred_table(
    length: int, d_model: int, base: float = 10000.0, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "length d_model"]:
    """(PE - mean) / (10 standard deviations), over all rows and channels: what PatchTST starts from and keeps in its table.

    It depends on the number of rows, so it belongs in `Learned(...).table`. Nie et al. 2022, in their code.
    """
    plain = sinusoidal_table(length, d_model, base, dtype=torch.float64)
    return ((plain - plain.mean()) / (10 * plain.std())).to(dtype)


@checked
def sinusoidal_2d(d_model: int, *, base: float = 10000.0) -> Sinusoidal:
    """`Sinusoidal` of two axes, column before row; positions are (y, x), as Positions.grid gives them.

    d_model  channels, a multiple of 4
    base     the slowest pair turns once in about 2π·base patches

    A token with a negative coordinate gets nothing: the class token, which Positions.grid(height, width, prefix=1) puts at
    (-1, 0). Raises ValueError for a width that cannot be shared.
    """
    checks.multiple(4, d_model=d_model)
    return Sinusoidal(d_model, base=base, axes=2, reads=(1, 0), layout="sin_cos", silent="outside")


@checked
def detr(d_model: int, *, base: float = 10000.0) -> Sinusoidal:
    """`Sinusoidal` of two axes, row before column; positions are those of posenc.positions_by("pixels", …).

    d_model  channels, a multiple of 4
    base     temperature in DETR's code; 20 in some of its followers

    Raises ValueError for a width that cannot be shared.
    """
    checks.multiple(4, d_model=d_model)
    return Sinusoidal(d_model, base=base, axes=2)


@checked
def scaled_sinusoidal(d_model: int, *, base: float = 10000.0) -> ScaledSinusoidal:
    """`ScaledSinusoidal`.

    d_model  channels
    base     the slowest pair turns once in about 2π·base positions
    """
    return ScaledSinusoidal(d_model, base=base)
