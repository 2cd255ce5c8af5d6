"""An attention module's forward with the families' rotations bound to other functions, for one module of one model.

    type(module).forward      def forward(…): … q, k = apply_rotary_pos_emb(q, k, cos, sin) …
    module.forward            the same code, in which the name apply_rotary_pos_emb is another function

The forward of a class is a function that looks the name up in its module of transformers. `bind` gives a module a forward
of its own; transformers and all other models stay as they are. A deep copy keeps it. A pickled module has its class's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import CellType, FunctionType, MethodType
from typing import Any

from torch import nn

from posenc.transformers.rotation_forms import NAMES, Rotate

OWNER = "_posenc_owner"  # of a function that `bind` has made
ATTACHED, OBSERVED = "attached", "observed"  # owners: `attach`, and runs that look on


def rotations(module: nn.Module) -> dict[Rotate, str]:
    """The families' rotations that the code of the module's forward names."""
    return dict(_named(type(module).forward))


def bind(module: nn.Module, rotates: Mapping[Rotate, Rotate], owner: str) -> None:
    """Gives the module a forward that calls other functions instead of the families' rotations."""
    forward = _bound(type(module).forward, rotates)
    if forward is not type(module).forward:
        setattr(forward, OWNER, owner)
        module.forward = MethodType(forward, module)


def owner_of(module: nn.Module) -> str | None:
    """Who gave the module the forward that it has: None for its class's own, "" for code that is not posenc's."""
    forward = vars(module).get("forward")
    function = getattr(forward, "func", None) or getattr(forward, "__func__", None)  # of a partial, or of a method
    if forward is None or function is type(module).forward:
        return None
    return getattr(function, OWNER, "")


def unbind(module: nn.Module, owner: str) -> None:
    """Undoes `bind` for this owner. Does nothing if the forward was replaced since."""
    if owner_of(module) == owner:
        del module.forward


def _named(function: Any) -> Iterator[tuple[Rotate, str]]:
    """The rotations that a function names, or the one that it wraps, as torch.no_grad() wraps one."""
    if isinstance(function, FunctionType):
        yield from ((function.__globals__[name], name) for name in NAMES if _names(function, name))
        yield from _named(getattr(function, "__wrapped__", None))


def _names(function: FunctionType, name: str) -> bool:
    return name in function.__code__.co_names and isinstance(function.__globals__.get(name), FunctionType)


def _bound(function: Any, rotates: Mapping[Rotate, Rotate]) -> Any:
    """A function like this one, which calls others in the place of the families' rotations, as does the one it wraps.

    The copied globals have no __name__, so that torch.compile does not look them up in transformers' module.
    """
    if not any(function_named in rotates for function_named, _ in _named(function)):
        return function
    names = {name: value for name, value in function.__globals__.items() if name != "__name__"}
    names |= {name: rotates[names[name]] for name in NAMES if names.get(name) in rotates}
    wrapped = getattr(function, "__wrapped__", None)
    cells = function.__closure__ and tuple(
        CellType(_bound(wrapped, rotates)) if cell.cell_contents is wrapped else cell for cell in function.__closure__
    )
    bound = FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
    bound.__kwdefaults__ = function.__kwdefaults__
    return bound
