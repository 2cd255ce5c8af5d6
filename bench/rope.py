"""Rotating queries and keys: ours into a new tensor, into a given one and in place, and every peer.

    floor   copying q and k into existing memory; forward + backward: twice
    decode  one token in each row, from the lengths seen so far: positions, cos and sin are computed within, on both sides
            where the peer computes them

Legend: b batch, h heads, t tokens, d channels of a head.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from bench import truth
from bench.contest import Contender, Contest, Entry, from_call
from bench.gate import rounding
from bench.plan import Case

Pair = tuple[Tensor, Tensor]
Rotate = Callable[[Tensor, Tensor], Pair]
SEEN = 1000  # tokens before the decoded one


class Inputs:
    """q, k and the gradients that come back, made at first use, so that a list of contenders costs no memory."""

    def __init__(self, case: Case, device: str) -> None:
        self.case, self.device, self.dtype = case, device, getattr(torch, case.dtype)
        self.decoding, self.backward = case.name == "decode", "backward" in case.name
        self._tensors: tuple[Tensor, ...] | None = None

    @property
    def all(self) -> tuple[Tensor, ...]:
        if self._tensors is None:
            case, source = self.case, torch.Generator().manual_seed(0)
            shapes = [(case.batch, heads, case.length, case.width) for heads in (case.heads, case.kv_heads)] * 2
            tensors = [torch.randn(shape, generator=source).to(self.dtype).to(self.device) for shape in shapes]
            for x in tensors[:2]:
                x.requires_grad_(self.backward)
            self._tensors = tuple(tensors)
        return self._tensors

    @property
    def pair(self) -> Pair:
        return self.all[0], self.all[1]

    @property
    def incoming(self) -> Pair:
        return self.all[2], self.all[3]

    @property
    def positions(self) -> Tensor:
        """[b or 1, t]."""
        if self.decoding:
            return torch.arange(SEEN, SEEN + self.case.batch, device=self.device)[:, None]
        return torch.arange(self.case.length, device=self.device)[None]

    def posenc(self, encoding: Any) -> Any:
        from posenc.positions import Positions

        if self.decoding:
            return Positions.decode(self.positions[:, 0])
        return encoding.prepare(Positions.arange(1, self.case.length, device=self.device))


def build(case: Case, device: str = "cpu") -> Contest:
    inputs = Inputs(case, device)
    times = 2 if inputs.backward else 1

    def floor() -> Contender:
        pair = [x.detach() for x in inputs.pair]
        target = [torch.zeros_like(x) for x in pair]

        def call() -> list[Tensor]:
            for _ in range(times):
                for to, x in zip(target, pair, strict=True):
                    to.copy_(x)
            return target

        return from_call(call)

    def exact(layout: str) -> list[Tensor]:
        turned = [truth.rotated(x, inputs.positions, layout) for x in inputs.pair]
        if inputs.backward:
            turned += [truth.rotated(x, inputs.positions, layout, -1) for x in inputs.incoming]
        return turned

    def allowed(layout: str, exact: Sequence[Tensor]) -> list[float]:
        """One rounding of the result, and four of float32: both factors' and both products'."""
        return [(rounding(inputs.dtype) + 4 * 2**-24) * x.abs().max().item() for x in exact]

    entries = [*_ours(inputs), *_plain(inputs), *_transformers(inputs), *_smaller(inputs), *_fused(inputs)]
    if case.swept:
        entries = [entry for entry in entries if entry.package == "posenc" or entry.name == "transformers"]
    size = torch.finfo(inputs.dtype).bits // 8
    return Contest(
        Entry("copy" if times == 1 else "copy twice", "torch", floor),
        entries,
        {layout: lambda layout=layout: exact(layout) for layout in ("half", "interleaved")},  # type: ignore[misc]
        allowed,
        ("q", "k", "dq", "dk") if inputs.backward else ("q", "k"),
        moved=2 * times * size * case.batch * (case.heads + case.kv_heads) * case.length * case.width,
        repeat=50 if inputs.decoding else 1,
    )


def _entry(inputs: Inputs, name: str, package: str, layout: str, make: Callable[[], Rotate]) -> Entry:
    """A contender that gives new tensors: rotated, and in the backward case differentiated."""

    def ready() -> Contender:
        rotate, (q, k) = make(), inputs.pair
        if inputs.decoding:
            return from_call(torch.no_grad()(lambda: rotate(q, k)))
        if not inputs.backward:
            return from_call(lambda: rotate(q, k))

        def call() -> list[Tensor]:
            q.grad = k.grad = None
            outs = rotate(q, k)
            torch.autograd.backward(outs, inputs.incoming)
            return list(outs)

        def results() -> list[Tensor]:
            outs = call()
            assert q.grad is not None
            assert k.grad is not None
            return [*outs, q.grad.clone(), k.grad.clone()]

        return Contender(call, results)

    return Entry(name, package, ready, layout)


def _ours(inputs: Inputs) -> list[Entry]:
    def rope(layout: str) -> Any:
        from posenc.encodings.rope import RoPE

        return RoPE(inputs.case.width, layout=layout)  # type: ignore[arg-type]

    def new(layout: str) -> Rotate:
        from posenc.attention import rotate

        encoding = rope(layout)
        at = inputs.posenc(encoding)
        return lambda q, k: rotate(q, k, encoding, at)

    def prepared() -> Rotate:
        from posenc.attention import rotate

        encoding = rope("half")
        at = inputs.posenc(encoding)
        return lambda q, k: rotate(q, k, encoding, encoding.prepare(at))

    def from_lengths(layout: str) -> Rotate:
        from posenc.attention import rotate
        from posenc.positions import Positions

        encoding, lengths = rope(layout), inputs.positions[:, 0]
        return lambda q, k: rotate(q, k, encoding, Positions.decode(lengths))

    def into(layout: str, in_place: bool) -> Contender:
        encoding = rope(layout)
        at, (q, k) = inputs.posenc(encoding), (x.detach() for x in inputs.pair)

        def rotate(q: Tensor, k: Tensor, to: Pair) -> Pair:
            here = encoding.prepare(at) if inputs.decoding else at
            return encoding.rotate(q, here, "query", out=to[0]), encoding.rotate(k, here, "key", out=to[1])

        def own_copy() -> list[Tensor]:
            copies = q.clone(), k.clone()
            rotate(*copies, copies)
            return list(copies)

        target = (
            (q.clone(), k.clone()) if in_place else (torch.full_like(q, float("nan")), torch.full_like(k, float("nan")))
        )
        if in_place:
            return Contender(lambda: rotate(*target, target), own_copy)
        return from_call(lambda: rotate(q, k, target))

    whole = from_lengths if inputs.decoding else new
    entries = [
        _entry(inputs, "posenc", "posenc", "half", lambda: whole("half")),
        _entry(inputs, "posenc, interleaved", "posenc", "interleaved", lambda: whole("interleaved")),
    ]
    if inputs.decoding:
        entries += [
            _entry(inputs, "posenc, positions at hand", "posenc", "half", lambda: new("half")),
            _entry(inputs, "posenc, positions at hand, prepared", "posenc", "half", prepared),
        ]
    if not inputs.backward:
        entries += [
            Entry("posenc, out=", "posenc", lambda: into("half", False), "half"),
            Entry("posenc, in place", "posenc", lambda: into("half", True), "half"),
            Entry("posenc, interleaved, out=", "posenc", lambda: into("interleaved", False), "interleaved"),
        ]
    return entries


def _plain(inputs: Inputs) -> list[Entry]:
    """Ways in plain torch that need no library."""

    def clone() -> Contender:
        q, k = inputs.pair

        return Contender(lambda: (q.clone(), k.clone()), list)

    def complex_numbers() -> Rotate:
        angle = truth.angles(inputs.positions, inputs.case.width)[:, None]
        turns = torch.polar(torch.ones_like(angle), angle).to(torch.complex64)

        def rotated(x: Tensor) -> Tensor:
            pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
            return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)

        return lambda q, k: (rotated(q), rotated(k))

    def textbook() -> Rotate:
        angle = truth.angles(inputs.positions, inputs.case.width).repeat(1, 1, 2)[:, None]
        cos, sin = angle.cos().to(inputs.dtype), angle.sin().to(inputs.dtype)

        def rotated(x: Tensor) -> Tensor:
            first, second = x.chunk(2, dim=-1)
            return x * cos + torch.cat([-second, first], dim=-1) * sin

        return lambda q, k: (rotated(q), rotated(k))

    if inputs.decoding:
        return []
    ways = [
        _entry(inputs, "textbook module", "torch", "half", textbook),
        _entry(inputs, "complex numbers", "torch", "interleaved", complex_numbers),
    ]
    return ways if inputs.backward else [Entry("clone", "torch", clone), *ways]


def _transformers(inputs: Inputs) -> list[Entry]:
    """Llama's module: cos and sin given, but computed within when decoding."""

    def rotate(compiled: bool) -> Rotate:
        from transformers.models.llama.configuration_llama import LlamaConfig
        from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

        case, positions = inputs.case, inputs.positions
        config = LlamaConfig(
            hidden_size=case.heads * case.width,
            num_attention_heads=case.heads,
            head_dim=case.width,
            max_position_embeddings=max(case.length, 2048),
        )
        module, (q, _) = LlamaRotaryEmbedding(config).to(inputs.device), inputs.pair
        turn = torch.compile(apply_rotary_pos_emb) if compiled else apply_rotary_pos_emb
        table = module(q, positions)

        def call(q: Tensor, k: Tensor) -> Pair:
            cos, sin = module(q, positions) if inputs.decoding else table
            turned: Pair = turn(q, k, cos, sin)
            return turned

        return call

    return [
        _entry(inputs, "transformers", "transformers", "half", lambda: rotate(False)),
        _entry(inputs, "transformers, compiled", "transformers", "half", lambda: rotate(True)),
    ]


