"""A model's own learned tables of positions or distances, and how an encoding takes their place.

    ids ── word embeddings ── encoding.embed ──► the model's embeddings, whose table of positions gives zeros ──► layers
    distances ──► the model's table of biases gives zeros ──► attention, which adds the encoding's own

BERT, RoBERTa, GPT-2: one row for each position. T5: one row for each distance. A table can be taken off where it is an
`nn.Embedding` that nothing else reads; that no position is left in the model then is measured.
Legend: b batch, t tokens, d channels of the words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from posenc.configs.spec import Use
from posenc.configs.weights import filled
from posenc.encoding import PositionalEncoding
from posenc.encodings.learned import Learned
from posenc.transformers import interface
from posenc.transformers.bound_forward import ATTACHED, OWNER, unbind
from posenc.transformers.decoder import (
    TOKENS,
    Decoder,
    implementations,
    input_device,
    restore_implementations,
    set_implementation,
)
from posenc.transformers.interface import CALL, GivePositions


@dataclass(frozen=True)
class OwnTables:
    """The modules that hold a model's own tables.

    modules    each gives zeros while an encoding is attached
    learned    what a table of positions does, as an encoding; None if there is none
    first_row  what position_ids call position 0: RoBERTa's are rows of the table, and begin with padding_idx + 1. In a
               decoder 0, since `generate` hands over positions
    has_types  whether the module around that table holds token types for as many positions
    """

    modules: tuple[nn.Embedding, ...] = ()
    learned: Learned | None = None
    first_row: int = 0
    has_types: bool = False


def own_tables(stack: Decoder, uses: Iterable[tuple[int, Use]]) -> OwnTables | None:
    """The tables that these uses of layers read; None where one of them is no table of the model that can be taken off."""
    modules: dict[int, nn.Embedding] = {}
    learned, first_row, has_types = None, 0, False
    for n, use in uses:
        held = {key: _module(stack.module, key) for key in (weight.key.format(layer=n) for weight in use.weights)}
        if not held or not all(isinstance(table, nn.Embedding) for table in held.values()):
            return None
        modules |= {id(table): table for table in held.values()}  # type: ignore[misc]
        encoding = filled(use, n, {key: table.weight for key, table in held.items()}, "")  # type: ignore[union-attr,misc]
        if isinstance(encoding, Learned):
            if learned is not None:
                return None
            (key,) = held
            plain = type(modules[id(held[key])]).forward is nn.Embedding.forward
            learned, first_row = encoding, encoding.row_offset if plain and stack.both_ways else 0
            holder = stack.module.get_submodule(_path(stack.module, key).rpartition(".")[0])
            has_types = isinstance(getattr(holder, "token_type_ids", None), Tensor)
    tables = OwnTables(tuple(modules.values()), learned, first_row, has_types)
    return tables if _can_be_taken_off(stack, tables) else None


def take_off(tables: OwnTables) -> None:
    """Lets the tables give zeros, whatever they are asked for, until `unbind` for what `attach` has bound. So does a
    pickled copy, which a method would not."""
    for module in tables.modules:
        module.forward = partial(_zeros, module)  # type: ignore[method-assign]


def _zeros(
    self: nn.Embedding,
    rows: Any,
    past_key_values_length: int = 0,
    position_ids: Tensor | None = None,
    cache_length: int = 0,  # its name from transformers 5.24 on
) -> Tensor:
    """In the place of nn.Embedding's forward, or of BART's kind: tokens, a mask or their shape, perhaps position_ids."""
    if position_ids is not None:  # `rows` may be None then
        rows = position_ids
    return self.weight.new_zeros(*(rows if isinstance(rows, tuple) else rows.shape), self.embedding_dim)


setattr(_zeros, OWNER, ATTACHED)


class EmbedWords:
    """Pre-hook of the decoder, after GivePositions: the words as embeddings, with the encoding's part added.

    The model adds its types, norms and projections to them as always. What it would look up for more positions than its
    table has, is handed over: numbers of positions, and types 0.
    """

    def __init__(self, encoding: PositionalEncoding | None, tables: OwnTables, names: tuple[str, ...]) -> None:
        self.encoding, self.names, self.has_types = encoding, names, tables.has_types

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arguments = dict(zip(self.names, args, strict=False)) | kwargs
        call = arguments.get(CALL)
        if call is None:  # without tokens the model says itself what is missing
            return None
        words = arguments.get("inputs_embeds")
        if words is None:
            words = module.get_input_embeddings()(arguments["input_ids"])  # type: ignore[operator]
        if self.encoding is not None:
            words = self.encoding.embed(words, call.new)
        arguments |= {"input_ids": None, "inputs_embeds": words}
        if self.has_types:
            counted = torch.arange(call.length, device=words.device).expand(call.batch, -1)
            arguments["position_ids"] = counted if arguments.get("position_ids") is None else arguments["position_ids"]
            if arguments.get("token_type_ids") is None:
                arguments["token_type_ids"] = torch.zeros_like(counted)
        return (), arguments


def _module(decoder: nn.Module, key: str) -> nn.Module | None:
    path = _path(decoder, key)
    return decoder.get_submodule(path) if path else None


def _path(decoder: nn.Module, key: str) -> str:
    """Where the module of a weight is inside: its name, or the end of it, since an encoder is a part of its model."""
    known = {name for name, _ in decoder.named_modules()}
    parts = key.removesuffix(".weight").split(".")
    ends = (".".join(parts[n:]) for n in range(len(parts)))
    return next((end for end in ends if end in known), "")


@torch.no_grad()
def _can_be_taken_off(stack: Decoder, tables: OwnTables) -> bool:
    """Whether equal tokens get equal rows without the tables, and the first layer reads the same if the table of positions
    is put on as an encoding: what the words are multiplied by, for example, is then known to come elsewhere."""
    decoder = stack.module
    names = stack.names
    ids = torch.ones(1, TOKENS, dtype=torch.long, device=input_device(decoder))
    seen: list[Tensor] = []

    def note(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen.append(args[0] if args else kwargs["hidden_states"])

    was_training, configured = decoder.training, implementations(decoder)
    interface.register()
    handles = [
        stack.first.register_forward_pre_hook(note, with_kwargs=True),
        decoder.register_forward_pre_hook(
            GivePositions(names, tables.first_row, across=bool(stack.crossing)), with_kwargs=True
        ),
        *interface.cross(stack.crossing),
    ]
    try:
        decoder.eval()
        set_implementation(decoder, interface.NAME)
        decoder(input_ids=ids, use_cache=False, **stack.inputs)
        take_off(tables)
        if tables.learned is not None:
            encoding = tables.learned.to(ids.device)
            handles.append(decoder.register_forward_pre_hook(EmbedWords(encoding, tables, names), with_kwargs=True))
            decoder(input_ids=ids, use_cache=False, **stack.inputs)
            handles.pop().remove()
        handles.append(decoder.register_forward_pre_hook(EmbedWords(None, tables, names), with_kwargs=True))
        out = decoder(input_ids=ids, use_cache=False, **stack.inputs)[0]
    except Exception:  # of the model's own code
        return False
    finally:
        decoder.train(was_training)
        restore_implementations(configured)
        for handle in handles:
            handle.remove()
        for module in tables.modules:
            unbind(module, ATTACHED)
    same = tables.learned is None or _near(seen[1], seen[0])
    return same and _near(out, out[:, :1].expand_as(out)) and _near(seen[-1], seen[-1][:, :1].expand_as(seen[-1]))


def _near(actual: Tensor, expected: Tensor) -> bool:
    rounding = 16 * torch.finfo(actual.dtype).eps * float(expected.abs().amax())
    return bool(((actual - expected).abs() <= rounding).all())
