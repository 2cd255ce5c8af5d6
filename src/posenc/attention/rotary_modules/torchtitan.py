"""torchtitan's rotary functions: tables made once for a model, queries and keys [b, t, h, d] turned together.

    freqs_cis    [s, n] complex, cos + i sin      pairs of neighbours      Llama, DeepSeek-V3
    rope_cache   [s, 2d], (cos, cos, sin, sin)    pairs of halves          Qwen3, gpt-oss

The functions take torchtitan's own tables too, whole, or as torchtitan 0.3 prepares them, [b or 1, t, 1, …].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch
from torch import Tensor

from posenc.attention.rotary_modules.tokens_first import both_turned, check_both, check_positions, check_table
from posenc.frequencies import Frequencies, llama3, rotary
from posenc.kernels.sin_cos import sin_cos
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked, checked_on_failure

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int


@runtime_checkable
class RoPEScalingArgs(Protocol):
    """torchtitan's record of the scaling of Llama 3.1."""

    scaling_factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int


@checked
def precompute_freqs_cis(
    dim: int, end: int, theta: float = 10000.0, rope_scaling_args: RoPEScalingArgs | None = None
) -> Tensor:
    """cos + i sin of p·theta^(-2i/dim) for p = 0 … end-1, complex64 [end, n], on torch's default device.

    rope_scaling_args   torchtitan's record of the scaling of Llama 3.1; none if left out, where newer releases of
                        torchtitan take their own. Raises ValueError for one that has not its four numbers

    Raises ValueError for an odd dim and for an end or a theta that is not positive.
    """
    frequencies = _frequencies(dim, end, "theta", theta)
    if (args := rope_scaling_args) is not None:
        of_turns = args.low_freq_factor, args.high_freq_factor
        frequencies = llama3(frequencies, args.scaling_factor, *of_turns, args.original_max_position_embeddings)
    return torch.complex(*_tables(frequencies, end))


@checked
def precompute_rope_cache(dim: int, max_seq_len: int, base: float = 1_000_000.0) -> Float[Tensor, "s width"]:
    """cos, cos, sin, sin of p·base^(-2i/dim) for p = 0 … max_seq_len-1, fp32 [max_seq_len, 2·dim], on the default device.

    Raises ValueError for an odd dim and for a max_seq_len or a base that is not positive.
    """
    checks.whole(1, max_seq_len=max_seq_len)
    cos, sin = _tables(_frequencies(dim, max_seq_len, "base", base), max_seq_len)
    return torch.cat([cos, cos, sin, sin], dim=-1)


@checked_on_failure
def apply_rotary_emb_complex(
    xq: Float[Tensor, "b t h d"],
    xk: Float[Tensor, "b t g d"],
    freqs_cis: Tensor,
    positions: Int[Tensor, "#b t"] | None = None,
) -> tuple[Float[Tensor, "b t h d"], Float[Tensor, "b t g d"]]:
    """Queries and keys with pairs of neighbours turned: apply_rotary_emb of torchtitan's Llama.

    freqs_cis   complex [s, n], of which row p belongs to position p; or prepared [b or 1, t, 1, n]
    positions   the rows that tokens take; 0, 1, 2, … if left out, and with prepared tables

    Gradients flow to xq and xk, and to freqs_cis. Raises ValueError for shapes that do not fit and for positions that
    freqs_cis has no row for (in eager code on the CPU); TypeError for a table that is not complex.
    """
    if not freqs_cis.is_complex():
        raise TypeError(f"freqs_cis: expected complex numbers, got {freqs_cis.dtype}; a cast drops their imaginary part")
    check_table("freqs_cis", freqs_cis.real, xq)
    table = _of_tokens("freqs_cis", freqs_cis, xq, xk, xq.shape[-1] // 2, positions)
    cos, sin = table.real.contiguous(), table.imag.contiguous()  # the kernels read entries that lie side by side faster
    return both_turned(xq, xk, cos, sin, "interleaved")


@checked_on_failure
def apply_rotary_emb_cos_sin(
    xq: Float[Tensor, "b t h d"],
    xk: Float[Tensor, "b t g d"],
    rope_cache: Float[Tensor, "*s width"],
    positions: Int[Tensor, "#b t"] | None = None,
) -> tuple[Float[Tensor, "b t h d"], Float[Tensor, "b t g d"]]:
    """Queries and keys with pairs of halves turned: apply_rotary_emb of torchtitan's Qwen3.

    rope_cache   [s, 2d], of which row p belongs to position p; or prepared [b or 1, t, 1, 2d]
    positions    the rows that tokens take; 0, 1, 2, … if left out, and with prepared tables

    Gradients flow to xq and xk; of the two copies of cos and sin in rope_cache the first is read and has a gradient. Raises
    ValueError for shapes that do not fit and for positions that rope_cache has no row for (in eager code on the CPU).
    """
    check_table("rope_cache", rope_cache, xq)
    d = xq.shape[-1]
    table = _of_tokens("rope_cache", rope_cache, xq, xk, 2 * d, positions)
    return both_turned(xq, xk, table[..., : d // 2], table[..., d : d + d // 2], "half")


def _frequencies(dim: int, end: int, name: str, base: float) -> Frequencies:
    checks.even(dim=dim)
    checks.whole(1, end=end)
    checks.positive(**{name: base})
    return rotary(dim, base)


def _tables(frequencies: Frequencies, end: int) -> tuple[Tensor, Tensor]:
    """cos and sin [end, n] in fp32."""
    at = Positions.arange(1, end, device=torch.get_default_device())
    sin, cos = sin_cos(at, frequencies, torch.float32)
    return cos[0], sin[0]


def _of_tokens(name: str, table: Tensor, xq: Tensor, xk: Tensor, width: int, positions: Tensor | None) -> Tensor:
    """The rows of the table that tokens take, [b or 1, t, width]."""
    check_both(xq=xq, xk=xk)
    b, t = xq.shape[:2]
    prepared = table.ndim == 4 and positions is None and (table.shape[0] == 1 or table.shape[0] == b)
    if prepared and table.shape[1:] == (t, 1, width):
        return table[:, :, 0]
    if table.ndim != 2 or table.shape[1] != width or (positions is None and table.shape[0] < t):
        raise ValueError(
            f"{name}: expected at least {t} rows of {width} for xq {list(xq.shape)}, or without positions "
            f"[{b} or 1, {t}, 1, {width}], got {list(table.shape)}"
        )
    if positions is None:
        return table[None, :t]
    check_positions("positions", positions, xq, table.shape[0])
    return table[positions.long()]