def _smaller(inputs: Inputs) -> list[Entry]:
    case = inputs.case

    def torchtune() -> Rotate:
        _quiet_torchao()
        from torchtune.modules import RotaryPositionalEmbeddings

        module = RotaryPositionalEmbeddings(case.width, max_seq_len=max(case.length, 2 * SEEN)).to(inputs.device)
        at = inputs.positions if inputs.decoding else None  # None: from position 0

        def rotated(x: Tensor) -> Tensor:
            turned: Tensor = module(x.transpose(1, 2), input_pos=at).transpose(1, 2)
            return turned

        return lambda q, k: (rotated(q), rotated(k))

    def rotary_embedding_torch() -> Rotate:
        from rotary_embedding_torch import RotaryEmbedding

        module = RotaryEmbedding(dim=case.width).to(inputs.device)
        return lambda q, k: (module.rotate_queries_or_keys(q), module.rotate_queries_or_keys(k))

    def x_transformers() -> Rotate:
        from x_transformers.x_transformers import RotaryEmbedding, apply_rotary_pos_emb

        module = RotaryEmbedding(case.width).to(inputs.device)
        table = module(inputs.positions)

        def rotate(q: Tensor, k: Tensor) -> Pair:
            angles, scale = module(inputs.positions) if inputs.decoding else table
            return apply_rotary_pos_emb(q, angles, scale), apply_rotary_pos_emb(k, angles, scale)

        return rotate

    decoding = inputs.decoding
    entries = [_entry(inputs, "torchtune" + ", table given" * decoding, "torchtune", "interleaved", torchtune)]
    if not decoding:  # it knows one offset for all rows
        entries.append(
            _entry(inputs, "rotary-embedding-torch", "rotary-embedding-torch", "interleaved", rotary_embedding_torch)
        )
    return [*entries, _entry(inputs, "x-transformers", "x-transformers", "interleaved", x_transformers)]


