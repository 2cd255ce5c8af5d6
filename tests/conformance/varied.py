"""Correct implementations in shapes that fewer libraries have: posenc.check fails none, and says what each is: VARIED.

They import nothing of posenc. Legend: b batch, h heads, t tokens, i query, j key, d channels.
"""

import math

import torch
from torch import nn

from conformance.correct import Alibi, Causal, CausalAlibi, Interleaved, Rope, Sinusoid, T5Bias

LOWEST = torch.finfo(torch.float32).min


def with_(cls, **attributes):
    """A subclass with other numbers."""
    return type(cls.__name__, (cls,), attributes)


def giving(dtype, cls):
    """What gives its results in another dtype than its tokens'."""

    class Giving(cls):
        def __call__(self, *arguments, **named):
            return super().__call__(*arguments, **named).to(dtype)

    return Giving


# Rotation and tables -----------------------------------------------------------------------------------------------------


class Complex(Rope):
    """Neighbours as complex numbers."""

    def __call__(self, x, positions):
        angles = self.angles(x, positions)
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2).to(x.dtype)


class Matrices(Rope):
    """A rotation matrix for each token."""

    def __call__(self, x, positions):
        angles, n = self.angles(x, positions)[:, 0], x.shape[-1] // 2
        matrix, i = torch.zeros(*angles.shape[:-1], 2 * n, 2 * n, dtype=torch.float32), torch.arange(n)
        matrix[..., i, i] = matrix[..., i + n, i + n] = angles.cos()
        matrix[..., i, i + n], matrix[..., i + n, i] = -angles.sin(), angles.sin()
        return torch.einsum("btij,bhtj->bhti", matrix, x.float()).to(x.dtype)


class TokensBeforeHeads(Rope):
    """[b, t, h, d] inside, and a result that is a view of it."""

    def __call__(self, x, positions):
        x = x.transpose(1, 2)
        with torch.autocast("cpu", enabled=False):
            angles = positions.float()[:, :, None, None] * self.frequencies(x.shape[-1])
        return self.turn(x, angles.cos(), angles.sin()).transpose(1, 2)


class Columns(Rope):
    """A result whose channels do not lie side by side in memory."""

    def __call__(self, x, positions):
        return super().__call__(x, positions).transpose(2, 3).contiguous().transpose(2, 3)


class Lazy(Rope):
    """A table that is made at the first call and grows."""

    table = None

    def __call__(self, x, positions):
        table, need = self.table, int(positions.max()) + 1
        if table is None or table.shape[1] < need:
            with torch.inference_mode(False):
                angles = torch.arange(2 ** math.ceil(math.log2(need + 1)), dtype=torch.float32)[:, None]
                angles = angles * self.frequencies(x.shape[-1])
                self.table = table = torch.stack([angles.cos(), angles.sin()])
        return self.turn(x, *table[:, positions.long()][:, :, None])


TABLES = {}


def of_a_global(x, positions):
    """A table of float32 in a global, which every dtype reads."""
    need = 2 ** math.ceil(math.log2(int(positions.max()) + 2))
    if need not in TABLES:
        with torch.inference_mode(False):
            angles = torch.arange(need, dtype=torch.float32)[:, None] * Rope().frequencies(x.shape[-1])
            TABLES[need] = angles.cos(), angles.sin()
    cos, sin = (part[positions.long()][:, None] for part in TABLES[need])
    return Rope().turn(x, cos, sin)


class InModule(nn.Module):
    def forward(self, x, position_ids):
        return Rope()(x, position_ids)


def one_row(x, positions):
    """Positions [t] alone."""
    with torch.autocast("cpu", enabled=False):
        angles = torch.outer(positions.float(), Rope().frequencies(x.shape[-1]))
    return Rope().turn(x, angles.cos(), angles.sin())


def angles_at(positions, d=64, base=10000.0):
    return positions.double()[..., None] * base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)


def complex_table(positions, base=500_000.0):
    angles = angles_at(positions, base=base)
    return torch.polar(torch.ones_like(angles), angles).to(torch.complex64)


def pairs_table(positions):
    angles = angles_at(positions)
    return torch.stack([angles.cos(), angles.sin()], -1).float()


def outer_table(positions):
    """Of positions [t], which torch.outer asks for."""
    angles = torch.outer(positions.double(), 12345.0 ** (-torch.arange(0, 96, 2, dtype=torch.float64) / 96))
    return torch.cat([angles, angles], -1).cos().float()


