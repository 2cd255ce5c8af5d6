"""Rotary frequencies, in radians per position: pure functions of fp64 Python numbers.

    rotary(d, base)                              base^(-2i/d), the plain frequencies
    linear, ntk, yarn, llama3, longrope, …       from frequencies to frequencies, for longer contexts (scalings, lengths)
    axial, sections, cycling, …                  the coordinate that each pair reads (axes)

They carry two separate magnitudes: one for cos and sin, one for the softmax scale. Each value records its origin in words.
Apply scalings first, then choose axes.
"""

from posenc.frequencies.axes import axial as axial
from posenc.frequencies.axes import cycling as cycling
from posenc.frequencies.axes import in_turns as in_turns
from posenc.frequencies.axes import interleaved_sections as interleaved_sections
from posenc.frequencies.axes import of_axes as of_axes
from posenc.frequencies.axes import sections as sections
from posenc.frequencies.axes import separate as separate
from posenc.frequencies.axes import strided as strided
from posenc.frequencies.base import Arithmetic as Arithmetic
from posenc.frequencies.base import ByLength as ByLength
from posenc.frequencies.base import Frequencies as Frequencies
from posenc.frequencies.base import rotary as rotary
from posenc.frequencies.base import to_the_end as to_the_end
from posenc.frequencies.base import wavelengths as wavelengths
from posenc.frequencies.fractions import partial as partial
from posenc.frequencies.fractions import proportional as proportional
from posenc.frequencies.lengths import DynamicNTK as DynamicNTK
from posenc.frequencies.lengths import LongRoPE as LongRoPE
from posenc.frequencies.lengths import dynamic as dynamic
from posenc.frequencies.lengths import longrope as longrope
from posenc.frequencies.scalings import clipped as clipped
from posenc.frequencies.scalings import dype as dype
from posenc.frequencies.scalings import linear as linear
from posenc.frequencies.scalings import llama3 as llama3
from posenc.frequencies.scalings import mscale_of as mscale_of
from posenc.frequencies.scalings import multiplied as multiplied
from posenc.frequencies.scalings import ntk as ntk
from posenc.frequencies.scalings import ntk_alpha as ntk_alpha
from posenc.frequencies.scalings import power as power
from posenc.frequencies.scalings import resonance as resonance
from posenc.frequencies.scalings import riflex as riflex
from posenc.frequencies.scalings import softmax_mscale as softmax_mscale
from posenc.frequencies.scalings import truncated as truncated
from posenc.frequencies.scalings import yarn as yarn
from posenc.frequencies.scalings import yarn_range as yarn_range
