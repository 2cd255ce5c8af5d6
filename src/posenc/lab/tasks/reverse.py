"""Reverse a string. Kazemnejad et al. 2023, arXiv 2305.19466: the reverse task.

tokens    [ ^  c  a  b  =  b  a  c ]
targets   [ .  .  .  .  b  a  c  $ ]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from torch import Tensor

from posenc.lab.say import say
from posenc.lab.tasks.rewriting import Rewriting
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Int


class Reverse(Rewriting):
    name: Literal["reverse"] = "reverse"

    title: ClassVar[Words] = say("Reverse")

    def rewritten(self, symbols: Int[Tensor, "b n"]) -> Int[Tensor, "b n"]:
        return symbols.flip(1)
