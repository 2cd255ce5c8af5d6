"""What an experiment sets of an encoding in place of its defaults: positive numbers, by the names that its class takes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING

from posenc.catalogue import lookup
from posenc.lab.experiment.arm import OF_THE_LAB, WINDOW, Arm, encoding_of
from posenc.lab.experiment.error_line import nearest

if TYPE_CHECKING:
    from posenc.lab.experiment import Size

FEW_POSITIONS = 8  # enough to build the encoding


def check_settings(word: str, settings: Mapping[str, float], size: Size, causal: bool) -> None:
    """Raises ValueError for a name that is no number of the encoding, and for a value that its class refuses."""
    numbers = numbers_of(encoding_of(word))
    for name in settings:
        if name in lookup.SIZES:
            raise ValueError(f"{name} is decided by the size of the experiment; leave it out")
        if name not in (*numbers, *OF_THE_LAB):
            raise ValueError(
                f"{word} takes no number called {name}{nearest(name, numbers)} (it takes {', '.join(numbers) or 'none'})"
            )
    if (window := settings.get(WINDOW, 1)) != round(window):
        raise ValueError(f"{WINDOW}: expected a whole number of keys, got {window!r}")
    arm = Arm.parse(word, None, tuple(settings.items()))
    sizes = {"d_model": size.d_model, "n_heads": size.n_heads, "n_layers": size.n_layers, "positions": FEW_POSITIONS}
    try:
        arm.create(**sizes, causal=causal)
    except TypeError as error:
        raise ValueError(str(error)) from None


def numbers_of(encoding: str) -> list[str]:
    """The options of an encoding that are numbers."""
    parameters = inspect.signature(lookup.BY_NAME[encoding].maker()).parameters
    return [
        name
        for name, about in parameters.items()
        if name not in lookup.SIZES and {"int", "float"} & {part.strip() for part in str(about.annotation).split("|")}
    ]
