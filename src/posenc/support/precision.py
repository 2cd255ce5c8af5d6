"""The dtypes that positions are computed in, whatever the model's: float32, or float64 for float64."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn

STORED_ELSEWHERE = (
    *("inv_freq", "cos_cached", "sin_cached", "cos_sin_cache", "freqs", "freqs_cis", "pe"),
    *("position_ids", "relative_position_index"),
)
"""Tables and indices that other programs keep in checkpoints. Here they are computed from the configuration."""


NOTHING = contextlib.nullcontext()


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in: float64 for float64, float32 for everything else."""
    if type(dtype) is not torch.dtype:
        raise TypeError(f"dtype: expected a floating torch.dtype, got {dtype!r}")
    return torch.float64 if dtype == torch.float64 else torch.float32


def exact_dtype() -> torch.dtype:
    """The dtype in which fresh `exact_parameters` are computed: torch's default, or float32 where that is narrower."""
    return working_dtype(torch.get_default_dtype())


def full_precision(tensor: Tensor) -> contextlib.AbstractContextManager[Any]:
    """Autocast off: positions are computed in float32 or float64 whatever the caller has switched on."""
    kind = tensor.device.type
    if kind == "meta" or not torch.is_autocast_enabled(kind):  # meta: nothing is computed, autocast does not know it
        return NOTHING  # autocast would cost 4 µs for each decoded token
    return torch.autocast(device_type=kind, enabled=False)


class ExactParameters(nn.Module):
    """A module that keeps the parameters named in `exact_parameters` in float32 or float64, and computes its tables.

    These parameters multiply positions, or add to each token of a sum. A position multiplies their rounding: bfloat16's
    2⁻⁹ of a frequency is 8 radians at position 4096.
    """

    exact_parameters: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: Any) -> None:
        """Widens one of `exact_parameters` to float32: constructors and loaders assign what they made or read."""
        if name in self.exact_parameters and isinstance(value, nn.Parameter):
            value.data = _wide(value.data, value.data)
        super().__setattr__(name, value)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """What `to`, `half` and `bfloat16` call: the `exact_parameters` and their gradients are moved, and stay float32."""
        kept = [parameter for name, parameter in self.named_parameters() if name in self.exact_parameters]
        exact = {id(tensor) for parameter in kept for tensor in (parameter, parameter.grad)}
        super()._apply(lambda tensor: _wide(fn(tensor), tensor) if id(tensor) in exact else fn(tensor), recurse)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Passes over STORED_ELSEWHERE, so that a checkpoint of another program loads strictly; nothing of it is used."""
        for name in STORED_ELSEWHERE:
            if name not in self._parameters and name not in self._buffers:
                state_dict.pop(prefix + name, None)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _wide(converted: Tensor, tensor: Tensor) -> Tensor:
    """What `tensor` was converted to; `tensor` in float32 on the same device where that is narrower than float32."""
    if converted.is_floating_point() and converted.itemsize < torch.float32.itemsize:
        return tensor.to(converted.device, torch.float32)
    return converted
