"""Fast paths for eager code: calling a CPU kernel directly, and keeping constants on their device.

For small tensors, PyTorch takes longer to find a kernel than the kernel takes to run: the dispatcher and its calls into
Python cost 4 to 6 µs, and ten times that with gradients and cold caches. Compiled graphs still contain the operators.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor
from torch.autograd import forward_ad


def plain_on_cpu(*tensors: Tensor) -> bool:
    """Whether an operator would reach its CPU kernel with these very tensors: eager, no mode, no functional transform."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() or _in_transform():
        return False
    for x in tensors:  # a generator costs as much again
        if (type(x) is not Tensor and type(x) is not torch.nn.Parameter) or not x.is_cpu or x.is_neg():
            return False
    return True


def transformed() -> bool:
    """Whether a transform of torch.func or forward-mode differentiation is on. Operators are then plain torch, which has
    every rule that these need."""
    if torch.compiler.is_compiling():  # the compiler cannot read the stack of torch.func: it takes it for one that is on
        return forward_ad._current_level >= 0
    return _in_transform()


def _in_transform() -> bool:
    """`transformed` where nothing compiles."""
    return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def exporting() -> bool:
    """Whether torch.export or torch.onnx.export traces the call. Every operator is then plain torch, so that the graph runs
    where posenc is not installed.

    torch.compiler.is_exporting() is not asked: inside torch.compile, torch 2.11 answers True.
    """
    flag: bool = torch.compiler._is_exporting_flag
    return flag


def wants_gradient(*tensors: Tensor) -> bool:
    """Whether what is computed from these tensors has a gradient to record."""
    if not torch.is_grad_enabled():
        return False
    for x in tensors:  # noqa: SIM110
        if x.requires_grad:
            return True
    return False


def constant(numbers: tuple[float, ...] | tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Fixed numbers on a device, kept for the next call: no forward but the first makes them, or copies them from the host.

    To be read only.
    """
    if device.type == "meta" or torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() or transformed():
        return torch.tensor(numbers, dtype=dtype, device=device)
    return _kept(numbers, dtype, device)


@functools.lru_cache(256)
def _kept(numbers: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return torch.tensor(numbers, dtype=dtype, device=device)
