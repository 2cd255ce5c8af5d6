"""Giraffe: pairs that never finish a turn in training get one slow frequency or none; or all are slowed by a power.

    truncated   ω' = ω where ω ≥ 2π/L,   2π/(16 L) where 2π/(8 L) ≤ ω < 2π/L,   0 where ω < 2π/(8 L)
    power       ω'_i = ω_i·(1 - 2i/d)^k

Pal et al. 2023, "Giraffe: Adventures in Expanding Context Lengths in LLMs", and the authors' code, whose numbers these are.
Where both are asked for, the power comes first.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def giraffe(
    d_head: int,
    *,
    trained_length: int | None = 2048,
    power: float = 0.0,
    base: float = 10000.0,
    layout: Layout = "interleaved",
) -> RoPE:
    """RoPE with the frequencies of `frequencies.power` and `frequencies.truncated`.

    d_head          channels of a head, even
    trained_length  L, in positions; None: no pair is truncated
    power           k; 0: no pair is slowed; the authors try 0.5
    base            of the trained frequencies
    layout          which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit and a negative power.
    """
    if power < 0:
        raise ValueError(f"power: expected a number from 0, got {power}")
    made = frequencies.rotary(d_head, base)
    if power:
        made = frequencies.power(made, power)
    if trained_length is not None:
        made = frequencies.truncated(made, trained_length)
    return RoPE(d_head, frequencies=made, layout=layout)


ENTRY = Entry(
    name="giraffe",
    class_name="RoPE",
    builder="giraffe",
    title=Words("Giraffe", "Giraffe 截断基"),
    kind="scaled",
    published="2023-08",
    formula="ω' = ω, 2π/(16 L) or 0; or ω·(1 - 2i/d)^k",
    also_called=("truncated_basis", "power_basis", "power_scaling", "ScaledLlamaRotaryEmbedding"),
    used_by=(Words("research: Llama 13B by its authors", "研究：作者的 Llama 13B"),),
    example="""\
encoding = posenc.create("giraffe", d_head=64, trained_length=None, power=0.5)  # the power alone
""",
    source="Pal et al. 2023, arXiv 2308.10882, and the authors' code",
    idea=Words(
        "Pairs that turn at least once within the trained length keep their frequency, because training has shown all of "
        "their angles. Somewhat slower pairs all get one frequency that is slow enough, and the slowest do not turn. The "
        "power form slows every pair instead, slow ones more than fast ones. The model is trained on with either.",
        "在训练长度内至少转一圈的通道对保持原来的频率，因为训练见过它们的所有角度。稍慢的通道对统一取一个足够慢的频率，"
        "最慢的不旋转。幂的形式则让每个通道对都变慢，慢的变得更多。两种形式都需要继续训练模型。",
    ),
    latex=(
        r"\omega'_n = \begin{cases} \omega_n & \omega_n \ge 2\pi/L \\ 2\pi/(16 L) & 2\pi/(8 L) \le \omega_n < 2\pi/L \\ "
        r"0 & \omega_n < 2\pi/(8 L) \end{cases} \quad \text{or} \quad \omega'_n = \omega_n \Big(1 - \frac{2n}{d}\Big)^k"
    ),
    breaks=Words(
        "In the authors' tests both reach less far than linear scaling on retrieval, whatever their perplexity.",
        "在作者的测试中，不论困惑度如何，两者在检索上的有效长度都不及线性缩放。",
    ),
    differs=Words(
        "The authors' README stops every pair that does not finish a turn; their code, which is followed here, gives the "
        "faster ones of them a slow frequency.",
        "作者的 README 让所有转不满一圈的通道对都不旋转；这里依照其代码，其中较快的取一个慢的频率。",
    ),
    code="abacusai/Long-Context",
    options={
        "trained_length": "L，以位置计；None 表示不截断",
        "power": "k；0 表示不变慢；作者试过 0.5",
        "layout": '哪些通道成对；公开的模型为 "half"',
    },
)
