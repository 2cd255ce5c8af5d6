"""Attention with any encoding.

Legend: b batch, h query heads, g key heads (h is a multiple of g), n heads of the output, i query, j key, d, dv channels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from torch import Tensor

from posenc.attention.call import Call
from posenc.attention.flex_functions import mask_mod as mask_mod
from posenc.attention.flex_functions import score_mod as score_mod
from posenc.attention.options import PLAIN, AttendOptions, Options, allowed
from posenc.attention.plan import output_of
from posenc.combined import PerLayer, Stack, check_heads, check_one_layer
from posenc.encoding import PositionalEncoding, Side, usual_scale
from posenc.positions import Positions
from posenc.structure import EVERY_SIDE, Blocks, Regions, Rotation, Structure, addend_of, declared_rotation, rotated
from posenc.support.checked import checked_on_failure
from posenc.support.checks import shown
from posenc.support.identity import label
from posenc.support.tensors import check_added, full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float


NO_SIDE: frozenset[Side] = frozenset()
NONE_GIVEN = (None, None, None, None, None, None, 0.0, False)  # the options in the order of Options


@overload
def attend(
    q: Float[Tensor, "b h i d"],
    k: Float[Tensor, "b g j d"],
    v: Float[Tensor, "b g j dv"],
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions | None = ...,
    *,
    causal: bool = ...,
    impl: str = ...,
    return_lse: Literal[False] = ...,
    **options: Unpack[AttendOptions],
) -> Tensor: ...


@overload
def attend(
    q: Float[Tensor, "b h i d"],
    k: Float[Tensor, "b g j d"],
    v: Float[Tensor, "b g j dv"],
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions | None = ...,
    *,
    causal: bool = ...,
    impl: str = ...,
    return_lse: Literal[True],
    **options: Unpack[AttendOptions],
) -> tuple[Tensor, Tensor]: ...


@checked_on_failure
def attend(
    q: Float[Tensor, "b h i d"],
    k: Float[Tensor, "b g j d"],
    v: Float[Tensor, "b g j dv"],
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions | None = None,
    *,
    causal: bool = True,
    mask: Bool[Tensor, "#b #n #i #j"] | Float[Tensor, "#b #n #i #j"] | None = None,
    scale: float | None = None,
    window: tuple[int | None, int | None] | None = None,
    chunk: int | None = None,
    softcap: float | None = None,
    sinks: Float[Tensor, "n"] | None = None,
    dropout: float = 0.0,
    return_lse: bool = False,
    impl: str = "auto",
) -> Float[Tensor, "b n i dv"] | tuple[Float[Tensor, "b n i dv"], Float[Tensor, "b n i"]]:
    """Attention of q over k and v with the encoding's rotation, bias and finish seams.

        q̂, k̂ = rotate(q), rotate(k)
        logits = cap(q̂·k̂·scale) + bias
        out    = rotate(finish(logits)),   finish usually softmax(logits + mask)·v

    q, k, v     float64, float32, bfloat16 or float16; key heads may be fewer than query heads
    at_q        positions of the queries; at_k of the keys, the same where it is left out
    causal      a query sees keys up to its own `order`; documents and padding are respected either way
    mask        bool (True: may attend) or floating (added to the logits), broadcasts to [b, n, i, j]; n = h, 2h for RoPE++
    scale       what q·k is multiplied with; None: the encoding's `softmax_scale`, usually 1/√d. The bias is not scaled
    window      (left, right): a query sees keys at most `left` positions before and `right` positions after it in `order`;
                None is no limit. Keys outside are not read where positions count up by one
    chunk       a query sees keys of its own chunk of so many positions in `order`
    softcap     cap(x) = softcap·tanh(x / softcap), applied to q·k·scale alone, as in Gemma 2
    sinks       one more logit per head of the output in the softmax, whose share goes to no value, as in gpt-oss
    dropout     the probability with which an attention weight is dropped; the others grow by 1 / (1 - dropout)
    return_lse  also return the log of the sum of exp(logits) over the visible keys, [b, n, i], without the sink
    impl        "auto", or a backend by name: one of posenc.backends.BACKENDS; docs/backends.md says which serves what

    `embed` is not called: absolute encodings are added to the embeddings, before the projections.
    Raises ValueError for shapes that do not fit, for bidirectional use of a causal-only encoding, for values of options
    out of range, for a scale or softcap with an encoding that replaces q·k (PaTH, Self-Extend), for sinks and return_lse
    with one that replaces the softmax (stick-breaking), and for a backend that cannot express the encoding or an option;
    TypeError for mixed or integer dtypes.
    """
    at_k = at_q if at_k is None else at_k
    _check(q, k, v, encoding, at_q, at_k, causal)
    with full_precision(q):
        turned, structure = NO_SIDE, encoding.structure()
        if "rotate" in encoding.seams:
            rotation = structure.rotation if type(structure) is Regions else structure
            turned = rotation.sides if type(rotation) is Rotation else EVERY_SIDE
            if type(rotation) is Rotation and rotation.both is not None:
                q, k = rotation.both(q, k, at_q, at_k)
            else:
                q, k = encoding.rotate(q, at_q, "query"), encoding.rotate(k, at_k, "key")
            if "value" in turned:
                v = encoding.rotate(v, at_k, "value")
        options = _options(encoding, structure, q, k, mask, scale, window, chunk, softcap, sinks, dropout, return_lse)
        return _output(q, k, v, encoding, structure, at_q, at_k, causal, options, impl, "output" in turned)  # type: ignore[no-any-return]


@checked_on_failure
def rotate(
    q: Float[Tensor, "b h i d"],
    k: Float[Tensor, "b g j d"],
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions | None = None,
) -> tuple[Float[Tensor, "b h i d"], Float[Tensor, "b g j d"]]:
    """Queries and keys turned, for an attention of your own: what `attend` does first.

        q̂, k̂ = encoding.rotate(q, at_q, "query"), encoding.rotate(k, at_k, "key")

    at_q        positions of the queries; at_k of the keys, the same where it is left out

    RoPE and its kin turn both in one call of the kernel, with cos and sin computed within where tokens are few: for one
    decoded token this takes about 0.6 of the time of two calls. q and k come back as they are if nothing turns.
    Raises ValueError for shapes that do not fit, TypeError for integers and for what is no encoding.
    """
    if not isinstance(encoding, PositionalEncoding):
        raise TypeError(f"encoding: expected a PositionalEncoding such as posenc.create('rope', …), got {encoding!r}")
    if q.dtype != k.dtype:
        raise TypeError(f"q, k: expected one floating dtype, got {q.dtype} and {k.dtype}")
    check_one_layer(encoding)
    return rotated(encoding, q, k, at_q, at_q if at_k is None else at_k)


@checked_on_failure
def attend_rotated(
    q: Float[Tensor, "b h i d"],
    k: Float[Tensor, "b g j d"],
    v: Float[Tensor, "b g j dv"],
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions,
    *,
    causal: bool = True,
    return_lse: bool = False,
    impl: str = "auto",
    **options: Unpack[AttendOptions],
) -> Any:
    """`attend` for caches that hold rotated keys and values: all three inputs have been through `rotate` already."""
    _check(q, k, v, encoding, at_q, at_k, causal)
    structure = encoding.structure()
    given = _options(encoding, structure, q, k, return_lse=return_lse, **options)
    rotation = declared_rotation(structure)
    turning = "rotate" in encoding.seams and (rotation is None or "output" in rotation.sides)
    with full_precision(q):
        return _output(q, k, v, encoding, structure, at_q, at_k, causal, given, impl, turning)


def _output(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    structure: Structure | None,
    at_q: Positions,
    at_k: Positions,
    causal: bool,
    options: Options,
    impl: str,
    turning: bool,
) -> Any:
    same, batch = at_q is at_k, q.shape[0]
    if at_q.coords.shape[0] != batch:
        at_q = at_q.expand(batch)
    if same or at_k.coords.shape[0] != batch:
        at_k = at_q if same else at_k.expand(batch)
    scale = encoding.softmax_scale(q.shape[3]) if options.scale is None else options.scale
    scale = usual_scale(q.shape[3]) if scale is None else scale
    output = output_of(Call(q, k, v, encoding, at_q, at_k, causal, options, scale, structure), impl)
    added = addend_of(encoding) if "finish" in encoding.seams else None
    if added is None and not turning:
        return output
    out, lse = output if options.return_lse else (output, None)
    if added is not None:
        addend = added(v, at_q, at_k, allowed(at_q, at_k, causal, options))
        check_added(encoding, addend, v)
        out = (out.to(addend.dtype) + addend).to(out.dtype)
    if turning:
        out = encoding.rotate(out, at_q, "output")
    return (out, lse) if options.return_lse else out


def _options(
    encoding: PositionalEncoding, structure: Structure | None, q: Tensor, k: Tensor, *arguments: Any, **named: Any
) -> Options:
    """The checked options of a call, in their order or by name; the plain ones cost next to nothing."""
    if arguments == NONE_GIVEN and type(arguments[-1]) is bool and type(arguments[-2]) is not bool:
        return PLAIN
    if not arguments and len(named) == 1 and named["return_lse"] is False:
        return PLAIN
    options = Options(*arguments, **named)
    options.check(q, k)
    if (options.scale is not None or options.softcap is not None) and isinstance(structure, (Regions, Blocks)):
        raise ValueError(
            f"scale, softcap: {label(encoding)} puts another product in the place of q·k, at the scale of its "
            "softmax_scale; leave both out"
        )
    return options


def _check(
    q: Tensor, k: Tensor, v: Tensor, encoding: PositionalEncoding, at_q: Positions, at_k: Positions, causal: bool
) -> None:
    if not isinstance(encoding, PositionalEncoding):
        raise TypeError(f"encoding: expected a PositionalEncoding such as posenc.create('rope', …), got {encoding!r}")
    if causal is not True and causal is not False:
        raise TypeError(f"causal: expected True or False, got {shown(causal)}")
    if not isinstance(q, Tensor) or not isinstance(k, Tensor) or not isinstance(v, Tensor):
        name, other = next((name, x) for name, x in (("q", q), ("k", k), ("v", v)) if not isinstance(x, Tensor))
        raise TypeError(f"{name}: expected a tensor, got {type(other).__name__}")
    of_q, of_k, of_v, dtype = q.shape, k.shape, v.shape, q.dtype
    if not len(of_q) == len(of_k) == len(of_v) == 4:
        name, shape = next((name, x) for name, x in (("q", of_q), ("k", of_k), ("v", of_v)) if len(x) != 4)
        raise ValueError(f"{name}: expected [batch, heads, tokens, channels], got {list(shape)}")
    if k.dtype != dtype or v.dtype != dtype or not q.is_floating_point():
        name, other = ("k", k) if k.dtype != dtype else ("v", v) if v.dtype != dtype else ("q", q)
        raise TypeError(f"{name}: expected one floating dtype for q, k and v, got {other.dtype} beside {dtype}")
    if of_k[:3] != of_v[:3] or of_k[0] != of_q[0] or of_k[3] != of_q[3]:
        raise ValueError(
            f"q, k, v: expected [b, h, i, d], [b, g, j, d], [b, g, j, dv], got {list(of_q)}, {list(of_k)}, {list(of_v)}"
        )
    if not of_q[3]:
        raise ValueError(f"q, k: expected at least one channel, got {list(of_q)}")
    if not of_k[1] or of_q[1] % of_k[1]:
        raise ValueError(f"q, k: {of_q[1]} query heads cannot be shared evenly by {of_k[1]} key heads")
    if encoding.configuration.get("n_heads", of_q[1]) != of_q[1] or isinstance(encoding, (Stack, PerLayer)):
        check_heads(encoding, of_q[1])
    _check_positions("at_q", at_q, q, of_q)
    if at_k is not at_q:
        _check_positions("at_k", at_k, k, of_k)
    elif of_k[2] != of_q[2]:
        raise ValueError(f"at_k: left out, so at_q is taken, of {of_q[2]} tokens; give positions of all {of_k[2]} keys")
    if not causal and "causal_only" in encoding.traits:
        raise ValueError(f"causal=False: {label(encoding)} is defined for causal attention only")


def _check_positions(name: str, at: Positions, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if not isinstance(at, Positions):
        raise TypeError(
            f"{name}: expected Positions, got {type(at).__name__}; Positions.arange(batch, length) makes plain ones"
        )
    coords = at.coords
    if coords.is_meta is not tensor.is_meta:
        raise ValueError(f"{name}: expected positions on {tensor.device} as the tokens are, got {coords.device}")
    batch, length = coords.shape[:2]
    if length != shape[2] or (batch != 1 and batch != shape[0]):
        swapped = "; expected [batch, heads, tokens, channels]" if length == shape[1] else ""
        raise ValueError(f"{name}: has positions [{batch}, {length}] for tokens [{shape[0]}, {shape[2]}]{swapped}")
