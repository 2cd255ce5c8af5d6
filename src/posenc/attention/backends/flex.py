"""FlexAttention: one compiled kernel that evaluates the encoding's bias at every pair, so that no matrix is stored.

    score_mod    score + bias(b, h, i, j)
    mask_mod     same document, no padding, and a key not after the query: which blocks of keys a block of queries needs

A kernel cannot be asked twice: what it would compute wrongly is refused. Tried with torch 2.13 on the CPU; the code for
CUDA is the same but has not been run. There FlexAttention is differentiable, and compiles once for all lengths. On the CPU
it is neither: it compiles for seconds at every new shape, so "auto" never takes it there.

Legend: b batch, h query heads, g key heads, i query, j key, d channel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

from posenc.attention.call import Call
from posenc.attention.flex_functions import mask_mod
from posenc.attention.options import Options, capped
from posenc.encoding import BiasFn, PositionalEncoding
from posenc.kernels.eager import transformed
from posenc.positions import Positions
from posenc.structure import Structure, distance_terms, why_not_fused
from posenc.support.tensors import working_dtype

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

OPTIONS = frozenset({"scale", "window", "chunk", "softcap"})
BY_DOCUMENT = False
NARROWEST = 16  # channels of a head: Triton multiplies no smaller matrices


def suits(call: Call) -> bool:
    """Calls on CUDA with a bias. On the CPU it compiles for seconds at every new shape."""
    return call.q.device.type == "cuda" and "bias" in call.encoding.seams


def refuses(encoding: PositionalEncoding, structure: Structure | None) -> str | None:
    return why_not_fused(encoding)


def refuses_call(call: Call) -> str | None:
    """On the CPU also what torch 2.13 lacks there: gradients, float64, and graphs in which sizes are left open."""
    q, encoding, at_k = call.q, call.encoding, call.at_k
    if q.device.type not in ("cpu", "cuda"):
        return f"it runs on the CPU and on CUDA, not on {q.device.type}"
    if transformed():
        return "FlexAttention has no rules for torch.func and forward-mode differentiation"
    if 0 in q.shape or not at_k.length:
        return "it has no kernel for no rows, no queries or no keys"
    if q.dtype == torch.float64:
        return "FlexAttention does not compute in float64"
    if q.device.type == "cuda" and q.shape[-1] < NARROWEST:
        return f"on CUDA its heads have at least {NARROWEST} channels, got {q.shape[-1]}"
    if q.device.type == "cpu" and (why := _refuses_on_cpu(q, encoding)):
        return why
    if "bias" in encoding.seams and not _is_elementwise(call):
        return "at these positions its bias is more than arithmetic and look-ups of single pairs, which the kernel needs"
    return None


def attend(call: Call) -> Tensor:
    """Raises RuntimeError where the kernel cannot be compiled; the unfused fallback of FlexAttention is never taken."""
    q, k, v, encoding, at_q, at_k, causal, options = call[:8]
    groups = call.groups
    if q.device.type == "cpu" and _recorded(q, k, v):
        raise ValueError("impl='flex': has no gradient on the CPU, and k or v requires one; use impl='reference' or 'auto'")
    bias = None
    if "bias" in encoding.seams:
        dtype = working_dtype(q.dtype)
        wide_k = k.to(dtype).repeat_interleave(groups, dim=1)
        bias = encoding.bias(q.to(dtype), wide_k, *_as_runs(encoding, at_q, at_k))
    if groups & (groups - 1):  # the kernel for few queries shares keys between 2, 4, 8 … heads only
        k, v, groups = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1), 1
    out: Tensor = _kernel(q.device.type)(
        q,
        k,
        v,
        score_mod=_score_mod(bias, options.softcap),
        block_mask=_blocks(at_q, at_k, causal, options),
        scale=call.scale,
        enable_gqa=groups > 1,
    )
    return out


def _score_mod(bias: BiasFn | None, softcap: float | None) -> Callable[..., Tensor] | None:
    """cap(score) + bias; None where the score stays as it is."""
    if bias is None and softcap is None:
        return None

    def changed(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        score = capped(score, softcap)
        return score if bias is None else score + bias(b, h, i, j)

    return changed


def _as_runs(encoding: PositionalEncoding, at_q: Positions, at_k: Positions) -> tuple[Positions, Positions]:
    """Treats consecutive documents as parts of one run, if only differences matter: masked pairs across are never used."""
    if (
        at_q is at_k
        and at_q.consecutive_in == "document"
        and at_q.coords.ndim == 2
        and "shift_invariant" in encoding.traits
    ):
        at_q = at_k = Positions.arange(1, at_q.length, device=at_q.coords.device).expand(at_q.batch)
    return at_q, at_k


def _blocks(at_q: Positions, at_k: Positions, causal: bool, options: Options) -> BlockMask | None:
    """Blocks of keys that some query of a block may see; within them `mask_mod` decides. None where all see all."""
    from torch.nn.attention.flex_attention import create_block_mask

    if (
        at_q.consecutive_in == at_k.consecutive_in == "row"
        and not causal
        and options.window is None
        and options.chunk is None
    ):
        return None
    sees = mask_mod(at_q, at_k, causal=causal, window=options.window, chunk=options.chunk)
    return create_block_mask(sees, at_q.batch, None, at_q.length, at_k.length, device=str(at_q.document.device))


def _kernel(device: str) -> Callable[..., Any]:
    """flex_attention: as it is inside somebody's graph, compiled otherwise."""
    from torch.nn.attention.flex_attention import flex_attention

    if torch.compiler.is_compiling():
        return flex_attention
    return _compiled(device)


