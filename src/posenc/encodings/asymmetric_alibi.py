"""ALiBi for attention both ways: learned slopes, one for keys before the query and one for those after it.

    logits += s_h · |i - j| for j < i,   t_h · |i - j| for j > i

The authors of ALiBi propose it for encoders (issue 5 of their repository), since the slopes of the paper (2108.12409)
cannot tell before from after. BERT models that follow them begin with slopes drawn from N(-2, 1); so it is here.
Legend: h query heads, n distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.catalogue.entry import Entry
from posenc.encoding import DistanceBias, check_distances
from posenc.support.checked import checked
from posenc.support.languages import Words
from posenc.support.tensor_checks import beside

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num


class AsymmetricALiBi(DistanceBias):
    """slope·|distance|, another slope before the query than after it, learned. Any length, integers or reals.

    n_heads  query heads

    Parameters: before and after [n_heads], N(-2, 1) at the start, without a bound: a positive one looks far away.
    Time and memory are ALiBi's.
    """

    exact_parameters = ("before", "after")

    @checked
    def __init__(self, n_heads: int) -> None:
        super().__init__(n_heads=n_heads)
        self.before = nn.Parameter(torch.empty(n_heads).normal_(-2.0, 1.0))
        self.after = nn.Parameter(torch.empty(n_heads).normal_(-2.0, 1.0))

    def at_distance(self, delta: Num[Tensor, "n"]) -> Float[Tensor, "h n"]:
        check_distances(delta)
        beside(self.before, delta=delta)
        slopes = torch.where(delta > 0, self.before.double()[:, None], self.after.double()[:, None])
        return slopes * delta.abs()

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> AsymmetricALiBi:
        part = AsymmetricALiBi(stop - start).to(self.before)
        part.before.copy_(self.before[start:stop])
        part.after.copy_(self.after[start:stop])
        return part


ENTRY = Entry(
    name="asymmetric_alibi",
    class_name="AsymmetricALiBi",
    title=Words("Asymmetric ALiBi", "非对称 ALiBi"),
    kind="biased",
    published="2021-11",
    needs=("parameters",),
    per_layer=True,
    formula="q·k + s|i-j| before, t|i-j| after",
    also_called=("nonsymmetric_alibi", "nosym_alibi", "bidirectional_alibi", "encoder_alibi"),
    used_by=(Words("BERT models with ALiBi", "带 ALiBi 的 BERT 模型"),),
    source="Press 2021, issue 5 of ALiBi's repository; Press et al. 2021, arXiv 2108.12409, section 3",
    idea=Words(
        "With attention both ways ALiBi treats a key before the query like one as far after it. Here each head learns two "
        "slopes: how fast the score falls towards the beginning of the text, and how fast towards its end. So a head can "
        "look back only, or ahead only.",
        "双向注意力中，ALiBi 对查询之前和之后同样远的键一视同仁。这里每个头学习两个斜率："
        "分数向文本开头下降多快，向结尾下降多快。因此一个头可以只看前面，或只看后面。",
    ),
    latex=r"\frac{q_i \cdot k_j}{\sqrt{d}} + \begin{cases} s_h |i - j| & j < i \\ t_h |i - j| & j > i \end{cases}",
    breaks=Words(
        "Slopes have no bound: one that training makes positive prefers the furthest tokens, more so in longer texts.",
        "斜率没有界限：训练得到的正斜率偏爱最远的词，文本越长越甚。",
    ),
    code="ofirpress/attention_with_linear_biases",
    options={"n_heads": "查询头数"},
)
