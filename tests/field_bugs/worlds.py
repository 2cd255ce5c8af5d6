"""What the tests of shipped bugs are tried on: encodings by name, and tokens through embedding, rotation and attention."""

from __future__ import annotations

from dataclasses import replace

import torch

import posenc
from posenc import Positions
from posenc.checking import laws
from sampling import ENCODINGS, IN_A_ROW
from test_laws import SETTINGS, build

MAKES_NEIGHBOURS = ("convolutional", "conditional")  # a row must be one whole document
ROW_BY_ROW = [name for name in IN_A_ROW if name not in MAKES_NEIGHBOURS]
FIXED = [name for name in ENCODINGS if not list(build(name).parameters())]
"""The encodings without parameters, in the laws' small sizes."""
ROTARY = ("rope", "rope half", "rope partial reversed", "rope trailing", "xpos", "xpos half")
BIASES = ("alibi", "t5", "t5 both ways", "kerple", "fire", "shaw", "transformer_xl", "deberta", "swin_v2")


def world(name: str, **changes) -> laws.World:
    return laws.World(replace(laws.Setting(), **{**SETTINGS.get(name, {}), **changes}))


def heads(batch: int, length: int, d_head: int = 8, n_heads: int = 4, dtype=torch.float32, seed: int = 0) -> torch.Tensor:
    drawn = torch.randn(batch, n_heads, length, d_head, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return drawn.to(dtype)


def tokens(batch: int, length: int, width: int = 32, dtype=torch.float32, seed: int = 0) -> torch.Tensor:
    return heads(batch, length, width, 1, dtype, seed)[:, 0]


def outputs(encoding: posenc.PositionalEncoding, at: Positions, dtype=torch.float32, d_head: int = 8) -> list[torch.Tensor]:
    """What an encoding gives at its seams of one token: embedded tokens, turned queries and keys, a bias with an end."""
    wide, narrow = tokens(at.batch, at.length, dtype=dtype), heads(at.batch, at.length, d_head, dtype=dtype)
    found = [encoding.embed(wide, at), encoding.rotate(narrow, at, "query"), encoding.rotate(narrow, at, "key")]
    if encoding.largest_position() is not None and (bias := encoding.bias(narrow, narrow, at, at)) is not None:
        found.append(bias(*torch.meshgrid(*map(torch.arange, (*narrow.shape[:2], at.length, at.length)), indexing="ij")))
    return found


def same(first, second, what: str = "") -> None:
    """Raises AssertionError unless the tensors, or lists of tensors, are equal bit by bit."""
    if isinstance(first, torch.Tensor):
        first, second = [first], [second]
    for mine, theirs in zip(first, second, strict=True):
        assert torch.equal(mine, theirs), (
            f"{what}: differ by {float((mine.detach().double() - theirs.detach().double()).abs().max()):.3g}"
        )


def near(first: torch.Tensor, second, what: str = "", atol: float = 2e-6) -> None:
    second = torch.as_tensor(second)
    apart = float((first.detach().double() - second.detach().double()).abs().max())
    assert apart <= atol, f"{what}: differ by {apart:.3g}, allowed {atol:.3g}"


def attention(name: str = "rope", **options) -> posenc.Attention:
    """posenc.Attention of 32 channels and 4 heads with that encoding, weights drawn by seed 0."""
    torch.manual_seed(0)
    return posenc.Attention(32, 4, build(name), **options).eval()
