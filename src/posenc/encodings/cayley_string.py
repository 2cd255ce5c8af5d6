"""Cayley-STRING: RoPE in a learned orthogonal basis.

    q̂ = R(p) P q,   k̂ = R(p') P k,   P = (I - S)(I + S)⁻¹,   S = F - Fᵀ learned

Schenck et al. 2025, "Learning the RoPEs: Better 2D and 3D Position Encodings with STRING", section 3: every exactly
shift-invariant rotation is of this form, with RoPE's R. Another STRING shifts large distances (An et al. 2024).
Legend: b batch, h heads, t tokens, d d_head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import Side
from posenc.encodings.rope import RoPE
from posenc.frequencies import Frequencies
from posenc.frequencies.layouts import Layout
from posenc.kernels.eager import exporting
from posenc.positions import Positions
from posenc.structure import Rotation
from posenc.support.checked import checked
from posenc.support.tensors import check_tokens, check_width, full_precision, into, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class CayleySTRING(RoPE):
    """RoPE of P·q and P·k, P orthogonal and learned: Cayley's transform of a skew matrix. At the start it is RoPE.

    d_head                     channels of a head
    base, layout, frequencies  those of RoPE; frequencies bring the axes of images along

    Parameter: free [d_head, d_head], F; zero at the start. Shared by all heads of a layer.
    Time O(d³) for P at every call and O(t·heads·d²) to change the basis.
    """

    @checked
    def __init__(
        self,
        d_head: int,
        *,
        base: float | None = None,
        layout: Layout = "interleaved",
        frequencies: Frequencies | None = None,
    ) -> None:
        super().__init__(d_head, base=base, layout=layout, frequencies=frequencies)
        self._configure(d_head=d_head, base=base, layout=layout, frequencies=frequencies)
        self.free = nn.Parameter(torch.zeros(d_head, d_head))

    def structure(self) -> Rotation:
        return super().structure()._replace(mixed=None, both=None)  # another basis first

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if side not in self.sides:
            return super().rotate(x, at, side, out)
        check_width(self, "d_head", x.shape[-1], self.d_head)
        check_tokens(self, x, at, axis=2)
        with full_precision(x):
            wide = x.to(working_dtype(x.dtype)).contiguous() @ self._basis().to(working_dtype(x.dtype)).T
        return into(super().rotate(wide, at, side).to(x.dtype), out)

    def _basis(self) -> Float[Tensor, "d d"]:
        """P, in fp64."""
        skew = self.free.double() - self.free.double().T
        eye = torch.eye(self.d_head, dtype=torch.float64, device=skew.device)
        if exporting():
            return (eye - skew) @ (eye - skew) @ _inverse(eye - skew @ skew, eye)  # (I + S)⁻¹ = (I - S)(I - S²)⁻¹
        basis: Tensor = torch.linalg.solve(eye + skew, eye - skew)  # both factors commute
        return basis


def _inverse(matrix: Float[Tensor, "d d"], eye: Float[Tensor, "d d"]) -> Float[Tensor, "d d"]:
    """The inverse of a symmetric matrix with eigenvalues of at least 1, by products alone: ONNX has no solver.

    Newton's iteration X ← X(2I - AX) squares the error I - AX, which begins at most at 1 - 1/‖A‖: 40 steps reach fp64 for
    ‖A‖ up to 10¹⁰.
    """
    inverse = eye / matrix.abs().sum(dim=-1).max()
    for _ in range(40):
        inverse = inverse @ (2 * eye - matrix @ inverse)
    return inverse
