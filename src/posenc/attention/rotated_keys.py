"""Keys that are cached rotated: in another layout, at other positions, or with other frequencies.

    R(p + by) k = R(by) R(p) k             rotations of the same pairs add up, so a cached key moves without its original
    R'(p) k = R'(p) R(-p) · R(p) k         and one can be taken back, so it gets another model's frequencies

Legend: b batch, g key heads, t tokens, d d_head.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encoding import PositionalEncoding
from posenc.encodings.bases.learned_rope import MixedRoPE
from posenc.encodings.cayley_string import CayleySTRING
from posenc.encodings.of_families.prefix_rope import PrefixRoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.xpos import XPos
from posenc.frequencies import layouts
from posenc.frequencies.layouts import Layout
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.identity import label
from posenc.support.tensors import check_coords, readable, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num


@checked
def convert_keys(
    keys: Float[Tensor, "*s d"], source: Layout, target: Layout, *, rotary_dim: int | None = None, trailing: bool = False
) -> Float[Tensor, "*s d"]:
    """Cached keys (or queries) of layout `source` in layout `target`: channels move, no bit of them changes.

    rotary_dim, trailing   the first, or the last, rotary_dim channels of a head turn; all if left out
    Queries must be converted too, or come from converted weights. Raises ValueError as `layouts.head_permutation` does.
    """
    if rotary_dim is None and (keys.shape[-1] < 2 or keys.shape[-1] % 2):
        raise ValueError(f"keys: expected an even number of channels, or a rotary_dim, got {list(keys.shape)}")
    index = layouts.head_permutation(keys.shape[-1], source, target, rotary_dim=rotary_dim, trailing=trailing)
    return keys[..., index.to(keys.device)]


@checked
def rerotate(
    keys: Float[Tensor, "b g t d"], *, by: float | Num[Tensor, "b t *axes"], encoding: PositionalEncoding
) -> Float[Tensor, "b g t d"]:
    """Keys rotated at p become keys rotated at p + by: to move a cached passage, to evict tokens, to start again at 0.

    by         positions to move by: one number for all tokens, or a tensor [b, t] (b may be 1), or [b, t, axes]; negative
               moves back, reals are welcome
    encoding   the RoPE, of given or learned frequencies, or xPos that rotated them. One whose frequencies depend on length
               must be the one of that length; `rescale_keys` gives keys other frequencies

    Angles as the encoding has them, fp64; rotation in fp32 (fp64 for fp64), one rounding at the end. A magnitude on cos and
    sin (YaRN, LongRoPE) is in the keys already and is not applied again. Values of an encoding that turns them (`sides`)
    move as keys do, others do not.

    StreamingLLM keeps the first tokens and the last ones, and counts positions within the cache (Xiao et al. 2023,
    "Efficient Streaming Language Models with Attention Sinks", section 3.2). To evict tokens 4 … 103:

        k = torch.cat([k[:, :, :4], rerotate(k[:, :, 104:], by=-100, encoding=rope)], dim=2)
        v = torch.cat([v[:, :, :4], v[:, :, 104:]], dim=2)

    Raises TypeError for an encoding that does not rotate by position alone, ValueError for shapes that do not fit.
    """
    if not isinstance(encoding, (RoPE, XPos, MixedRoPE)):
        raise TypeError(
            f"encoding: expected the RoPE or xPos that rotated the keys, got {type(encoding).__name__}: keys of other "
            "encodings do not depend on position by a rotation of pairs, and can only be computed again"
        )
    if keys.ndim != 4 or not keys.is_floating_point():
        raise ValueError(f"keys: expected real numbers [b, g, t, d], got {keys.dtype} {list(keys.shape)}")
    if keys.shape[3] != encoding.d_head:
        raise ValueError(f"keys: expected {encoding.d_head} channels as the encoding has, got {list(keys.shape)}")
    _check_adds_up("encoding", encoding)
    at = Positions.at(_per_token(by, keys, encoding.axes))
    if not isinstance(encoding, RoPE):  # xPos: its decay ζ^-p adds up like its angle
        return encoding.rotate(keys.to(working_dtype(keys.dtype)), at, "key").to(keys.dtype)
    if not encoding.sides & {"key", "value"}:
        raise ValueError(f"encoding: leaves keys as they are (sides={sorted(encoding.sides)}); there is nothing to move")
    scale, still = encoding.frequencies.cos_sin_scale, encoding.d_head - encoding.rotary_dim if encoding.trailing else 0
    turning = slice(still, still + encoding.rotary_dim)
    x = keys.to(torch.float64 if scale != 1 else working_dtype(keys.dtype))
    if encoding.returns != encoding.layout:
        x = convert_keys(x, encoding.returns, encoding.layout, rotary_dim=encoding.rotary_dim, trailing=encoding.trailing)
    turn = functools.partial(RoPE.rotate, encoding) if isinstance(encoding, CayleySTRING) else encoding.rotate
    moved = turn(x, at, "key" if "key" in encoding.sides else "value")  # cached keys are in Cayley-STRING's basis already
    if scale != 1:
        moved = torch.cat([moved[..., :still], moved[..., turning] / scale, moved[..., turning.stop :]], dim=-1)
    return moved.to(keys.dtype)


@checked
def rescale_keys(
    keys: Float[Tensor, "b g t d"], at: Positions, old: PositionalEncoding, new: PositionalEncoding
) -> Float[Tensor, "b g t d"]:
    """Keys that `old` rotated become the keys that `new` would have rotated: another YaRN factor, or another scaling, while
    a conversation goes on.

        R_new(p) k = (s_new / s_old) · R_new(p) R_old(-p) · (R_old(p) k),     s the magnitude of cos and sin

    at         the positions of the keys, one row for each row of the batch, or one for all
    old, new   RoPEs of the same channels, pairs and sides; where frequencies depend on length, each `at_length` of its own

    Exact but for rounding: computed in fp64, rounded once. A cache in bf16 was rounded once before. Values do not change,
    and the hidden states of the tokens, which the old frequencies shaped, stay what they were.

    Raises TypeError for what is no RoPE, ValueError where the two turn other channels, and for shapes that do not fit.
    """
    for name, encoding in (("old", old), ("new", new)):
        if not isinstance(encoding, RoPE):
            raise TypeError(f"{name}: expected a RoPE, whose rotation can be taken back, got {type(encoding).__name__}")
        _check_adds_up(name, encoding)
    assert isinstance(old, RoPE)
    assert isinstance(new, RoPE)
    for name in ("d_head", "rotary_dim", "trailing", "reverse", "sides", "layout", "returns"):
        if (got := getattr(new, name)) != (expected := getattr(old, name)):
            raise ValueError(f"new: expected {name}={expected} as old has, got {got}")
    check_coords(old, at)
    plain = rerotate(keys.double(), by=-at.coords, encoding=old)
    if old.returns != old.layout:
        plain = convert_keys(plain, old.returns, old.layout, rotary_dim=old.rotary_dim, trailing=old.trailing)
    turned = new.rotate(plain, at, "key")
    still = old.d_head - old.rotary_dim if old.trailing else 0
    scale = torch.ones(old.d_head, dtype=torch.float64, device=keys.device)
    scale[still : still + old.rotary_dim] /= old.frequencies.cos_sin_scale
    return (turned * scale).to(keys.dtype)


def _check_adds_up(name: str, encoding: PositionalEncoding) -> None:
    if isinstance(encoding, PrefixRoPE):
        raise TypeError(
            f"{name}: {label(encoding)} turns prefix tokens by learned angles, so that a move by (-1, …) is no rotation of "
            "patches, and prefix tokens do not move; give patches alone, and a RoPE of its frequencies"
        )


def _per_token(by: float | Tensor, keys: Tensor, axes: int) -> Tensor:
    batch, length = keys.shape[0], keys.shape[2]
    shape = (length,) if axes == 1 else (length, axes)
    if not isinstance(by, Tensor):
        checks.finite(by=by)
        if abs(by) >= 2**63:
            raise ValueError(f"by: expected less than 2**63 positions, got {by}")
    elif readable(by) and not bool(torch.isfinite(by).all()):
        raise ValueError("by: expected finite numbers, got NaN or infinity")
    if not isinstance(by, Tensor) or by.ndim == 0:
        exact = torch.float64 if isinstance(by, float) else None  # a Python float would become fp32
        return torch.as_tensor(by, dtype=exact, device=keys.device).expand(1, *shape)
    if by.shape[1:] != shape or by.shape[0] not in (1, batch):
        raise ValueError(f"by: expected a number or a tensor [{batch}, {', '.join(map(str, shape))}], got {list(by.shape)}")
    return by.to(keys.device)
