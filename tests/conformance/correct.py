"""Implementations as libraries write them, correct: posenc.check must pass all of them. They import nothing of posenc.

Legend: b batch, h heads, t tokens, i query, j key, d channels.
"""

import math
import threading

import numpy as np
import torch
from torch import nn


class Rope:
    """Half-split rotation in float32, without state."""

    base = 10000.0
    sign = 1

    def frequencies(self, d):
        return self.base ** (-torch.arange(0, d, 2, dtype=torch.float32) / d)

    def positions(self, x, positions):
        return positions.float()

    def angles(self, x, positions):
        with torch.autocast("cpu", enabled=False):
            return self.positions(x, positions)[:, None, :, None] * self.frequencies(x.shape[-1])

    def pair(self, x):
        first, second = x.chunk(2, -1)
        return first, second

    def join(self, first, second):
        return torch.cat([first, second], -1)

    def turn(self, x, cos, sin):
        first, second = self.pair(x)
        sin = self.sign * sin
        return self.join(first * cos - second * sin, second * cos + first * sin).to(x.dtype)

    def __call__(self, x, positions):
        angles = self.angles(x, positions)
        return self.turn(x, angles.cos(), angles.sin())


class Interleaved(Rope):
    """Neighbouring channels turn together."""

    def pair(self, x):
        return x[..., 0::2], x[..., 1::2]

    def join(self, first, second):
        return torch.stack([first, second], -1).flatten(-2)


class Partial(Rope):
    """The first quarter of the channels turns."""

    def __call__(self, x, positions):
        n = x.shape[-1] // 4
        return torch.cat([super().__call__(x[..., :n], positions), x[..., n:]], -1)


class Growing(Rope):
    """A table of cosines and sines that grows, published at once."""

    def __init__(self):
        self.table = torch.empty(0)

    def rows(self, x, positions):
        need = int(positions.max()) + 1
        table = self.table
        if len(table) < need:
            with torch.inference_mode(False):
                angles = torch.arange(need, dtype=torch.float32)[:, None] * self.frequencies(x.shape[-1])
                self.table = table = torch.cat([angles.cos(), angles.sin()], -1)
        return table[positions.long()][:, None]

    def __call__(self, x, positions):
        cos, sin = self.rows(x, positions).chunk(2, -1)
        return self.turn(x, cos, sin)


class Limited(Growing):
    """A table of 4096 positions; others are refused by indexing."""

    def __init__(self, d=64):
        angles = torch.arange(4096, dtype=torch.float32)[:, None] * self.frequencies(d)
        self.table = torch.cat([angles.cos(), angles.sin()], -1)

    def rows(self, x, positions):
        return self.table[positions.long()][:, None]


class Float32Inside(Rope):
    """Whatever the tokens are, the rotation is computed in float32."""

    base = 500000.0

    def pair(self, x):
        return super().pair(x.float())


class PartialInFloat32(Partial):
    """The same for the channels that turn; the others pass as they are."""

    base = 1e6

    def pair(self, x):
        return super().pair(x.float())


def numpy_rope(x, positions):
    """Half-split, in NumPy and float64."""
    d = x.shape[-1]
    angles = positions[:, None, :, None] * 10000.0 ** (-np.arange(0, d, 2) / d)
    first, second = np.split(x, 2, -1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], -1).astype(x.dtype)


class Sinusoid:
    """Alternating sines and cosines, added to the tokens."""

    base = 10000.0
    offset = 0

    def positions(self, x, positions):
        return positions.float()

    def table(self, x, positions):
        d = x.shape[-1]
        with torch.autocast("cpu", enabled=False):
            frequencies = torch.exp(torch.arange(0, d, 2, dtype=torch.float32) * (-math.log(self.base) / d))
            angles = (self.positions(x, positions) + self.offset)[..., None] * frequencies
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)

    def __call__(self, x, positions):
        return (x + self.table(x, positions)).to(x.dtype)


class LearnedRows(nn.Module):
    """A learned table of 512 rows, zeros where it began."""

    def __init__(self, d=64):
        super().__init__()
        self.rows = nn.Embedding(512, d)
        nn.init.normal_(self.rows.weight, generator=torch.Generator().manual_seed(0))

    def forward(self, x, positions):
        return x + self.rows(positions.long()).to(x.dtype)


def sinusoid_rows(positions):
    """The table of a sinusoid: no tokens."""
    return Sinusoid().table(torch.zeros(1, 1, 64), positions)


def slopes_of(n):
    power = 2 ** math.floor(math.log2(n))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    return slopes + [2 ** (-4 * (2 * i + 1) / power) for i in range(n - power)]


class Alibi:
    """-slope·distance, every pair."""

    n = 6

    def slopes(self):
        return torch.tensor(slopes_of(self.n), dtype=torch.float32)

    def distance(self, q, k):
        return (q[:, :, None] - k[:, None]).abs().float()

    def __call__(self, q, k):
        return -self.slopes()[:, None, None] * self.distance(q, k)[:, None]


class KeyAlibi(Alibi):
    """slope·position of the key, as in BLOOM, behind a causal mask."""

    def __call__(self, q, k):
        bias = self.slopes()[:, None, None] * k[:, None, None].float()
        hidden = k[:, None, None] > q[:, None, :, None]
        return bias.expand(-1, -1, q.shape[1], -1).masked_fill(hidden, float("-inf"))


