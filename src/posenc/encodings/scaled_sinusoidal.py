"""Sinusoids with a learned weight.

    x + α·PE(p),   α learned, 1 when fresh

Li et al. 2018, "Neural Speech Synthesis with Transformer Network", section 3.2.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.sinusoidal import ScaledSinusoidal
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def scaled_sinusoidal(d_model: int, *, base: float = 10000.0) -> ScaledSinusoidal:
    """`ScaledSinusoidal`.

    d_model  channels
    base     the slowest pair turns once in about 2π·base positions
    """
    return ScaledSinusoidal(d_model, base=base)


ENTRY = Entry(
    name="scaled_sinusoidal",
    class_name="ScaledSinusoidal",
    builder="scaled_sinusoidal",
    title=Words("Scaled sinusoidal", "缩放正弦"),
    kind="added",
    published="2018-09",
    needs=("parameters",),
    formula="x + α·[sin pω, cos pω]",
    also_called=(
        "ScaledPositionalEncoding",
        "scaled_positional_encoding",
        "SpeechT5ScaledPositionalEncoding",
    ),
    used_by=(
        "SpeechT5",
        "FastSpeech 2 (ESPnet)",
        "Transformer TTS",
    ),
    source="Li et al. 2018, arXiv 1809.08895, section 3.2",
    idea=Words(
        "The sinusoidal encoding is multiplied by one learned number before it is added. So sources of different "
        "scales, such as phonemes and spectra, find their own weight of position. It costs one parameter.",
        "正弦编码在相加之前乘以一个学到的数。音素、频谱等数值大小不同的输入因此能各自找到位置信号的权重。只多一个参数。",
    ),
    latex=r"x_p + \alpha\, \mathrm{PE}(p)",
    breaks=Words(
        "The same as sinusoids: sums beyond the trained length are new to the model.",
        "与正弦编码相同：超过训练长度的和是模型没见过的。",
    ),
    options={
        "base": "最慢的通道对约 2π·base 个位置转一圈",
    },
)
