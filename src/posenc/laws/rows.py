"""Laws of rows: a token's row depends on its own embedding and coordinates only."""

from __future__ import annotations

import torch

from posenc.encoding import PositionalEncoding, working_dtype
from posenc.laws.compare import close, equal
from posenc.laws.errors import NotApplicable
from posenc.laws.registry import law
from posenc.laws.world import Setting, World


@law
def locality(encoding: PositionalEncoding, setting: Setting) -> None:
    """An embedded or rotated token depends on itself and its own coordinates only (trait `local`)."""
    if "local" not in encoding.traits:
        raise NotApplicable("the encoding does not declare the trait `local`")
    world = World(setting)
    at = world.scattered()
    some = torch.tensor([7, 2, 9, 2], device=setting.device)
    for seam, whole, part in world.rows(encoding, at, some):
        equal(locality, encoding, part, whole, setting.dtype, f"{seam} of tokens {some.tolist()} alone")


@law
def norm_preservation(encoding: PositionalEncoding, setting: Setting) -> None:
    """Rotation keeps the length of queries and keys (trait `norm_preserving`)."""
    if "norm_preserving" not in encoding.traits:
        raise NotApplicable("the encoding does not declare the trait `norm_preserving`")
    world = World(setting)
    x = world.draw("heads", setting.batch, setting.n_heads, setting.length, setting.d_head)
    at = encoding.read(encoding.embed(world.x, world.scattered()), world.scattered())
    for side in ("query", "key"):
        turned = encoding.rotate(x, at, side).to(working_dtype(x.dtype))
        close(norm_preservation, encoding, turned.norm(dim=-1), x.to(turned.dtype).norm(dim=-1), setting.dtype, side)
