"""A rope_type of one's own, which configurations can name like transformers' own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc.frequencies import Frequencies
from posenc.transformers.versions import warn_untested

Made = Frequencies | Callable[[Any], Frequencies]
_REGISTERED: dict[str, Made] = {}


def register_rope(name: str, frequencies: Made) -> None:
    """Lets configurations say `rope_parameters={"rope_type": name, …}`. Global to the process: undone by `unregister_rope`.

        register_rope("resonant", posenc.frequencies.resonance(posenc.frequencies.rotary(64, base=500_000.0)))

    frequencies   one frequency for each pair, or a function from a model's configuration to them
    Models that are built or loaded afterwards turn as `frequencies` say, `cos_sin_scale` included. transformers warns that
    it cannot validate the type.

    Raises ValueError for a name that is taken or contains "dynamic" (transformers would change the frequencies of such a
    type as the sequence grows), and for frequencies with axes or a softmax scale, which transformers cannot hold; TypeError
    for anything else.
    """
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    from posenc.configs.rotary import ALIASES, TYPES

    warn_untested()
    if not isinstance(name, str) or not name:
        raise TypeError(f"name: expected a name such as 'mine', got {name!r}")
    if "dynamic" in name:
        raise ValueError(f"name: transformers changes the frequencies of a type with 'dynamic' in its name, got {name!r}")
    if name in ROPE_INIT_FUNCTIONS or name in TYPES or name in ALIASES:
        raise ValueError(f"name: {name!r} is taken; choose another, or unregister_rope({name!r}) if it is yours")
    if isinstance(frequencies, Frequencies):
        _check(frequencies)
    elif not callable(frequencies):
        raise TypeError(f"frequencies: expected Frequencies or a function of a configuration, got {frequencies!r}")

    def init(config: Any, device: Any = None, seq_len: Any = None, layer_type: Any = None) -> tuple[Tensor, float]:
        of_config = frequencies if isinstance(frequencies, Frequencies) else frequencies(config)
        _check(of_config)
        pairs = _pairs(config, layer_type)
        if len(of_config) != pairs:
            raise ValueError(
                f"frequencies: {name!r} has {len(of_config)} pairs, the heads of {type(config).__name__} have {pairs}"
            )
        return torch.tensor(of_config.values, dtype=torch.float32, device=device), of_config.cos_sin_scale

    ROPE_INIT_FUNCTIONS[name] = init
    _REGISTERED[name] = frequencies


def unregister_rope(name: str) -> None:
    """Takes back a name of `register_rope`; models built with it keep their frequencies. ValueError for other names."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    if not isinstance(name, str) or name not in _REGISTERED:
        raise ValueError(f"name: expected one of {sorted(_REGISTERED)}, got {name!r}; only register_rope's are taken back")
    del ROPE_INIT_FUNCTIONS[name], _REGISTERED[name]


def _check(frequencies: Any) -> None:
    if not isinstance(frequencies, Frequencies):
        raise TypeError(f"frequencies: expected Frequencies, got {type(frequencies).__name__}; by length: at_length(n)")
    if frequencies.axes or frequencies.softmax_scale != 1:
        raise ValueError("frequencies: transformers holds no axes and no softmax scale in a rope_type; expected neither")


def _pairs(config: Any, layer_type: str | None) -> int:
    """How many pairs turn in a head, as transformers counts them."""
    settings = config.rope_parameters if layer_type is None else config.rope_parameters[layer_type]
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    width = int(head * settings.get("partial_rotary_factor", 1.0))
    return (width + 1) // 2
