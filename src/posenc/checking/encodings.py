"""A posenc encoding as an implementation to check: its one seam as a callable, or the attention of what has more."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from posenc.attention import attend
from posenc.attention.own_finish import own_finish
from posenc.checking import subject
from posenc.checking.laws.fitting import sizes_said
from posenc.encoding import SEAMS, DistanceBias, PositionalEncoding
from posenc.positions import Positions


class _Of:
    """Holds the encoding as `module`, the name that the laws about modules read."""

    module: PositionalEncoding

    def __init__(self, encoding: PositionalEncoding) -> None:
        self.module = encoding


class _Rotate(_Of):
    def __call__(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.module.rotate(x, Positions.at(positions.long()), "query")

    def key(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.module.rotate(x, Positions.at(positions.long()), "key")


class _Embed(_Of):
    def __call__(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.module.embed(x, Positions.at(positions.long()))


class _Bias(_Of):
    def __call__(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        delta = (q_positions[:, :, None] - k_positions[:, None]).long()
        assert isinstance(self.module, DistanceBias)
        flat: Tensor = self.module.at_distance(delta.flatten())
        bias: Tensor = flat.unflatten(1, delta.shape).transpose(0, 1)
        return bias


class _Attention(_Of):
    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        q_positions: Tensor,
        k_positions: Tensor,
        q_documents: Tensor | None = None,
        k_documents: Tensor | None = None,
    ) -> Tensor:
        at_q, at_k = (
            Positions(at.long(), at.long(), torch.zeros_like(at).long() if documents is None else documents)
            for at, documents in ((q_positions, q_documents), (k_positions, k_documents))
        )
        return attend(q, k, v, self.module, at_q, at_k)


def as_subject(
    encoding: PositionalEncoding, n_heads: int, width: int | None
) -> tuple[subject.Seam, Callable[..., Any], dict[str, int], frozenset[str]]:
    """The seam, the callable, the sizes that the encoding says, and the traits that it lacks.

    Raises TypeError for what is no encoding, ValueError for what acts on embeddings and elsewhere too.
    """
    if not isinstance(encoding, PositionalEncoding):
        raise TypeError(f"encoding: expected a posenc encoding; give a callable by its seam, rotate=f, got {encoding!r}")
    if "embed" in encoding.seams and len(encoding.seams) > 1:
        acts = ", ".join(seam for seam in SEAMS if seam in encoding.seams)
        raise ValueError(
            f"encoding: expected one that acts on embeddings alone or not on them, got {type(encoding).__name__}, which "
            f"has {acts}; check its parts, or use posenc.laws.report(encoding)"
        )
    lacking = {"shift_invariant", "norm_preserving"} - set(encoding.traits)
    sizes = {name: next(iter(of_parts)) for name, of_parts in sizes_said(encoding).items() if len(of_parts) == 1}
    d_head, n_heads = sizes.get("d_head", width), sizes.get("n_heads", n_heads)
    turns_values = "rotate" in encoding.seams and _turns_values(encoding, n_heads, (d_head,) if d_head else subject.WIDTHS)
    if turns_values or own_finish(encoding, n_heads, d_head or 16) not in (None, "context"):
        lacking |= {"averages_values"}
    of_token, of_head = sizes.pop("d_model", None), sizes.pop("d_head", None)
    if known := of_head or (of_token if "embed" in encoding.seams else None):
        sizes["width"] = known
    if encoding.seams == {"embed"}:
        return "embed", _Embed(encoding), sizes, frozenset(lacking)
    if encoding.seams == {"rotate"} and not turns_values:
        return "rotate", _Rotate(encoding), sizes, frozenset(lacking)
    if encoding.seams == {"bias"} and type(encoding).bias is DistanceBias.bias:
        return "bias", _Bias(encoding), sizes, frozenset(lacking)
    return "attention", _Attention(encoding), sizes, frozenset(lacking)


def _turns_values(encoding: PositionalEncoding, n_heads: int, widths: Iterable[int]) -> bool:
    """Whether `rotate` changes values or outputs, at position 1 and the first of the widths that it takes."""
    for width in widths:
        x, at = torch.ones(1, n_heads, 1, width), Positions.arange(1, 1, 1)
        with contextlib.suppress(Exception):
            return any(not torch.equal(encoding.rotate(x, at, side), x) for side in ("value", "output"))
    return False