def _quiet_torchao() -> None:
    import logging

    logging.getLogger("torchao").setLevel(logging.ERROR)  # it warns that its own kernels do not fit this torch


def _fused(inputs: Inputs) -> list[Entry]:
    """Fused kernels for GPUs; forward in prefill, with tables given."""
    if inputs.decoding:
        return []
    case = inputs.case

    def cos_sin(double: bool) -> Pair:
        angle = truth.angles(inputs.positions[0], case.width)
        angle = torch.cat([angle, angle], dim=-1) if double else angle
        return angle.cos().to(inputs.dtype), angle.sin().to(inputs.dtype)

    def flash_attn() -> Rotate:
        from flash_attn.layers.rotary import apply_rotary_emb

        cos, sin = cos_sin(False)

        def rotated(x: Tensor) -> Tensor:
            turned: Tensor = apply_rotary_emb(x.transpose(1, 2), cos, sin).transpose(1, 2)
            return turned

        return lambda q, k: (rotated(q), rotated(k))

    def liger() -> Rotate:
        from liger_kernel.transformers.rope import liger_rotary_pos_emb

        cos, sin = (table[None] for table in cos_sin(True))

        def rotate(q: Tensor, k: Tensor) -> Pair:
            turned: Pair = liger_rotary_pos_emb(q, k, cos, sin)
            return turned

        return rotate

    def transformer_engine() -> Rotate:
        from transformer_engine.pytorch.attention.rope import apply_rotary_pos_emb

        angle = truth.angles(inputs.positions[0], case.width).float()
        freqs = torch.cat([angle, angle], dim=-1)[:, None, None]  # [t, 1, 1, d]

        def rotated(x: Tensor) -> Tensor:
            turned: Tensor = apply_rotary_pos_emb(x.transpose(1, 2), freqs, tensor_format="bshd", fused=True)
            return turned.transpose(1, 2)

        return lambda q, k: (rotated(q), rotated(k))

    return [
        _entry(inputs, "flash-attn", "flash-attn", "half", flash_attn),
        _entry(inputs, "Liger", "liger-kernel", "half", liger),
        _entry(inputs, "Transformer Engine", "transformer-engine", "half", transformer_engine),
    ]