class T5Bias(nn.Module):
    """T5's bias: 32 buckets up to 128, one way or both."""

    def __init__(self, bidirectional=False):
        super().__init__()
        self.bidirectional, self.n_buckets, self.farthest = bidirectional, 32, 128
        self.table = nn.Embedding(32, 4)
        nn.init.normal_(self.table.weight, generator=torch.Generator().manual_seed(1))

    def relative(self, q, k):
        return k[:, None] - q[:, :, None]

    def bucket(self, relative):
        buckets, n = torch.zeros_like(relative), self.n_buckets
        if self.bidirectional:
            n //= 2
            buckets += (relative > 0) * n
            distance = relative.abs()
        else:
            distance = -relative.clamp(max=0)
        exact = n // 2
        far = exact + (
            torch.log(distance.clamp(min=1).double() / exact) / math.log(self.farthest / exact) * (n - exact) + 1e-9
        ).long().clamp(max=n - exact - 1)
        return buckets + torch.where(distance < exact, distance, far)

    def forward(self, q, k):
        return self.table(self.bucket(self.relative(q, k))).permute(0, 3, 1, 2)


class Causal:
    """Attention with a rotation, grouped heads and documents, written out."""

    rope = Rope()

    def scale(self, d):
        return d**-0.5

    def group(self, x, n):
        return x.repeat_interleave(n // x.shape[1], 1)

    def visible(self, q_at, k_at, q_documents, k_documents):
        seen = k_at[:, None] <= q_at[:, :, None]
        if q_documents is not None:
            seen &= (q_documents[:, :, None] == k_documents[:, None]) & (k_documents[:, None] >= 0)
        return seen[:, None]

    def weights(self, logits, seen):
        return logits.masked_fill(~seen, torch.finfo(logits.dtype).min).softmax(-1)

    def bias(self, q_at, k_at, n):
        return 0.0

    def rotated(self, q, k, q_at, k_at):
        return self.rope(q, q_at), self.rope(k, k_at)

    def __call__(self, q, k, v, q_positions, k_positions, q_documents=None, k_documents=None):
        q, k = self.rotated(q, k, q_positions, k_positions)
        k, v = self.group(k, q.shape[1]), self.group(v, q.shape[1])
        logits = q @ k.transpose(-1, -2) * self.scale(q.shape[-1]) + self.bias(q_positions, k_positions, q.shape[1])
        return self.weights(logits, self.visible(q_positions, k_positions, q_documents, k_documents)) @ v


class Float32Softmax(Causal):
    """The softmax alone is computed in float32."""

    def weights(self, logits, seen):
        return super().weights(logits.float(), seen).to(logits.dtype)


class CausalAlibi(Causal):
    """Attention with linear biases."""

    def rotated(self, q, k, q_at, k_at):
        return q, k

    def bias(self, q_at, k_at, n):
        slopes = torch.tensor(slopes_of(n), dtype=torch.float32)
        return -slopes[:, None, None] * (q_at[:, None, :, None] - k_at[:, None, None]).abs().float()


def fused(q, k, v, q_positions, k_positions):
    """torch's fused attention over rotated tokens, with a mask from positions."""
    rope, n = Rope(), q.shape[1] // k.shape[1]
    seen = k_positions[:, None, None] <= q_positions[:, None, :, None]
    k, v = (x.repeat_interleave(n, 1) for x in (rope(k, k_positions), v))
    return nn.functional.scaled_dot_product_attention(rope(q, q_positions), k, v, attn_mask=seen)


class Locked(Growing):
    """The growing table behind a lock."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def __deepcopy__(self, memo):
        return Locked()

    def rows(self, x, positions):
        with self.lock:
            return super().rows(x, positions)


HALF = {"layout": "half", "base": 10000.0, "sign": "positive"}
CORRECT = {
    "rope": ("rotate", Rope, HALF),
    "interleaved": ("rotate", Interleaved, {**HALF, "layout": "interleaved"}),
    "partial": ("rotate", Partial, {**HALF, "rotary_dim": 16}),
    "float32 inside": ("rotate", Float32Inside, {**HALF, "base": 500000.0}),
    "partial in float32": ("rotate", PartialInFloat32, {**HALF, "base": 1e6, "rotary_dim": 16}),
    "growing": ("rotate", Growing, HALF),
    "limited": ("rotate", Limited, HALF),
    "locked": ("rotate", Locked, HALF),
    "numpy": ("rotate", lambda: numpy_rope, HALF),
    "sinusoid": ("embed", Sinusoid, {"base": 10000.0, "offset": 0, "layout": "interleaved"}),
    "learned": ("embed", LearnedRows, {}),
    "table": ("table", lambda: sinusoid_rows, {"base": 10000.0, "layout": "interleaved"}),
    "alibi": ("bias", Alibi, {"kind": "linear", "slopes": slopes_of(6)}),
    "key alibi": ("bias", KeyAlibi, {"kind": "linear", "slopes": slopes_of(6)}),
    "t5": ("bias", T5Bias, {"n_buckets": 32, "max_distance": 128, "bidirectional": False}),
    "t5 both ways": ("bias", lambda: T5Bias(True), {"n_buckets": 32, "max_distance": 128, "bidirectional": True}),
    "attention": ("attention", Causal, {"softmax_scale": 0.125}),
    "float32 softmax": ("attention", Float32Softmax, {"softmax_scale": 0.125}),
    "attention with alibi": ("attention", CausalAlibi, {"softmax_scale": 0.125, "slopes": slopes_of(4)}),
    "fused attention": ("attention", lambda: fused, {"softmax_scale": 0.125}),
}


def sizes(seam):
    """How attention is checked: grouped heads."""
    return {"n_heads": 4, "n_kv_heads": 2, "width": 64} if seam == "attention" else {}