def table_of_first_row(positions):
    angles = angles_at(positions[0])
    return torch.cat([angles.sin(), angles.cos()], -1).float()


def narrow_table(positions):
    angles = angles_at(positions).repeat(1, 1, 2)
    return angles.cos().bfloat16(), angles.sin().bfloat16()


class ExactSinusoid(Sinusoid):
    def table(self, x, positions):
        angles = angles_at(positions, x.shape[-1], self.base)
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)


# Biases ------------------------------------------------------------------------------------------------------------------


class Masked(Alibi):
    """ALiBi with a causal mask in it, and a window."""

    fill, window = float("-inf"), 10**9

    def __call__(self, q, k):
        distance = q[:, None, :, None] - k[:, None, None]
        return super().__call__(q, k).masked_fill((distance < 0) | (distance >= self.window), self.fill)


class OfOneRow(Alibi):
    """A result [h, i, j], without the axis of the batch."""

    def __call__(self, q, k):
        return super().__call__(q[:1], k[:1])[0]


def mask_of_bools(q, k):
    """True where a query sees a key, as torch's scaled_dot_product_attention takes it."""
    distance = q[:, None, :, None] - k[:, None, None]
    return (distance >= 0) & (distance < 5)


class Buckets(T5Bias):
    """T5's with another number of buckets and another longest distance."""

    n, most, both = 48, 100, True

    def __init__(self):
        super().__init__(self.both)
        self.n_buckets, self.farthest, self.table = self.n, self.most, nn.Embedding(self.n, 4)
        nn.init.normal_(self.table.weight, generator=torch.Generator().manual_seed(1))


# Attention ---------------------------------------------------------------------------------------------------------------


class Window(Causal):
    """A window of keys; hidden logits are replaced by `fill`."""

    window, fill = 16, -1e9

    def visible(self, q_at, k_at, q_documents, k_documents):
        near = k_at[:, None, None] > q_at[:, None, :, None] - self.window
        return super().visible(q_at, k_at, q_documents, k_documents) & near

    def weights(self, logits, seen):
        return logits.masked_fill(~seen, self.fill).softmax(-1)


class AddedMask(Window):
    """The mask is added."""

    def weights(self, logits, seen):
        return (logits + torch.where(seen, 0.0, self.fill)).softmax(-1)


class Fused(Window):
    """torch's fused attention, with a mask of bools and grouped heads."""

    def __call__(self, q, k, v, q_positions, k_positions):
        q, k = self.rotated(q, k, q_positions, k_positions)
        seen = self.visible(q_positions, k_positions, None, None)
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)


class WindowOfEachHead(Window):
    window = torch.tensor([4, 8, 16, 10**6])[:, None, None]


class WindowAlibi(Window, CausalAlibi):
    window = 8


class Chunks(Causal):
    """A query sees keys of its chunk of 16 tokens."""

    def visible(self, q_at, k_at, q_documents, k_documents):
        return (
            super().visible(q_at, k_at, q_documents, k_documents) & (k_at[:, None] // 16 == q_at[:, :, None] // 16)[:, None]
        )


class Sinks(Window):
    """A logit of each head beside those of the keys, without a value, as in gpt-oss."""

    sinks = (0.5, -1.0, 2.0, 0.0)
    window = 10**9

    def weights(self, logits, seen):
        sinks = torch.tensor(self.sinks, dtype=logits.dtype)[:, None, None].expand(len(logits), -1, logits.shape[2], 1)
        return torch.cat([logits.masked_fill(~seen, LOWEST), sinks], -1).softmax(-1)[..., :-1]


class Capped(Causal):
    """Logits never leave ±cap, as in Gemma 2."""

    cap = 50.0

    def weights(self, logits, seen):
        return super().weights(self.cap * (logits / self.cap).tanh(), seen)


class NormalisedHeads(Causal):
    """Queries and keys have one length, as in Qwen 3."""

    def rotated(self, q, k, q_at, k_at):
        q, k = (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) for x in (q, k))
        return super().rotated(q, k, q_at, k_at)


