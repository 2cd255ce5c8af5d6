"""RNoPE-SWA: three layers with RoPE and a sliding window, then one without positions that sees everything.

    layers 0, 1, 2: R(p)q · R(p')k     layer 3: q·k     and so on

Yang et al. 2025, "Rope to Nope and Back Again: A New Hybrid Attention Strategy"; Command A.
The window belongs to the call: attend(…, window=4096) in the rotating layers.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.combined import PerLayer
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def rnope_swa(
    d_head: int, n_layers: int = 32, *, period: int = 4, base: float = 10000.0, layout: Layout = "interleaved"
) -> PerLayer:
    """The encodings of the layers; a layer takes its own with at_layer(n).

    d_head    channels of a head, even
    n_layers  layers of the model
    period    every so many layers, the last one has no positions
    base      of the rotating layers
    layout    which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    checks.whole(period=period)
    rotating, still = RoPE(d_head, base=base, layout=layout), NoPE()
    return PerLayer([still if (n + 1) % period == 0 else rotating for n in range(n_layers)])


ENTRY = Entry(
    name="rnope_swa",
    class_name="PerLayer",
    builder="rnope_swa",
    title=Words("RNoPE-SWA", "窗口 RoPE 与全局 NoPE 交替"),
    kind="preset",
    published="2025-01",
    formula="RoPE, RoPE, RoPE, q·k, …",
    also_called=(
        "rnope",
        "swan",
        "swan_gpt",
        "rope_to_nope",
        "smollm3",
    ),
    used_by=(
        "Command A",
        "Cohere2",
        "EXAONE 4",
    ),
    source="Yang et al. 2025, arXiv 2501.18795",
    idea=Words(
        "Layers with RoPE attend within a window, so that their distances stay small; every fourth layer has no "
        "positions and reads the whole context by content. In the authors' models the mixture does better on long "
        "contexts than RoPE in all layers. Command A has it.",
        "使用 RoPE 的层只在窗口内注意，距离因此总是较小；每第四层没有位置，按内容读取整个上下文。在作者的模型中，"
        "这种混合在长上下文上优于所有层都用 RoPE。Command A 采用。",
    ),
    latex=r"l \bmod 4 < 3: \; (R(i) q_i) \cdot (R(j) k_j), \; i - j < w, \quad l \bmod 4 = 3: \; q_i \cdot k_j",
    breaks=Words(
        "It needs windows in the rotating layers, and training from the start.",
        "旋转层需要窗口，且须从头训练。",
    ),
    options={
        "base": "旋转层的底数",
        "period": "每这么多层中，最后一层没有位置",
    },
)
