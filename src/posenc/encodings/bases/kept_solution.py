"""The solution of an encoding's equation, kept for as long as the parameters are what they were.

It is no state: what it gives is what solving again would give, bit for bit. It is not saved, copied or moved with the
module, and it holds no gradient. This is the one place where a forward keeps something for the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from posenc.encodings.bases.dormand_prince import Solution

SMALL = 2**14  # numbers of a parameter that is compared number by number


class _Kept(NamedTuple):
    solution: Solution
    parameters: tuple[Tensor, ...]  # the same memory, which cannot become that of another tensor while it is held
    versions: tuple[int | None, ...]
    copies: tuple[Tensor, ...]  # of those that are compared by value


class KeptSolution:
    """Holds one solution. `reaching` continues it, or begins a new one if a parameter has changed.

    PyTorch counts the changes of a tensor, and those are compared, with the memory it lies in. What is written through
    `.data` is not counted, so the small parameters, as biases are, are compared by value too: what trains or averages
    weights changes all of them. A large matrix alone, changed through `.data`, goes unnoticed. Of parameters that were made
    in inference mode no change is counted, so all of them are compared by value.
    """

    def __init__(self) -> None:
        self._kept: _Kept | None = None

    def reaching(
        self, time: float, parameters: tuple[Tensor, ...], solve: Callable[[Solution | None, float], Solution]
    ) -> Solution:
        """The solution up to this time. `solve` continues a solution, or begins one if it gets None."""
        kept = self._kept  # read once: another thread may replace it
        if kept is None or not _unchanged(kept, parameters):
            kept = None
        elif kept.solution.ends[-1] >= time:
            return kept.solution
        versions = tuple(map(_version, parameters))
        copies = tuple(parameter.detach().clone() for parameter in _by_value(parameters))
        solution = solve(None if kept is None else kept.solution, time)
        self._kept = _Kept(solution, tuple(parameter.detach() for parameter in parameters), versions, copies)
        return solution

    def __deepcopy__(self, memo: object) -> KeptSolution:
        return KeptSolution()

    def __reduce__(self) -> tuple[type[KeptSolution], tuple[()]]:
        return KeptSolution, ()


def _unchanged(kept: _Kept, parameters: tuple[Tensor, ...]) -> bool:
    for parameter, same, version in zip(parameters, kept.parameters, kept.versions, strict=True):
        if _version(parameter) != version or parameter.data_ptr() != same.data_ptr() or parameter.dtype != same.dtype:
            return False
    return all(torch.equal(current, copy) for current, copy in zip(_by_value(parameters), kept.copies, strict=True))


def _version(parameter: Tensor) -> int | None:
    """How often it has been changed; None where that is not counted."""
    return None if parameter.is_inference() else parameter._version


def _by_value(parameters: tuple[Tensor, ...]) -> list[Tensor]:
    return [parameter for parameter in parameters if parameter.numel() <= SMALL or parameter.is_inference()]
