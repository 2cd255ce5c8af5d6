"""Gemma 3: five sliding layers with a base of 10 000, then one over everything with 1 000 000, interpolated.

    layers 0 … 4: ω_i = 10⁴^(-2i/d)     layer 5: ω_i = 10⁶^(-2i/d)/8     and so on

Gemma Team 2025, "Gemma 3 Technical Report", section 2. The window belongs to the call: attend(…, window=1024).
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.combined import PerLayer
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def gemma3(
    d_head: int,
    n_layers: int = 62,
    *,
    factor: float = 8.0,
    base: float = 1000000.0,
    local_base: float = 10000.0,
    layout: Layout = "half",
) -> PerLayer:
    """The encodings of Gemma 3's layers; a layer takes its own with at_layer(n).

    d_head      channels of a head, even
    n_layers    layers of the model; 62 in that of 27 billion parameters
    factor      by which the full layers are interpolated; 1 before the context was extended
    base        of the full layers
    local_base  of the sliding layers
    layout      which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    near = RoPE(d_head, frequencies=frequencies.rotary(d_head, local_base), layout=layout)
    far = RoPE(d_head, frequencies=frequencies.linear(frequencies.rotary(d_head, base), factor), layout=layout)
    return PerLayer([far if (n + 1) % 6 == 0 else near for n in range(n_layers)])


ENTRY = Entry(
    name="gemma3",
    class_name="PerLayer",
    builder="gemma3",
    title=Words("Gemma 3", "Gemma 3 的分层底数"),
    kind="preset",
    published="2025-03",
    formula="5 × RoPE(10⁴), RoPE(10⁶)/8, …",
    also_called=(
        "per_layer_base",
        "rope_local_base_freq",
        "local_global_rope",
    ),
    used_by=(
        "Gemma 3",
        Words("Gemma 3n (without interpolation)", "Gemma 3n（无插值）"),
    ),
    source="Gemma Team 2025, arXiv 2503.19786, section 2",
    idea=Words(
        "Layers that see a window keep RoPE's usual base, which tells near tokens apart; every sixth layer sees "
        "everything and has a base of a million, interpolated when the context grows. Only the few far layers need "
        "changing for long texts. The cache is small, since most layers keep a window.",
        "只看窗口的层保持 RoPE 通常的底数，便于分辨近处；每第六层看见全部，底数为一百万，扩展上下文时再做插值。处理"
        "长文本只需改动少数几层。多数层只保留窗口，缓存很小。",
    ),
    latex=r"\omega^{(l)}_n = \begin{cases} 10^{-12 n/d} / 8 & l \bmod 6 = 5 \\ 10^{-8 n/d} & l \bmod 6 < 5 \end{cases}",
    breaks=Words(
        "It needs windows in five of six layers; without them those layers meet distances that they do not know.",
        "六层中有五层需要窗口；没有窗口，这些层会遇到没见过的距离。",
    ),
    code="google-deepmind/gemma",
    options={
        "base": "看见全部的层的底数",
        "n_layers": "模型的层数；270 亿参数的模型为 62",
        "factor": "看见全部的层的插值倍数；扩展上下文之前为 1",
        "local_base": "滑动窗口层的底数",
    },
)