class NoZeros(Causal):
    """The same without an epsilon: tokens of zeros give NaN, and no other tokens."""

    def rotated(self, q, k, q_at, k_at):
        return super().rotated(q / q.norm(dim=-1, keepdim=True), k / k.norm(dim=-1, keepdim=True), q_at, k_at)


class BothWays(Causal):
    def visible(self, q_at, k_at, q_documents, k_documents):
        if q_documents is None:
            return torch.ones(len(q_at), 1, q_at.shape[1], k_at.shape[1]).bool()
        return ((q_documents[:, :, None] == k_documents[:, None]) & (k_documents[:, None] >= 0))[:, None]


class T5Attention(Causal):
    def __init__(self):
        self.table = T5Bias()

    def scale(self, d):
        return 1.0

    def rotated(self, q, k, q_at, k_at):
        return q, k

    def bias(self, q_at, k_at, n):
        return self.table(q_at, k_at)


class In16Bits(Causal):
    """Tokens are cast before all else, as fused kernels need them."""

    dtype = torch.bfloat16

    def __call__(self, q, k, v, *positions, **documents):
        return super().__call__(*(x.to(self.dtype) for x in (q, k, v)), *positions, **documents)


class HeadsLast(Causal):
    """A result that is a view of [b, t, h, d]."""

    def __call__(self, *arguments, **documents):
        return super().__call__(*arguments, **documents).transpose(1, 2).contiguous().transpose(1, 2)


