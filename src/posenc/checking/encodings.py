"""A posenc encoding as an implementation to check: the first seam at which it acts, as a callable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc.attention import attend
from posenc.attention.own_finish import own_finish
from posenc.checking import subject
from posenc.encoding import DistanceBias, PositionalEncoding
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

    Raises TypeError for what is no encoding.
    """
    if not isinstance(encoding, PositionalEncoding):
        raise TypeError(f"encoding: expected a posenc encoding; give a callable by its seam, rotate=f, got {encoding!r}")
    lacking = {"shift_invariant", "norm_preserving"} - set(encoding.traits)
    d_head = encoding.configuration.get("d_head", width or 16)
    if own_finish(encoding, encoding.configuration.get("n_heads", n_heads), d_head) not in (None, "context"):
        lacking |= {"averages_values"}
    sizes = {
        "width" if key == "d_head" or (key == "d_model" and "embed" in encoding.seams) else key: value
        for key, value in encoding.configuration.items()
        if key in ("d_head", "d_model", "n_heads") and isinstance(value, int)
    }
    sizes.pop("d_model", None)
    if "rotate" in encoding.seams:
        return "rotate", _Rotate(encoding), sizes, frozenset(lacking)
    if "embed" in encoding.seams:
        return "embed", _Embed(encoding), sizes, frozenset(lacking)
    if isinstance(encoding, DistanceBias):
        return "bias", _Bias(encoding), sizes, frozenset(lacking)
    return "attention", _Attention(encoding), sizes, frozenset(lacking)
