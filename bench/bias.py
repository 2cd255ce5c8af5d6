"""Causal attention with a bias of the distance, built in every call: ours, other implementations in torch, and the peers.

    floor   F.scaled_dot_product_attention(is_causal=True) on the same q, k, v: no bias, no documents, no padding

Legend: b batch, h heads, i query, j key, t tokens, d channels of a head, n distances.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench import truth
from bench.contest import Contender, Contest, Entry, Unavailable
from bench.gate import limits
from bench.plan import Case

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
Term = Callable[[int, Tensor, Tensor], Tensor]  # (head, scaled logits, rows i) -> logits with the term of the encoding
CHECKED = 256  # queries of long sequences that are compared with the truth; all of them up to 2048
CLIPPED = 16  # Shaw's largest distance


class Inputs:
    """q, k, v, the output gradient, and the parameters of the encodings; made at first use."""

    def __init__(self, case: Case, device: str) -> None:
        self.case, self.device, self.dtype = case, device, getattr(torch, case.dtype)
        self.method, _, self.how = case.name.partition(", ")
        self.backward = self.how == "forward + backward"
        self.scale = 1 / math.sqrt(case.width)
        self._tensors: tuple[Tensor, ...] | None = None

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        if self._tensors is None:
            case, source = self.case, torch.Generator().manual_seed(0)
            shape = (case.batch, case.heads, case.length, case.width)
            drawn = [torch.randn(shape, generator=source).to(self.dtype).to(self.device) for _ in range(3 + self.backward)]
            self._tensors = tuple([x.requires_grad_(self.backward) for x in drawn[:3]] + drawn[3:])
        return self._tensors

    @property
    def qkv(self) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.tensors[:3]
        return q, k, v

    def drawn(self, seed: int, *shape: int, size: float = 0.5) -> Tensor:
        return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * size).to(self.device)

    @property
    def table(self) -> Tensor:
        """T5's, [buckets, h]."""
        return self.drawn(1, 32, self.case.heads)

    @property
    def ends(self) -> list[int]:
        """The ends of packed documents and of left padding; not round numbers."""
        length = self.case.length
        return [0, max(1, length * 3 // 10 + 1), max(2, length * 13 // 20), length]

    def layout(self) -> tuple[Tensor, Tensor]:
        """Coordinate and document of every token, [t] each; document -1 is padding."""
        place, document = torch.arange(self.case.length), torch.zeros(self.case.length, dtype=torch.long)
        if self.how == "packed":
            for number, (begin, end) in enumerate(zip(self.ends, self.ends[1:], strict=False)):
                document[begin:end] = number
                place[begin:end] -= begin
        if self.how == "padded":
            document[: self.ends[1]] = -1
            place = (place - self.ends[1]).clamp(min=0)
        return place.to(self.device), document.to(self.device)

    def may(self) -> Tensor:
        """[1, i, j]: the same document, no padding, not after the query."""
        _, document = self.layout()
        order = torch.arange(self.case.length, device=self.device)
        return ((document[:, None] == document) & (document >= 0) & (order[:, None] >= order))[None]

    def distances(self) -> Tensor:
        place, _ = self.layout()
        return place[:, None] - place

    def posenc(self) -> tuple[Any, Any]:
        """Our encoding with the benchmark's parameters, and the positions."""
        from posenc.encodings.alibi import ALiBi
        from posenc.encodings.nope import NoPE
        from posenc.encodings.rope import RoPE
        from posenc.encodings.shaw import Shaw
        from posenc.encodings.t5 import T5
        from posenc.encodings.transformer_xl import TransformerXL
        from posenc.positions import Positions

        heads, width = self.case.heads, self.case.width
        encoding: Any = {
            "NoPE": NoPE,
            "RoPE": lambda: RoPE(width, layout="half"),
            "ALiBi": lambda: ALiBi(heads),
            "T5": lambda: T5(heads),
            "Shaw": lambda: Shaw(width, max_distance=CLIPPED),
            "Transformer-XL": lambda: TransformerXL(heads * width, heads),
        }[self.method]()
        weights = {"T5": [self.table], "Shaw": list(self.shaw()), "Transformer-XL": list(self.transformer_xl())}
        with torch.no_grad():
            for parameter, weight in zip(encoding.parameters(), weights.get(self.method, []), strict=True):
                parameter.copy_(weight)
        if self.how == "packed":
            at = Positions.packed(self.ends, device=self.device)
        elif self.how == "padded":
            at = Positions.from_mask((self.layout()[1] >= 0)[None])
        else:
            at = Positions.arange(1, self.case.length, device=self.device)
        return encoding.to(self.device), encoding.to(self.device).prepare(at)

    def shaw(self) -> tuple[Tensor, Tensor]:
        return self.drawn(2, 2 * CLIPPED + 1, self.case.width), self.drawn(3, 2 * CLIPPED + 1, self.case.width)

    def transformer_xl(self) -> tuple[Tensor, Tensor, Tensor]:
        """u [h, d], v [h, d], W_R [h, d, m]."""
        heads, width = self.case.heads, self.case.width
        return (
            self.drawn(4, heads, width),
            self.drawn(5, heads, width),
            self.drawn(6, heads, width, heads * width, size=1 / math.sqrt(heads * width)),
        )


# The terms of the encodings, by the formulas of their papers. ------------------------------------------------------------


def terms(inputs: Inputs, q: Tensor, k: Tensor, table: Tensor) -> tuple[Term, Callable[[Tensor, Tensor], Tensor] | None]:
    """The term added to the logits, and what is added to the output, in the dtype of q."""
    distance, dtype = inputs.distances(), q.dtype
    if inputs.method == "ALiBi":
        slopes = truth.slopes(inputs.case.heads)
        return lambda head, logits, rows: logits - slopes[head] * distance[rows].abs().to(dtype), None
    if inputs.method == "T5":
        bucket = truth.bucket(distance)
        return lambda head, logits, rows: logits + table[:, head][bucket[rows]], None
    if inputs.method == "Shaw":
        keys, values = (vectors.to(dtype) for vectors in inputs.shaw())
        vector = (-distance).clamp(-CLIPPED, CLIPPED) + CLIPPED

        def shaw(head: int, logits: Tensor, rows: Tensor) -> Tensor:
            return logits + (q[:, head, rows] @ keys.T * inputs.scale).gather(-1, vector[rows].expand_as(logits))

        def to_values(probs: Tensor, rows: Tensor) -> Tensor:
            return torch.stack([probs.where(vector[rows] == c, 0).sum(-1) for c in range(len(values))], dim=-1) @ values

        return shaw, to_values
    u, v, w_r = (parameter.to(dtype) for parameter in inputs.transformer_xl())
    angle = truth.angles(torch.arange(inputs.case.length, device=q.device), w_r.shape[-1])
    wave = torch.cat([angle.sin(), angle.cos()], dim=-1).to(dtype)  # of the distances 0 … t-1

    def transformer_xl(head: int, logits: Tensor, rows: Tensor) -> Tensor:
        toward = (q[:, head, rows] + v[head]) @ (wave @ w_r[head].T).T
        position = toward.gather(-1, distance[rows].clamp(min=0).expand_as(logits))
        return logits + (position + (k[:, head] @ u[head])[:, None]) * inputs.scale

    return transformer_xl, None


def explicit(inputs: Inputs, rows: Tensor, dtype: torch.dtype) -> list[Tensor]:
    """Attention as the formula says, in `dtype`, and its gradients in the backward case; one head at a time."""
    q, k, v = (x.detach().to(dtype).requires_grad_(inputs.backward) for x in inputs.qkv)
    table = inputs.table.to(dtype).requires_grad_(inputs.backward)
    may, outs = inputs.may(), []
    for head in range(q.shape[1]):
        term, after = terms(inputs, q, k, table)
        head_term = functools.partial(term, head)
        out = truth.attention(q[:, head], k[:, head], v[:, head], head_term, may, rows, inputs.scale, after)
        if inputs.backward:
            out.backward(inputs.tensors[3][:, head].to(dtype))
        outs.append(out.detach())
    gradients = [x.grad for x in (q, k, v, table)[: 4 if inputs.method == "T5" else 3]] if inputs.backward else []
    return [torch.stack(outs, dim=1), *(gradient for gradient in gradients if gradient is not None)]


def build(case: Case, device: str = "cpu") -> Contest:
    inputs = Inputs(case, device)
    every = case.length <= 2048

    def rows() -> Tensor:
        if every:
            return torch.arange(case.length, device=device)
        drawn = torch.randperm(case.length, generator=torch.Generator().manual_seed(0))[: CHECKED - 2]
        return torch.cat([torch.tensor([0, case.length - 1]), drawn]).sort().values.to(device)

    def allowed(_: str, exact: Sequence[Tensor]) -> list[float]:
        """The allowed error: twice that of torch, given the bias as a matrix if there is one, plus a rounding."""
        if inputs.method in ("ALiBi", "T5") and every:
            usual = _masked(inputs, built=False, learned=inputs.backward).make().results()
        else:
            usual = explicit(inputs, rows(), torch.float32)
            usual = [usual[0].to(inputs.dtype), *usual[1:]]
        return limits(usual, exact, times=2, roundings=1, dtype=inputs.dtype)

    def floor() -> Contender:
        return _timed(inputs, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), rows)

    return Contest(
        Entry("attention without bias", "torch", floor),
        _entries(inputs, rows),
        {"": lambda: explicit(inputs, rows(), torch.float64)},
        allowed,
        ("out", "dq", "dk", "dv", "dtable")
        if inputs.method == "T5" and inputs.backward
        else ("out", "dq", "dk", "dv")
        if inputs.backward
        else ("out",),
    )


def _timed(inputs: Inputs, attend: Attend, rows: Callable[[], Tensor], table: nn.Parameter | None = None) -> Contender:
    """Forward without a graph, or forward and backward with gradients for q, k, v and the table."""
    q, k, v = inputs.qkv
    if not inputs.backward:

        @torch.no_grad()
        def forward() -> list[Tensor]:
            return [attend(q, k, v)]

        return Contender(forward, lambda: [forward()[0].index_select(2, rows())])
    leaves = [q, k, v, *([table] if table is not None else [])]

    def call() -> list[Tensor]:
        for leaf in leaves:
            leaf.grad = None
        out = attend(q, k, v)
        out.backward(inputs.tensors[3])
        return [out]

    def results() -> list[Tensor]:
        out = call()[0].detach()
        return [out, *(leaf.grad.clone() for leaf in leaves if leaf.grad is not None)]

    return Contender(call, results)


def _entries(inputs: Inputs, rows: Callable[[], Tensor]) -> list[Entry]:
    def ours(impl: str) -> Contender:
        from posenc.attention import attend

        encoding, at = inputs.posenc()
        table = encoding.table if inputs.method == "T5" else None
        return _timed(inputs, lambda q, k, v: attend(q, k, v, encoding, at, impl=impl), rows, table)

    auto = Entry("posenc", "posenc", lambda: ours("auto"))
    if inputs.method in ("Shaw", "Transformer-XL"):
        return [auto, Entry("explicit softmax", "torch", lambda: ours("reference"), squares=3)]
    mask_ready, mask_built = _masked(inputs, built=False, rows=rows), _masked(inputs, built=True, rows=rows)
    if inputs.case.swept:
        return [auto, *_backends(inputs, ours), mask_built]
    if inputs.how in ("packed", "padded"):
        return [auto, mask_ready, mask_built]
    entries = [auto, mask_ready, mask_built]
    if inputs.backward and inputs.method == "T5":
        entries = [auto, _masked(inputs, built=True, learned=True, rows=rows)]
    entries.append(_explicit(inputs, rows))
    return entries if inputs.backward else [*entries, _flex(inputs, rows), *_peers(inputs, rows)]


def _backends(inputs: Inputs, ours: Callable[[str], Contender]) -> list[Entry]:
    """Each backend that serves the encoding here, so that a threshold of "auto" between them shows."""
    from posenc.attention.backends import BACKENDS

    def serving(name: str) -> Contender:
        contender = ours(name)
        try:
            contender.call()
        except (ValueError, NotImplementedError) as why:
            raise Unavailable("cannot serve it") from why
        return contender

    names = [name for name in BACKENDS if name != "flex" or inputs.device != "cpu"]
    return [
        Entry(f"backend {name}", "posenc", functools.partial(serving, name), squares=3 if name == "reference" else 0)
        for name in names
    ]


def _vector(inputs: Inputs, table: Tensor) -> Tensor:
    """The bias of the distances 0 … t-1, [h, n]: for one document without padding."""
    distance = torch.arange(inputs.case.length, device=inputs.device)
    if inputs.method == "T5":
        return table.T[:, truth.bucket(distance)]
    return torch.tensor([-slope for slope in truth.slopes(inputs.case.heads)], device=inputs.device)[:, None] * distance


def _matrix(inputs: Inputs, table: Tensor) -> Tensor:
    """The mask as tutorials build it, [1, h, i, j]: bias where a key may be seen, -inf elsewhere."""
    distance = inputs.distances()
    if inputs.method == "T5":
        bias = table[truth.bucket(distance)].permute(2, 0, 1)
    else:
        slopes = torch.tensor(truth.slopes(inputs.case.heads), device=inputs.device)
        bias = -slopes[:, None, None] * distance.abs()
    return bias.masked_fill(~inputs.may(), float("-inf"))[None].to(inputs.dtype)


def _masked(inputs: Inputs, *, built: bool, learned: bool = False, rows: Callable[[], Tensor] | None = None) -> Entry:
    """torch's fused attention with the bias as a matrix. A matrix that wants gradients takes torch's unfused path."""

    def make() -> Contender:
        table = nn.Parameter(inputs.table) if learned and inputs.method == "T5" else None
        bias_table = inputs.table if table is None else table
        ready = None if built or table is not None else _matrix(inputs, bias_table)
        hidden = (~inputs.may().any(-1))[:, None, :, None] if inputs.how == "padded" else None

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=_matrix(inputs, bias_table) if ready is None else ready)
            return out if hidden is None else out.masked_fill(hidden, 0.0)

        return _timed(inputs, attend, rows or (lambda: torch.arange(inputs.case.length, device=inputs.device)), table)

    name = "unfused: a mask that wants gradients" if learned else "mask built each call" if built else "mask ready"
    return Entry(name, "torch", make, squares=4 if learned else 3 if built else 1)


