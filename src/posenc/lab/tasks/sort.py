"""Sort the symbols of a string in ascending order. Kazemnejad et al. 2023, arXiv 2305.19466: the sort task.

    tokens    [ ^  c  a  c  b  =  a  b  c  c ]
    targets   [ .  .  .  .  .  a  b  c  c  $ ]

The answer depends on the number of each symbol, not on the positions of the symbols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from torch import Tensor

from posenc.lab.say import say
from posenc.lab.tasks.rewriting import Rewriting
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Int


class Sort(Rewriting):
    name: Literal["sort"] = "sort"

    title: ClassVar[Words] = say("Sort")

    def rewritten(self, symbols: Int[Tensor, "b n"]) -> Int[Tensor, "b n"]:
        return symbols.sort(dim=1).values
