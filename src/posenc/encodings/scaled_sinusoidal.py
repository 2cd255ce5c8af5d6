"""Sinusoids with a learned weight.

    x + α·PE(p),   α learned, 1 when fresh

Li et al. 2018, "Neural Speech Synthesis with Transformer Network", section 3.2.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.sinusoidal import ScaledSinusoidal
from posenc.support.checked import checked


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
    title="Scaled sinusoidal",
    kind="added",
    published="2018-09",
    needs=("parameters",),
    formula="x + α·[sin pω, cos pω]",
    also_called=("ScaledPositionalEncoding", "scaled_positional_encoding", "SpeechT5ScaledPositionalEncoding"),
    used_by=("SpeechT5", "FastSpeech 2 (ESPnet)", "Transformer TTS"),
)
