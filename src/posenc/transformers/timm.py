"""An encoding instead of the table of positions of one of timm's plain Vision Transformers.

    patches ── the table is taken off ── encoding.embed ──► blocks ── attention with the encoding ──► …

Serves timm's `VisionTransformer` with blocks of its own `Attention`, at one size of image. What rotates by tables of its
own (EVA, DINOv3) has other classes, and is refused.
Legend: b batch, t tokens: the prefix (class and register tokens), then patches row by row; h heads, d channels of a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from posenc.attention import attend
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.transformers.decoder import Unsupported
from posenc.transformers.shared_encoding import axes, check_fits, check_shared

if TYPE_CHECKING:
    from posenc.support.shapes import Float

HELD, RECORD = "posenc_encoding", "_posenc_attached"


@dataclass
class Attached:
    """What the blocks read, and what `detach` puts back."""

    encoding: PositionalEncoding
    patches: Any  # timm's PatchEmbed, which knows the grid
    prefix: int
    table: nn.Parameter | None
    hook: Any = None

    def positions(self, device: torch.device) -> Positions:
        rows, columns = self.patches.grid_size
        if axes(self.encoding) == 1:
            return Positions.arange(1, self.prefix + rows * columns, device=device)
        grid = Positions.grid(rows, columns, device=device)
        return Positions.joint([self.prefix, grid]) if self.prefix else grid

    def embed(self, module: nn.Module, args: tuple[Any, ...]) -> Any:
        """Pre-hook of what follows the place of the table."""
        return (self.encoding.embed(args[0], self.positions(args[0].device)), *args[1:])


def attach(model: Any, encoding: PositionalEncoding) -> nn.Module:
    """Replaces the table `pos_embed` of the model by `encoding`, in all blocks; returns the model.

        posenc.transformers.timm.attach(model, posenc.create("axial_rope", d_head=64))

    An encoding of one axis counts all tokens, the prefix first. One of two axes reads (row, column) of the patches; the
    prefix stands at 0, where a rotation leaves it as it is. The encoding's parameters are the model's, under
    "posenc_encoding". `detach` undoes it; a saved state_dict is loaded after `attach` of the same encoding.

    Raises TypeError for what is no encoding, ValueError where something is attached already, and Unsupported for other
    models, for encodings of other sizes, and for one of two axes that does more than rotate in a model with a prefix, which
    has no row and column. The model is then as it was.
    """
    if not isinstance(encoding, PositionalEncoding):
        raise TypeError(f"encoding: expected a PositionalEncoding such as posenc.create('axial_rope', …), got {encoding!r}")
    blocks = _attention_of(model)
    if RECORD in vars(model):
        raise ValueError("model: an encoding is attached already; call posenc.transformers.timm.detach(model) first")
    _check(encoding, model, blocks)
    record = Attached(encoding.to(blocks[0].qkv.weight.device), model.patch_embed, model.num_prefix_tokens, model.pos_embed)
    model.pos_embed = None
    model.add_module(HELD, record.encoding)
    if "embed" in encoding.seams:
        record.hook = model.norm_pre.register_forward_pre_hook(record.embed)
    object.__setattr__(model, RECORD, record)
    for block in blocks:
        block.forward = partial(_forward, block, record)
    return model  # type: ignore[no-any-return]


def detach(model: Any) -> nn.Module:
    """Takes off what `attach` has put on, and puts the table back. Raises ValueError where nothing is attached."""
    record: Attached | None = vars(model).get(RECORD)
    if record is None:
        raise ValueError(f"model: nothing is attached to this {type(model).__name__}")
    for block in _attention_of(model):
        del block.forward
    if record.hook is not None:
        record.hook.remove()
    delattr(model, HELD)
    object.__delattr__(model, RECORD)
    model.pos_embed = record.table
    return model  # type: ignore[no-any-return]


def _attention_of(model: Any) -> list[Any]:
    """The attention modules. Raises Unsupported for what is no VisionTransformer of timm with its own Attention."""
    from timm.layers import Attention
    from timm.models.vision_transformer import VisionTransformer

    name = type(model).__name__
    if type(model) is not VisionTransformer:
        raise Unsupported(f"model: expected a VisionTransformer of timm, got {name}, which has positions of another kind")
    blocks = [getattr(block, "attn", None) for block in model.blocks]
    if other := [type(block).__name__ for block in blocks if type(block) is not Attention]:
        raise Unsupported(f"model: expected blocks with timm's Attention, got {other[0]}")
    if model.dynamic_img_size or not isinstance(model.patch_drop, nn.Identity):
        raise Unsupported("model: dynamic_img_size and patch_drop_rate leave out where patches are; make it without")
    return blocks


def _check(encoding: PositionalEncoding, model: Any, blocks: list[Any]) -> None:
    """Raises Unsupported for an encoding that the blocks cannot take."""
    check_shared(encoding)
    read, prefix = axes(encoding), model.num_prefix_tokens
    if read > 2 or (read == 2 and prefix and not encoding.seams <= {"rotate"}):
        raise Unsupported(
            f"encoding: {type(encoding).__name__} reads {read} coordinates, which {prefix} tokens before the patches do "
            "not have; give a rotation of two axes, an encoding of one, or a model without class and register tokens"
        )
    new = next(encoding.parameters(), torch.zeros(())).new_zeros
    at = Positions.at(new(1, 3, *[2] * (read == 2), dtype=torch.long))
    check_fits(encoding, new(1, 3, model.embed_dim), new(1, blocks[0].num_heads, 3, blocks[0].head_dim), at)


def _forward(
    block: Any, record: Attached, x: Float[Tensor, "b t m"], attn_mask: Tensor | None = None, is_causal: bool = False
) -> Float[Tensor, "b t m"]:
    """timm's Attention.forward with the encoding."""
    gate = None if block.gate is None else block.gate(x).sigmoid()
    q, k, v = block.qkv(x).unflatten(-1, (3, block.num_heads, block.head_dim)).permute(2, 0, 3, 1, 4)
    at = record.encoding.read_hidden(x, record.positions(x.device))
    dropout = block.attn_drop.p if block.training else 0.0
    options: dict[str, Any] = {"causal": is_causal, "mask": attn_mask, "dropout": dropout}
    x = block.norm(attend(block.q_norm(q), block.k_norm(k), v, record.encoding, at, **options).transpose(1, 2).flatten(2))
    return block.proj_drop(block.proj(x if gate is None else x * gate))  # type: ignore[no-any-return]
