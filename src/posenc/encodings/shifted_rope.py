"""Shifted RoPE (STRING): far tokens are read at distances that training has often seen.

    near, i - j < S      R(i)q · R(j)k
    far                  R(i - S + W)q · R(j)k               i - j - S + W positions away

An et al. 2024, "Why Does the Effective Context Length of LLMs Fall Short?", figure 5: the largest S distances, which
training rarely shows, are left out; those below them take their place, and W more keeps the near tokens apart from them.
Cayley-STRING (cayley_string.py) is another method.
Legend: b batch, i query, j key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.regions import RegionalRoPE
from posenc.frequencies import ByLength
from posenc.frequencies.layouts import Layout
from posenc.structure import Region
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Num


class ShiftedRoPE(RegionalRoPE):
    """RoPE of the distance i - j below `shift`, and of i - j - shift + local from there on.

    d_head       channels of a head
    shift        S, the distances that are left out; 43 253, 0.33 of Llama 3.1's length, in the authors' code
    local        W, up to shift
    base         of the frequencies
    layout       which channels make a pair
    frequencies  other frequencies, as RoPE takes them

    No parameters and nothing to train: it replaces the RoPE of a trained model. Time and memory: see regions.py.
    Raises ValueError for a `local` above `shift`, which would move far tokens further away.
    """

    @checked
    def __init__(
        self,
        d_head: int,
        *,
        shift: int = 43253,
        local: int = 128,
        base: float | None = None,
        layout: Layout = "interleaved",
        frequencies: ByLength | None = None,
    ) -> None:
        checks.whole(shift=shift)
        checks.whole(0, local=local)
        if local > shift:
            raise ValueError(f"local: expected a number up to shift={shift}, got {local}")
        super().__init__(d_head, {"shift": shift, "local": local}, base, layout, frequencies)
        self.shift, self.local = shift, local

    def _regions(self, query: Num[Tensor, "b i"], key: Num[Tensor, "b j"]) -> list[Region]:
        far = (query - self.shift)[:, :, None] >= key[:, None, :]
        return [Region(query - (self.shift - self.local), None, far)]


ENTRY = Entry(
    name="shifted_rope",
    class_name="ShiftedRoPE",
    title=Words("Shifted RoPE (STRING)", "移位旋转（STRING）"),
    kind="rotated",
    published="2024-10",
    needs=("causal",),
    small={"shift": 8, "local": 2},
    arguments={"shift": "length // 4", "local": "length // 16"},
    formula="far: R(i - S + W)q · R(j)k",
    also_called=("string_shift", "shifted_rotary_position_embedding", "ShifTed Rotray position embeddING", "string_llama"),
    used_by=(Words("trained Llama 3.1 and Qwen2, by its authors", "作者用于训练好的 Llama 3.1 和 Qwen2"),),
    source="An et al. 2024, arXiv 2410.18745, figure 5, and the authors' code",
    idea=Words(
        "In training, large distances are rare: a text of n tokens has one pair n - 1 apart and many that are near. So a "
        "trained model reads its largest distances badly. Here every far token is read as if it stood nearer by a fixed "
        "shift, at a distance that training has often seen; near tokens keep theirs.",
        "训练中大的距离很少见：n 个词的文本只有一对相距 n - 1，近的却很多。因此训练好的模型读不好最大的距离。"
        "这里把每个远处的词都当作近了一个固定的位移，落在训练中常见的距离上；近处的词保持原来的距离。",
    ),
    latex=r"i - j < S: \; (R(i) q_i) \cdot (R(j) k_j), \quad i - j \ge S: \; (R(i - S + W) q_i) \cdot (R(j) k_j)",
    starts=("trained",),
    breaks=Words(
        "Distances from W to S mean two things, a near and a far token. It reads better within the trained length, not "
        "beyond it.",
        "从 W 到 S 的距离有两种含义：近处的词和远处的词。它改善的是训练长度以内的阅读，而不是外推。",
    ),
    code="HKUNLP/STRING",
    options={
        "shift": "S，被舍弃的距离数；作者代码对 Llama 3.1 取其长度的 0.33，即 43 253",
        "local": "W，不超过 shift",
    },
)