USUAL = "softmax scale 1/√d; bias: the same bias at every distance"
LLAMA = "half layout, base 10 000"
HEADS = {"n_heads": 4, "n_kv_heads": 2, "width": 64}
ROTATIONS = [
    *((f"width {d}", Rope, "matches Llama 1 and 2", {"width": d}) for d in (4, 6, 10, 40, 72, 80, 96, 112)),
    ("width 2", Rope, "one pair, whose frequency is 1 for every base", {"width": 2}),
    ("complex", Complex, "interleaved layout, base 10 000", {}),
    ("matrices", Matrices, LLAMA, {"width": 16}),
    ("tokens before heads", TokensBeforeHeads, LLAMA, {}),
    ("columns", Columns, LLAMA, {}),
    ("lazy", Lazy, LLAMA, {}),
    ("of a global", lambda: of_a_global, LLAMA, {}),
    ("in a module", InModule, LLAMA, {}),
    ("one row", lambda: one_row, "matches Llama 1 and 2; called row by row", {}),
    ("five heads", Rope, LLAMA, {"n_heads": 5}),
    ("giving float16", giving(torch.float16, Rope), "matches Llama 1 and 2; results in float16", {}),
    ("giving bfloat16", giving(torch.bfloat16, Rope), "matches Llama 1 and 2; results in bfloat16", {}),
]
EMBEDDINGS = [("sinusoid giving bfloat16", giving(torch.bfloat16, ExactSinusoid), "results in bfloat16", {})]
TABLES_OF = [
    ("complex table", lambda: complex_table, "Base 500 000", {}),
    ("table of pairs", lambda: pairs_table, "Base 10 000", {}),
    ("table by torch.outer", lambda: outer_table, "Base 12 345", {}),
    ("table of the first row", lambda: table_of_first_row, "Base 10 000", {}),
    ("narrow table", lambda: narrow_table, "Every number is exactly a bfloat16 number", {}),
]
LINEAR = [
    *((f"alibi by {fill:g}", with_(Masked, fill=fill), "matches ALiBi", {}) for fill in (-math.inf, -1e9, LOWEST, -1e4)),
    *(
        (f"alibi, window {size} by {fill:g}", with_(Masked, fill=fill, window=size), f"2021; a window of {size} keys", {})
        for size, fill in ((2, -1e9), (4, -math.inf), (16, -1e9), (100, LOWEST))
    ),
    ("alibi, window 1000", with_(Masked, window=1000), "matches ALiBi", {}),
    ("alibi of one row", OfOneRow, "matches ALiBi", {}),
    ("alibi giving bfloat16", giving(torch.bfloat16, Alibi), "matches ALiBi", {}),
    ("alibi giving float16", giving(torch.float16, Alibi), "matches ALiBi", {}),
]
ATTENTIONS = [
    *((f"window {n}", with_(Window, window=n), f"{USUAL}; a window of {n} keys", {}) for n in (2, 3, 8, 16, 23, 24, 64)),
    *((f"causal by {fill:g}", with_(Window, window=10**9, fill=fill), USUAL, {}) for fill in (-1e9, -1e4, LOWEST)),
    *((f"window by {fill:g}", with_(Window, fill=fill), f"{USUAL}; a window of 16 keys", {}) for fill in (-1e4, LOWEST)),
    *((f"added by {fill:g}", with_(AddedMask, fill=fill), f"{USUAL}; a window of 16 keys", {}) for fill in (-1e9, LOWEST)),
    ("window 512", with_(Window, window=512), USUAL, {}),
    ("fused", with_(Fused, window=10**9), USUAL, {}),
    ("fused window", Fused, f"{USUAL}; a window of 16 keys", {}),
    ("window of each head", WindowOfEachHead, f"{USUAL}; a window of 4, 8, 16, all keys", {}),
    ("window with alibi", WindowAlibi, "matches ALiBi, Press et al. 2021; a window of 8 keys", {}),
    ("chunks", Chunks, "how many keys a query sees depends on where it is", {"without": ["shift_invariant"]}),
    ("sinks", Sinks, f"{USUAL}; sinks of 0.5, -1, 2, 0", {}),
    ("sinks and window", with_(Sinks, window=8), f"{USUAL}; a window of 8 keys; sinks of 0.5, -1, 2, 0", {}),
    ("softmax with one more", with_(Sinks, sinks=(0.0,) * 4), f"{USUAL}; sinks of 0, 0, 0, 0", {}),
    ("capped at 50", Capped, "softmax scale 1/√d, logits capped at 50", {}),
    ("capped at 5", with_(Capped, cap=5.0), "softmax scale 1/√d, logits capped at 5", {}),
    ("normalised heads", NormalisedHeads, "queries or keys are normalised", {}),
    ("no zeros", NoZeros, "tokens of zeros give NaN", {}),
    ("both ways", BothWays, USUAL, {"without": ["causal"]}),
    ("t5 attention", T5Attention, "softmax scale none; bias: buckets; matches T5, 32 buckets, max_distance 128", {}),
    ("one key head", Causal, USUAL, {"n_kv_heads": 1}),
    ("attention of width 10", Causal, USUAL, {"width": 10}),
    ("alibi of 16 heads", CausalAlibi, "matches ALiBi", {"n_heads": 16, "n_kv_heads": 16}),
    ("in bfloat16", In16Bits, f"{USUAL}; results in bfloat16", {}),
    ("attention giving float16", giving(torch.float16, CausalAlibi), "matches ALiBi", {}),
    ("attention giving bfloat16", giving(torch.bfloat16, CausalAlibi), "matches ALiBi", {}),
    ("heads last", HeadsLast, USUAL, {}),
]
PASSED = {"rotate": ROTATIONS, "embed": EMBEDDINGS, "table": TABLES_OF, "bias": LINEAR, "attention": ATTENTIONS}
# Lawful, with a number of which a check does not know whether it is meant.
LAWFUL = {
    "rotate": [
        *(
            (f"base {told}", with_(Rope, base=base), f"half layout, base {told}, angles in float32", {})
            for base, told in ((12345.0, "12 345"), (74966.0, "74 966"), (10001.0, "10 001"), (3141.59, "3 141.59"))
        ),
        ("interleaved", with_(Interleaved, base=74966.0), "interleaved layout, base 74 966", {"width": 72}),
    ],
    "embed": [("sinusoid of base 12345", with_(ExactSinusoid, base=12345.0), "Base 12 345", {})],
    "bias": [
        ("mask of bools", lambda: mask_of_bools, "the same bias at every distance; a window of 5 keys", {}),
        *(
            (f"{n} buckets", with_(Buckets, n=n, most=most, both=both), f"T5, {n} buckets, max_distance {most}", {})
            for n, most, both in ((48, 100, True), (16, 64, False), (40, 200, True), (64, 512, True), (128, 1000, False))
        ),
    ],
    "attention": [("window 1", with_(Window, window=1), "a token sees itself and nothing else", {})],
}
# name -> (seam, make, how it is checked, the verdict, a part of the sentence)
VARIED = {
    name: (seam, make, (HEADS if seam == "attention" else {}) | options, verdict, told)
    for verdict, seams in (("passed", PASSED), ("unusual", LAWFUL))
    for seam, cases in seams.items()
    for name, make, told, options in cases
}
