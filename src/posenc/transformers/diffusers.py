"""An encoding instead of the rotation of a diffusers transformer with Flux's joint attention.

    ids of text and image ── model.pos_embed ──► positions ──► each block's attention: text and image tokens in one sequence

FluxTransformer2DModel hands what its module `pos_embed` computes to every block. `attach` puts a module in that place
that hands over positions, and gives each block a processor that attends with the encoding. Served are models whose
attention is FluxAttention: Flux, its ControlNet, Chroma.
Legend: b batch, t tokens: text, then image; h heads, d channels of a head, m channels of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor, nn

from posenc.attention import attend
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.transformers.decoder import Unsupported
from posenc.transformers.shared_encoding import axes, check_fits, check_shared

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num

AXES = 3  # of an id: image, row, column


class AttachedPositions(nn.Module):
    """In the place of `pos_embed`: position ids as an encoding reads them. Holds what `detach` puts back."""

    def __init__(self, encoding: PositionalEncoding, previous: nn.Module) -> None:
        super().__init__()
        self.encoding, self.previous = encoding, previous

    def forward(self, ids: Num[Tensor, "t 3"]) -> Positions:
        return self.encoding.prepare(_positions(self.encoding, ids))


class AttachedProcessor:
    """FluxAttnProcessor with an encoding: the same projections, norms and outputs."""

    def __init__(self, encoding: PositionalEncoding) -> None:
        self.encoding = encoding

    def __call__(
        self,
        attn: Any,
        hidden_states: Float[Tensor, "b t m"],
        encoder_hidden_states: Float[Tensor, "b t m"] | None = None,
        attention_mask: Tensor | None = None,
        image_rotary_emb: Any = None,
    ) -> Any:
        """`image_rotary_emb` is what pos_embed returns: Positions. The name is that of diffusers."""
        from diffusers.models.transformers.transformer_flux import _get_qkv_projections

        text = 0 if encoder_hidden_states is None else encoder_hidden_states.shape[1]
        projected = _get_qkv_projections(attn, hidden_states, encoder_hidden_states)
        every = [tensor.unflatten(-1, (-1, attn.head_dim)) for tensor in projected if isinstance(tensor, Tensor)]
        q, k, v = attn.norm_q(every[0]), attn.norm_k(every[1]), every[2]
        x = hidden_states
        if encoder_hidden_states is not None:
            x = torch.cat([encoder_hidden_states, x], 1)
            q = torch.cat([attn.norm_added_q(every[3]), q], 1)
            k = torch.cat([attn.norm_added_k(every[4]), k], 1)
            v = torch.cat([every[5], v], 1)
        q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
        at = self.encoding.read_hidden(x, image_rotary_emb)
        out = attend(q, k, v, self.encoding, at, causal=False, mask=attention_mask).transpose(1, 2).flatten(2)
        if encoder_hidden_states is None:
            return out
        return attn.to_out[1](attn.to_out[0](out[:, text:])), attn.to_add_out(out[:, :text])


def attach(model: Any, encoding: PositionalEncoding) -> nn.Module:
    """Replaces the rotation of a diffusers transformer by `encoding`, in all blocks; returns the model.

        posenc.transformers.diffusers.attach(model, posenc.create("nope"))

    Text and image tokens are one sequence, text first. An encoding of one axis counts its tokens; one of two axes reads
    (row, column) of the ids that the model is given, one of three (image, row, column): text stands at 0 on each of them.
    The encoding's parameters are the model's, under "pos_embed.encoding". `detach` undoes it; a saved state_dict is loaded
    after `attach` of the same encoding. While something is attached, `save_pretrained` raises: diffusers' folders cannot
    say what is attached.

    Raises TypeError for what is no encoding, ValueError where something is attached already, and Unsupported for other
    models, for encodings of other sizes, and for those that add to embeddings, which text and image have apart. The model
    is then as it was.
    """
    if not isinstance(encoding, PositionalEncoding):
        raise TypeError(f"encoding: expected a PositionalEncoding such as posenc.create('rope', …), got {encoding!r}")
    if isinstance(getattr(model, "pos_embed", None), AttachedPositions):
        raise ValueError("model: an encoding is attached already; call posenc.transformers.diffusers.detach(model) first")
    blocks = _attention_of(model)
    _check(encoding, blocks[0])
    model.pos_embed = AttachedPositions(encoding.to(blocks[0].to_q.weight.device), model.pos_embed)
    for block in blocks:
        block.set_processor(AttachedProcessor(encoding))
    vars(model)["save_pretrained"] = _refuse_to_save
    return model  # type: ignore[no-any-return]


def detach(model: Any) -> nn.Module:
    """Takes off what `attach` has put on. Raises ValueError where nothing is attached."""
    from diffusers.models.transformers.transformer_flux import FluxAttnProcessor

    held = getattr(model, "pos_embed", None)
    if not isinstance(held, AttachedPositions):
        raise ValueError(f"model: nothing is attached to this {type(model).__name__}")
    model.pos_embed = held.previous
    for module in model.modules():
        if isinstance(getattr(module, "processor", None), AttachedProcessor):
            module.set_processor(FluxAttnProcessor())
    del model.save_pretrained
    return model  # type: ignore[no-any-return]


def _attention_of(model: Any) -> list[Any]:
    """The attention modules. Raises Unsupported for a model that is not of Flux's kind."""
    from diffusers.models.attention import AttentionModuleMixin
    from diffusers.models.transformers.transformer_flux import FluxAttention, FluxAttnProcessor

    name = type(model).__name__
    blocks = [module for module in model.modules() if isinstance(module, AttentionModuleMixin)]
    if type(getattr(model, "pos_embed", None)).__name__ != "FluxPosEmbed" or not blocks:
        raise Unsupported(
            f"model: expected a diffusers transformer that computes positions in a FluxPosEmbed, such as "
            f"FluxTransformer2DModel, got {name}"
        )
    for block in blocks:
        if type(block) is not FluxAttention or type(block.processor) is not FluxAttnProcessor:
            raise Unsupported(
                f"model: expected FluxAttention with FluxAttnProcessor in every block of {name}, got "
                f"{type(block).__name__} with {type(block.processor).__name__}"
            )
    return blocks


