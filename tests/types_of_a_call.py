"""What a user's type checker sees of posenc; mypy checks this file with the sources, and nothing runs it."""

from typing import assert_type

import torch

import posenc


def attention(q: torch.Tensor) -> torch.Tensor:
    encoding, at = posenc.create("rope", d_head=16), posenc.Positions.arange(1, 8)
    assert_type(posenc.attend(q, q, q, encoding, at), torch.Tensor)
    assert_type(encoding.rotate(q, at, "query"), torch.Tensor)
    assert_type(at.coords, torch.Tensor)
    return assert_type(encoding.embed(q, at), torch.Tensor)