@functools.cache
def _compiled(device: str) -> Callable[..., Any]:
    """Compiled whole or not at all. On the CPU for one shape at a time: with open sizes torch 2.13 fails, or is wrong."""
    from torch._dynamo.exc import FailOnRecompileLimitHit
    from torch._inductor import cpp_builder, exc
    from torch.nn.attention.flex_attention import flex_attention

    if device == "cpu":
        try:
            cpp_builder.get_cpp_compiler()
        except exc.InvalidCxxCompiler as error:
            raise RuntimeError(
                "impl='flex': on the CPU it needs a C++ compiler such as g++, and none was found; "
                "install one, or use impl='auto'"
            ) from error
    compiled: Callable[..., Any] = torch.compile(flex_attention, fullgraph=True, dynamic=False if device == "cpu" else None)

    def run(*inputs: Tensor, **options: Any) -> Any:
        try:
            return compiled(*inputs, **options)
        except FailOnRecompileLimitHit as error:
            raise RuntimeError(
                "impl='flex': compiled for as many shapes as torch._dynamo.config.recompile_limit allows; "
                "raise it, or use impl='auto'"
            ) from error

    return run


def _refuses_on_cpu(q: Tensor, encoding: PositionalEncoding) -> str | None:
    if torch.compiler.is_compiling():
        return "on the CPU FlexAttention is right for fixed sizes only, and a graph may leave them open"
    if _recorded(q, *encoding.parameters()):
        return "FlexAttention has no gradient on the CPU; call it under torch.no_grad()"
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        return "on the CPU FlexAttention needs AVX2"
    return None


def _recorded(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _is_elementwise(call: Call) -> bool:
    """Whether the bias of one pair is made of single numbers only: tried with one query and one key.

    Inside a graph nothing can be tried; there only a bias that is a vector of distances is known to be such.
    """
    q, encoding = call.q, call.encoding
    at_q, at_k = _as_runs(encoding, call.at_q, call.at_k)
    if torch.compiler.is_compiling():
        known = distance_terms(encoding, call.structure) is not None
        return known and at_q.consecutive_in == at_k.consecutive_in == "row"
    with torch.no_grad():
        device = at_q.coords.device
        token = torch.zeros(1, q.shape[1], 1, q.shape[3], dtype=working_dtype(q.dtype), device=device)
        bias = encoding.bias(token, token, *(_first(at) for at in (at_q, at_k)))
        if bias is None:
            return True
        pair = [torch.zeros(1, 1, 1, 1, dtype=torch.int64, device=device)] * 4
        seen = SingleNumbers()
        with seen:
            bias(*pair)
    return seen.only


def _first(at: Positions) -> Positions:
    return replace(at, coords=at.coords[:1, :1], order=at.order[:1, :1], document=at.document[:1, :1], tables={})


class SingleNumbers(TorchDispatchMode):
    """Notices whether all that is computed inside keeps the shape [1, 1, 1, 1] of a pair; constants have no axes."""

    only = True

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        shapes = [leaf.shape for leaf in _pytree.tree_leaves(result) if isinstance(leaf, Tensor)]
        self.only = self.only and all(shape == (1, 1, 1, 1) or not shape for shape in shapes)
        return result