def _check(encoding: PositionalEncoding, block: Any) -> None:
    """Raises Unsupported for an encoding that the blocks cannot take."""
    check_shared(encoding)
    name, read = type(encoding).__name__, axes(encoding)
    if "embed" in encoding.seams:
        raise Unsupported(f"encoding: {name} adds to embeddings, and text and image have embeddings apart")
    if read > AXES:
        raise Unsupported(f"encoding: {name} reads {read} coordinates, and the model's ids have {AXES}: image, row, column")
    new = next(encoding.parameters(), torch.zeros(())).new_zeros
    at = _positions(encoding, new(3, AXES))
    check_fits(encoding, new(1, 3, block.query_dim), new(1, block.heads, 3, block.head_dim), at)


def _positions(encoding: PositionalEncoding, ids: Num[Tensor, "t 3"]) -> Positions:
    """An encoding of one axis counts the tokens, text first; one of two reads row and column, one of three the ids."""
    if (read := axes(encoding)) == 1:
        return Positions.arange(1, len(ids), device=ids.device)
    return Positions.at(ids[None, :, AXES - read :].float())


def _refuse_to_save(*args: Any, **options: Any) -> NoReturn:
    """In the place of a model's `save_pretrained`: the folder would be one without the encoding."""
    raise ValueError(
        "posenc: a folder of diffusers cannot say what is attached; keep torch.save(model.state_dict()) and load it after "
        "attach, or call posenc.transformers.diffusers.detach(model) and save the model without the encoding"
    )
