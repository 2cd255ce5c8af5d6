"""iRoPE: three layers with RoPE, then one without, which has a temperature instead.

    layers 0, 1, 2: R(p)q · R(p')k     layer 3: (1 + 0.1·ln(1 + ⌊(i + 1)/8192⌋))·q·k     and so on

Meta 2025, Llama 4 and its code. Its rotating layers attend within chunks of 8192 tokens: attend(…, chunk=8192).
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.combined import PerLayer
from posenc.encodings.bases.temperature import FloorLogTemperature
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def irope(d_head: int, n_layers: int = 48, *, base: float = 500000.0, layout: Layout = "interleaved") -> PerLayer:
    """The encodings of Llama 4's layers; a layer takes its own with at_layer(n).

    d_head    channels of a head, even
    n_layers  layers of the model
    base      of the rotating layers
    layout    which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    rotating, still = RoPE(d_head, base=base, layout=layout), FloorLogTemperature()
    return PerLayer([still if (n + 1) % 4 == 0 else rotating for n in range(n_layers)])


ENTRY = Entry(
    name="irope",
    class_name="PerLayer",
    builder="irope",
    title=Words("iRoPE", "交错 RoPE"),
    kind="preset",
    published="2025-04",
    formula="RoPE, RoPE, RoPE, temperature, …",
    also_called=(
        "i_rope",
        "llama4",
        "no_rope_layers",
        "interleaved_rope",
    ),
    used_by=("Llama 4",),
    source="Meta 2025, Llama 4 and its code",
    idea=Words(
        "Three of four layers rotate and look at near tokens only; every fourth has no positions and sees the "
        "whole context, sharpened with its length. The layers that see far depend on no position that training has "
        "not seen. Only a quarter of the layers keeps a whole cache.",
        "四层中三层旋转，只看附近；每第四层没有位置，看见整个上下文，并随长度变尖锐。看得远的层因此不依赖训练中没见"
        "过的位置。只有四分之一的层保留完整缓存。",
    ),
    latex=r"l \bmod 4 < 3: \; (R(i) q_i) \cdot (R(j) k_j), \quad l \bmod 4 = 3: \; \left(1 + 0.1 \ln\!\left(1 + "
    r"\left\lfloor \tfrac{i + 1}{8192} \right\rfloor\right)\right) q_i \cdot k_j",
    breaks=Words(
        "Rotating layers need chunks of attention; without them they meet distances that they do not know.",
        "旋转层需要分块的注意力；没有分块会遇到没见过的距离。",
    ),
    code="meta-llama/llama-models",
    options={
        "base": "旋转层的底数",
    },
)
