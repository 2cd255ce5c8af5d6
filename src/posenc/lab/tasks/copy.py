"""Repeat a string. Kazemnejad et al. 2023, arXiv 2305.19466: the copy task.

tokens    [ ^  c  a  c  =  c  a  c ]
targets   [ .  .  .  .  c  a  c  $ ]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from torch import Tensor

from posenc.lab.say import say
from posenc.lab.tasks.rewriting import Rewriting
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Int


class Copy(Rewriting):
    name: Literal["copy"] = "copy"

    title: ClassVar[Words] = say("Copy")

    def rewritten(self, symbols: Int[Tensor, "b n"]) -> Int[Tensor, "b n"]:
        return symbols