def _explicit(inputs: Inputs, rows: Callable[[], Tensor]) -> Entry:
    def make() -> Contender:
        table = nn.Parameter(inputs.table) if inputs.backward and inputs.method == "T5" else None
        bias_table = inputs.table if table is None else table

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return (q @ k.mT * inputs.scale + _matrix(inputs, bias_table)).softmax(dim=-1) @ v

        return _timed(inputs, attend, rows, table)

    return Entry("explicit softmax", "torch", make, squares=5)


def _flex(inputs: Inputs, rows: Callable[[], Tensor]) -> Entry:
    def make() -> Contender:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        length = inputs.case.length
        seen = create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length, device=inputs.device)
        vector = _vector(inputs, inputs.table).contiguous()
        compiled: Any = torch.compile(flex_attention)

        def add(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return score + vector[h, (i - j).clamp(min=0)]

        return _timed(inputs, lambda q, k, v: compiled(q, k, v, score_mod=add, block_mask=seen), rows)

    return Entry("FlexAttention, compiled", "torch", make)


def _peers(inputs: Inputs, rows: Callable[[], Tensor]) -> list[Entry]:
    """The bias as the libraries build it, with the attention that they use."""
    case, device = inputs.case, inputs.device

    def causal() -> Tensor:
        return torch.ones(case.length, case.length, dtype=torch.bool, device=device).tril()

    def softened(logits: Tensor, v: Tensor) -> Tensor:
        return logits.float().softmax(dim=-1).type_as(v) @ v

    def bloom() -> Contender:
        from transformers.models.bloom.modeling_bloom import build_alibi_tensor

        mask, hidden = torch.ones(case.batch, case.length, device=device), ~causal()

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            bias = build_alibi_tensor(mask, case.heads, inputs.dtype).unflatten(0, (case.batch, case.heads))
            return softened((q @ k.mT * inputs.scale + bias).masked_fill(hidden, torch.finfo(q.dtype).min), v)

        return _timed(inputs, attend, rows)

    def t5() -> Contender:
        from transformers.models.t5.configuration_t5 import T5Config
        from transformers.models.t5.modeling_t5 import T5Attention

        config = T5Config(d_model=case.heads * case.width, num_heads=case.heads, d_kv=case.width, is_decoder=True)
        module, hidden = T5Attention(config, has_relative_attention_bias=True).to(device), ~causal()
        module.relative_attention_bias.weight.data.copy_(inputs.table)

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            bias = module.compute_bias(case.length, case.length).masked_fill(hidden, torch.finfo(q.dtype).min)
            return softened(q @ k.mT * inputs.scale + bias.type_as(q), v)

        return _timed(inputs, attend, rows)

    def x_transformers() -> Contender:
        from x_transformers.x_transformers import AlibiPositionalBias, RelativePositionBias

        hidden, module = ~causal(), AlibiPositionalBias(case.heads)
        if inputs.method == "T5":
            module = RelativePositionBias(scale=1.0, causal=True, heads=case.heads)
            module.relative_attention_bias.weight.data.copy_(inputs.table)
        module = module.to(device)

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            bias = module(case.length, case.length).expand(case.batch, -1, -1, -1).masked_fill(hidden, float("-inf"))
            return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))

        return _timed(inputs, attend, rows)

    theirs = Entry("transformers, BLOOM's way", "transformers", bloom, squares=3)
    if inputs.method == "T5":
        theirs = Entry("transformers, T5's way", "transformers", t5, squares=4)
    return [theirs, Entry("x-transformers, fused", "x-transformers", x_transformers, squares=3)]
