"""`Positions` as a pytree whose leaves are its tensors: through torch.compile, export and devices.

Rebuilt without checks, since a leaf may be a fake tensor or a specification.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.utils import _pytree

if TYPE_CHECKING:
    from posenc.positions import Positions

Names = tuple[tuple[str, int], ...]  # of owners, and how many tensors each has
Parts = tuple[list[Any], tuple[str | None, Names, Names]]
Made = Callable[..., Any]
"""What makes positions of coords, order, document, consecutive_in, tables and states."""


def parts_of(at: Positions) -> Parts:
    """The tensors, and what else makes these positions again."""
    tables, states = (tuple((owner, len(of_owner)) for owner, of_owner in of.items()) for of in (at.tables, at.states))
    carried = (tensor for of in (at.tables, at.states) for of_owner in of.values() for tensor in of_owner)
    return [at.coords, at.order, at.document, *carried], (at.consecutive_in, tables, states)


def rebuilt(made: Made, leaves: Any, context: Any) -> Any:
    consecutive_in, *names = context
    coords, order, document, *rest = leaves
    carried: list[dict[str, tuple[Tensor, ...]]] = []
    for of in names:
        carried.append({})
        for owner, count in of:
            carried[-1][owner], rest = tuple(rest[:count]), rest[count:]
    tables, states = carried
    return made(coords, order, document, consecutive_in, tables, states)


def _flatten(at: Positions) -> Parts:
    """`arange` has one tensor for coords and order. They are two leaves: torch.export makes one input of one tensor, and an
    exported graph would read order where the encoding reads coords."""
    leaves, context = parts_of(at)
    if leaves[1] is leaves[0] and isinstance(leaves[1], Tensor):
        leaves[1] = leaves[1].view_as(leaves[1])
    return leaves, context


def _flatten_with_keys(at: Positions) -> Any:
    leaves, context = _flatten(at)
    return [(_pytree.SequenceKey(n), leaf) for n, leaf in enumerate(leaves)], context


def register(kind: type[Positions], made: Made) -> None:
    _pytree.register_pytree_node(
        kind,
        _flatten,
        functools.partial(rebuilt, made),
        serialized_type_name="posenc.Positions",
        flatten_with_keys_fn=_flatten_with_keys,
        to_dumpable_context=lambda context: [context[0], *([list(pair) for pair in names] for names in context[1:])],
        from_dumpable_context=lambda dumped: (dumped[0], *(tuple(map(tuple, names)) for names in dumped[1:])),
    )
