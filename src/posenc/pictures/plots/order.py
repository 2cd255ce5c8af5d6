"""Pictures of what order does to the output: sensitivity per encoding, and the terms of the Taylor split."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from posenc.encoding import PositionalEncoding
from posenc.pictures import measures
from posenc.pictures.plots.picture import Bars, Curves, Group, Line
from posenc.support.checked import checked

KINDS = (
    ("bidirectional, 1 layer", False, 1),
    ("bidirectional, 2 layers", False, 2),
    ("causal, 1 layer", True, 1),
    ("causal, 2 layers", True, 2),
)


@checked
def order(encodings: Mapping[str, PositionalEncoding], *, d_model: int = 32, n_heads: int = 4, length: int = 6) -> Bars:
    """max|A(PX + p) − P·A(X + p)| for each encoding; two layers need an encoding for each layer."""

    def measure(encoding: PositionalEncoding, causal: bool, layers: int) -> float | None:
        if not causal and "causal_only" in encoding.traits:
            return None
        return measures.order_sensitivity(
            encoding, d_model=d_model, n_heads=n_heads, length=length, causal=causal, layers=layers
        )

    return Bars(
        "Order sensitivity: the words move, the positions stay",
        (
            "How far the output differs from a re-ordering alone when the words change positions.",
            "10⁻¹⁵ is rounding: blind to order. A causal mask alone already breaks the symmetry.",
        ),
        tuple(encodings),
        tuple(
            Group(label, tuple(measure(encoding, causal, layers) for encoding in encodings.values()))
            for label, causal, layers in KINDS
        ),
        "max |A(PX + p) − P·A(X + p)|",
        1e-17,
        absent="for causal attention only",
    )


@checked
def taylor(*, eps: float = 0.1, seed: int = 0, base: float = 10000.0) -> Bars:
    """The terms of the second-order expansion of one attention output in two positions."""
    terms = measures.taylor_split(eps=eps, seed=seed, base=base)
    names = ("gradient at m", "gradient at n", "½ curvature at m", "½ curvature at n", "mixed, m with n", "remainder")
    return Bars(
        f"Taylor split of one attention output, ε = {eps:g}",
        (
            "Only the mixed term sees both positions at once; the others see one position each.",
            f"It holds {terms.relative_share:.2%} of the position signal of this output, "
            f"{measures.relative_share(eps=eps, seed=seed, base=base):.2%} over all outputs of the layer.",
        ),
        names,
        (Group("size", terms[1:]),),
        "size of the term",
        10.0 ** _decade(min(map(abs, terms[1:]))),
        signed=True,
    )


@checked
def remainder(*, seed: int = 0, base: float = 10000.0) -> Curves:
    """The remainder of the expansion against the size of the positions: third order with the factors ½, second without."""
    eps = torch.logspace(-4, 0, 17, dtype=torch.float64)
    splits = [measures.taylor_split(eps=float(size), seed=seed, base=base) for size in eps]
    kept = torch.tensor([abs(split.remainder) for split in splits], dtype=torch.float64)
    forgotten = torch.tensor([abs(split.remainder_without_half) for split in splits], dtype=torch.float64)
    return Curves(
        "Taylor split: what is left over",
        (
            "Halving the positions divides the remainder by 8; without the factors ½ only by 4.",
            f"At ε = 0.001: {abs(measures.taylor_split(eps=1e-3, seed=seed, base=base).remainder):.1e} with the factors, "
            f"{abs(measures.taylor_split(eps=1e-3, seed=seed, base=base).remainder_without_half):.1e} without.",
        ),
        (Line("with ½: third order", eps, kept), Line("without ½: second order", eps, forgotten)),
        "size ε of the positions",
        "remainder",
        log_x=True,
        log_y=True,
    )


def _decade(value: float) -> int:
    return int(torch.tensor(value).log10().floor()) - 1
