"""Attention with any encoding, on one page.

Legend: b batch, h query heads, g key heads (h is a multiple of g), i query, j key, d channel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from posenc.backends import choose
from posenc.encoding import PositionalEncoding, full_precision
from posenc.positions import Positions

if TYPE_CHECKING:
    from jaxtyping import Float


def attend(
    q: Float[Tensor, "b h i d"],
    k: Float[Tensor, "b g j d"],
    v: Float[Tensor, "b g j dv"],
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions | None = None,
    *,
    causal: bool = True,
    impl: str = "auto",
) -> Float[Tensor, "b h i dv"]:
    """Attention of q over k and v with the encoding's rotation, bias, context and value seams.

        q̂, k̂ = rotate(q), rotate(k)
        out   = rotate(softmax(context(q̂·k̂·scale + bias))·v + value)

    q, k, v   float64, float32, bfloat16 or float16; key heads may be fewer than query heads
    at_q      positions of the queries; at_k of the keys, the same where it is left out
    causal    a query sees keys up to its own `order`; documents and padding are respected either way
    impl      "auto", or a backend by name: one of posenc.backends.BACKENDS; docs/backends.md says which serves what

    `embed` is not called: absolute encodings are added to the embeddings, before the projections.
    Raises ValueError for shapes that do not fit, for bidirectional use of a causal-only encoding, and for a backend
    that cannot express the encoding; TypeError for mixed or integer dtypes.
    """
    at_k = at_q if at_k is None else at_k
    _check(q, k, v, encoding, at_q, at_k, causal)
    with full_precision(q):
        q, k = encoding.rotate_both(q, k, at_q, at_k)
        v = encoding.rotate(v, at_k, "value")
    return attend_rotated(q, k, v, encoding, at_q, at_k, causal=causal, impl=impl)


def attend_rotated(
    q: Float[Tensor, "b h i d"],
    k: Float[Tensor, "b g j d"],
    v: Float[Tensor, "b g j dv"],
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions,
    *,
    causal: bool = True,
    impl: str = "auto",
) -> Float[Tensor, "b h i dv"]:
    """`attend` for caches that hold rotated keys and values: all three inputs have been through `rotate` already."""
    _check(q, k, v, encoding, at_q, at_k, causal)
    same = at_q is at_k
    at_q = at_q.expand(q.shape[0])
    at_k = at_q if same else at_k.expand(q.shape[0])
    with full_precision(q):
        out = choose(impl, q, encoding, at_q, at_k, causal).attend(q, k, v, encoding, at_q, at_k, causal)
        return encoding.rotate(out, at_q, "output")


def _check(
    q: Tensor, k: Tensor, v: Tensor, encoding: PositionalEncoding, at_q: Positions, at_k: Positions, causal: bool
) -> None:
    if not isinstance(encoding, PositionalEncoding):
        raise TypeError(f"encoding: expected a PositionalEncoding such as posenc.create('rope', …), got {encoding!r}")
    for name, tensor in {"q": q, "k": k, "v": v}.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(tensor).__name__}")
        if tensor.ndim != 4:
            raise ValueError(f"{name}: expected [batch, heads, tokens, channels], got {list(tensor.shape)}")
        if not tensor.is_floating_point() or tensor.dtype != q.dtype:
            raise TypeError(f"{name}: expected one floating dtype for q, k and v, got {tensor.dtype} beside {q.dtype}")
    if k.shape[:3] != v.shape[:3] or k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3]:
        raise ValueError(
            f"q, k, v: expected [b, h, i, d], [b, g, j, d], [b, g, j, dv], "
            f"got {list(q.shape)}, {list(k.shape)}, {list(v.shape)}"
        )
    if q.shape[1] % k.shape[1]:
        raise ValueError(f"q, k: {q.shape[1]} query heads cannot be shared evenly by {k.shape[1]} key heads")
    for name, at, tensor in (("at_q", at_q, q), ("at_k", at_k, k)):
        if not isinstance(at, Positions):
            raise TypeError(
                f"{name}: expected Positions, got {type(at).__name__}; Positions.arange(batch, length) makes plain ones"
            )
        if at.length != tensor.shape[2] or at.batch not in (1, q.shape[0]):
            raise ValueError(
                f"{name}: has positions [{at.batch}, {at.length}] for tokens [{q.shape[0]}, {tensor.shape[2]}]"
            )
    if not causal and "causal_only" in encoding.traits:
        raise ValueError(f"causal=False: {encoding.owner} is defined for causal attention only")
