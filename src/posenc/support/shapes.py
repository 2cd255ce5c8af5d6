"""Shapes in annotations: Float[Tensor, "b h t d"] is a tensor of real numbers with these axes.

The names are those of jaxtyping, which need not be installed: type checkers read each as typing.Annotated, so
Float[Tensor, "b t d"] is Tensor to them. posenc.support.checked reads dtype and axes when it checks arguments.
Modules import the names under TYPE_CHECKING.
"""

from typing import Annotated as Bool
from typing import Annotated as Float
from typing import Annotated as Int
from typing import Annotated as Num

__all__ = ["Bool", "Float", "Int", "Num"]
