"""Correct implementations with one bug each, over all seams, which posenc.check must catch: by a law or by identification.

Each mutant has the correct implementation's expectation: an identification that differs from it catches the mutant.
"""

import math

import torch
from torch import nn

from conformance.correct import (
    CORRECT,
    Alibi,
    Causal,
    CausalAlibi,
    Growing,
    Interleaved,
    KeyAlibi,
    LearnedRows,
    Limited,
    Partial,
    Rope,
    Sinusoid,
    T5Bias,
    numpy_rope,
    slopes_of,
)

# Rotation ---------------------------------------------------------------------------------------------------------------


class OtherSign(Rope):
    sign = -1


class OtherBase(Rope):
    base = 500000.0


class OtherLayout(Interleaved):
    pass


class ExponentOverHalf(Rope):
    def frequencies(self, d):
        return self.base ** (-torch.arange(0, d, 2, dtype=torch.float32) / (d // 2))


class ExponentOverHead(Partial):
    def frequencies(self, d):
        return super().frequencies(4 * d)[: d // 2]


class StartsAtOne(Rope):
    def positions(self, x, positions):
        return positions.float() + 1


class Bfloat16Positions(Rope):
    def positions(self, x, positions):
        return positions.bfloat16().float()


class Float16Positions(Rope):
    def positions(self, x, positions):
        return positions.half().float()


class Bfloat16Frequencies(Rope):
    def angles(self, x, positions):
        return (positions[:, None, :, None].bfloat16() * self.frequencies(x.shape[-1]).bfloat16()).float()


class PositionsInTokenDtype(Rope):
    def positions(self, x, positions):
        return positions.to(x.dtype).float()


class IndexForPosition(Rope):
    def positions(self, x, positions):
        return torch.arange(x.shape[2]).expand(x.shape[0], -1).float()


class FirstRowForAll(Rope):
    def positions(self, x, positions):
        return positions[:1].float()


class FirstPositionAndOn(Rope):
    def positions(self, x, positions):
        return (positions[:, :1] + torch.arange(x.shape[2])).float()


class OffsetOverRows(Rope):
    """Per-row offsets broadcast along the tokens where both have one size."""

    def positions(self, x, positions):
        if x.shape[0] == x.shape[2]:
            return positions.T.float()
        return positions.float()


class TurnsHeads(Rope):
    """Reads [b, h, t, d] as [b, t, h, d] where tokens are as many as heads."""

    def angles(self, x, positions):
        angles = super().angles(x, positions)
        return angles.transpose(1, 2) if x.shape[1] == x.shape[2] else angles


class DynamicByLongest(Rope):
    """Dynamic NTK by the largest position of the call."""

    def angles(self, x, positions):
        longest = int(positions.max()) + 1
        base = self.base * max(longest / 512, 1.0) ** (x.shape[-1] / (x.shape[-1] - 2))
        frequencies = base ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float32) / x.shape[-1])
        return positions[:, None, :, None].float() * frequencies


class NeverResets(Rope):
    """Dynamic NTK that keeps the frequencies of the longest sequence so far."""

    longest = 512

    def angles(self, x, positions):
        self.longest = max(self.longest, int(positions.max()) + 1)
        frequencies = (self.base * self.longest / 512) ** (-torch.arange(0, x.shape[-1], 2).float() / x.shape[-1])
        return positions[:, None, :, None].float() * frequencies


class KeyWithoutOffset(Rope):
    """A cache keyed by the length alone."""

    def __init__(self):
        self.cache = {}

    def angles(self, x, positions):
        key = (x.shape[0], x.shape[2])
        if key not in self.cache:
            self.cache[key] = super().angles(x, positions)
        return self.cache[key]


class KeyWithoutDtype(Growing):
    """A cache of cosines and sines in the dtype of the first tokens."""

    def __init__(self):
        self.cache = {}

    def rows(self, x, positions):
        key = tuple(positions.flatten().tolist())
        if key not in self.cache:
            angles = positions[..., None].float() * self.frequencies(x.shape[-1])
            self.cache[key] = torch.cat([angles.cos(), angles.sin()], -1).to(x.dtype)
        return self.cache[key][:, None].float()


class CachedInInferenceMode(Growing):
    """A cache whose cosines and sines inference mode may fill."""

    def __init__(self):
        self.cache = {}

    def rows(self, x, positions):
        key = tuple(positions.flatten().tolist())
        if key not in self.cache:
            angles = positions[:, None, :, None].float() * self.frequencies(x.shape[-1])
            self.cache[key] = torch.cat([angles.cos(), angles.sin()], -1)
        return self.cache[key]


class LengthsNotKept(Rope):
    def turn(self, x, cos, sin):
        return super().turn(x, cos, sin) * (1 + 0.001 * sin.mean(-1, keepdim=True))


class CosOfCos(Rope):
    def __call__(self, x, positions):
        angles = self.angles(x, positions).cos()
        return self.turn(x, angles.cos(), angles.sin())


class SinHalved(Rope):
    def turn(self, x, cos, sin):
        return super().turn(x, cos, sin / 2)


class RunsIntoPassThrough(Partial):
    """The channels that should not turn are scaled."""

    def __call__(self, x, positions):
        out = super().__call__(x, positions)
        out[..., -1] = out[..., -1] * 1.5
        return out


class InPlace(Rope):
    def __call__(self, x, positions):
        return x.detach().copy_(super().__call__(x, positions))


class NoGradient(Rope):
    def __call__(self, x, positions):
        with torch.no_grad():
            return super().__call__(x, positions)


class HalfGradient(Rope):
    def turn(self, x, cos, sin):
        first, second = self.pair(x)
        return self.join(first * cos - second.detach() * sin, second * cos + first.detach() * sin).to(x.dtype)


class RotatesIn16Bits(Rope):
    """Angles in the dtype of the tokens: bfloat16 tokens get bfloat16 angles."""

    def angles(self, x, positions):
        return positions[:, None, :, None].to(x.dtype) * self.frequencies(x.shape[-1]).to(x.dtype)


class AutocastMatmul(Rope):
    def angles(self, x, positions):
        return (positions.float()[:, :, None] @ self.frequencies(x.shape[-1])[None, None])[:, None]


class DefaultDtype(Rope):
    def frequencies(self, d):
        return self.base ** (-torch.arange(0, d, 2) / d)

    def positions(self, x, positions):
        return positions.to(torch.get_default_dtype())


class IgnoresStrides(Rope):
    def __call__(self, x, positions):
        if x.is_contiguous():
            return super().__call__(x, positions)
        storage = torch.as_strided(x, x.shape, torch.empty(x.shape).stride())
        return super().__call__(storage, positions)


class RowsModulo(Growing):
    """Positions beyond the table are read modulo its size."""

    def rows(self, x, positions):
        return super().rows(x, positions % 2048)


class LastRowForAllBeyond(Limited):
    def rows(self, x, positions):
        return super().rows(x, positions.clamp(max=4095))


class LongerThanItsTable(Limited):
    """The table is made in the range that was asked for first."""

    def __init__(self):
        self.table = None

    def rows(self, x, positions):
        if self.table is None or len(self.table) < x.shape[2]:  # checks the length, not the position
            angles = torch.arange(max(x.shape[2], 16), dtype=torch.float32)[:, None] * self.frequencies(x.shape[-1])
            self.table = torch.cat([angles.cos(), angles.sin()], -1)
        return self.table[positions.long().clamp(max=len(self.table) - 1)][:, None]


class SharedBetweenThreads(Rope):
    """Leaves its angles on itself between two lines."""

    def __call__(self, x, positions):
        self.now = self.angles(x, positions)
        cos = self.now.cos()
        return self.turn(x, cos, self.now.sin())


class GrowsInPieces(Growing):
    """Publishes the size before the table."""

    size = 0

    def rows(self, x, positions):
        need = int(positions.max()) + 1
        if self.size < need:
            self.size = need
            angles = torch.arange(need, dtype=torch.float32)[:, None] * self.frequencies(x.shape[-1])
            self.table = torch.cat([angles.cos(), angles.sin()], -1)
        return self.table[positions.long().clamp(max=len(self.table) - 1)][:, None]


class FrequenciesAsBuffer(nn.Module):
    """Frequencies in a buffer, which .to(bfloat16) rounds."""

    def __init__(self, d=64):
        super().__init__()
        self.register_buffer("frequencies", 10000.0 ** (-torch.arange(0, d, 2).float() / d), persistent=False)

    def forward(self, x, positions):
        angles = positions[:, None, :, None].float() * self.frequencies.float()
        return Rope().turn(x, angles.cos(), angles.sin())


class TrainableFrequencies(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.frequencies = nn.Parameter(10000.0 ** (-torch.arange(0, d, 2).float() / d))

    def forward(self, x, positions):
        angles = positions[:, None, :, None].float() * self.frequencies
        return Rope().turn(x, angles.cos(), angles.sin())


def transposed_numpy(x, positions):
    """Positions reversed: NumPy, a slice the wrong way."""
    return numpy_rope(x, positions[:, ::-1])


class LinearForgotten(Rope):
    """The scaling of the configuration is dropped: expected linear by 4."""


# Embeddings and tables ---------------------------------------------------------------------------------------------------


class CosineFirst(Sinusoid):
    def table(self, x, positions):
        return super().table(x, positions).unflatten(-1, (-1, 2)).flip(-1).flatten(-2)


class RowsPlusTwo(Sinusoid):
    offset = 2


class ExponentByChannel(Sinusoid):
    def table(self, x, positions):
        d = x.shape[-1]
        index = torch.arange(d, dtype=torch.float32)
        angles = positions.float()[..., None] * self.base ** (-index / d)
        return torch.where(index % 2 == 0, angles.sin(), angles.cos())


class EmbedsByIndex(Sinusoid):
    def positions(self, x, positions):
        return torch.arange(x.shape[1])[None].expand(x.shape[0], -1).float()


class EmbedsBfloat16(Sinusoid):
    def positions(self, x, positions):
        return positions.bfloat16().float()


class PaddingShifts(Sinusoid):
    """Positions counted from the first row's first position: left padding shifts all rows."""

    def positions(self, x, positions):
        return (positions - positions[:1, :1]).float()


class SmearsTokens(Sinusoid):
    def __call__(self, x, positions):
        return super().__call__(x, positions) + 0.1 * x.mean(1, keepdim=True)


class ClampsRows(LearnedRows):
    def forward(self, x, positions):
        return super().forward(x, positions.clamp(max=63))


class TrainedSinusoid(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(512, 64)
        self.rows.weight.data = Sinusoid().table(torch.zeros(1, 1, 64), torch.arange(512)[None])[0]

    def forward(self, x, positions):
        return x + self.rows(positions.long())


class TableNotRestored(nn.Module):
    """A table in a buffer that no state dict holds."""

    def __init__(self):
        super().__init__()
        rows = Sinusoid().table(torch.zeros(1, 1, 64), torch.arange(512)[None])[0]
        self.register_buffer("rows", rows, persistent=False)

    def forward(self, x, positions):
        return x + self.rows[positions.long()]


def table_by_length(positions):
    return Sinusoid().table(torch.zeros(1, 1, 64), torch.arange(positions.shape[1])[None]).expand(len(positions), -1, -1)


# Biases ------------------------------------------------------------------------------------------------------------------


class RewardsDistance(Alibi):
    def __call__(self, q, k):
        return -super().__call__(q, k)


class SlopesOffByOne(Alibi):
    def slopes(self):
        return torch.tensor([2.0 ** (-8 * i / self.n) for i in range(self.n)])


class SlopesSorted(Alibi):
    def slopes(self):
        return torch.tensor(sorted(slopes_of(self.n), reverse=True))


class SlopesOfOtherHeads(Alibi):
    def slopes(self):
        return torch.tensor(slopes_of(2 * self.n)[: self.n])


class NoPowerOfTwo(Alibi):
    def slopes(self):
        return torch.tensor([2.0 ** (-8 * (i + 1) / self.n) for i in range(self.n)])


class BiasInBfloat16(Alibi):
    def distance(self, q, k):
        return (q[:, :, None] - k[:, None]).abs().bfloat16().float()


class BiasByLengths(Alibi):
    """Distances of indices: decoding has distance 0 to all."""

    def distance(self, q, k):
        i, j = torch.arange(q.shape[1]), torch.arange(k.shape[1])
        return (i[:, None] - j).abs().float().expand(len(q), -1, -1)


class BiasCachedBySize(Alibi):
    def __init__(self):
        self.cache = {}

    def __call__(self, q, k):
        key = (q.shape, k.shape)
        if key not in self.cache:
            self.cache[key] = super().__call__(q, k)
        return self.cache[key]


class BiasSliced(Alibi):
    """A bias cached for a longer call is sliced from the wrong corner."""

    long = None

    def __call__(self, q, k):
        if self.long is None or self.long.shape[-1] < k.shape[1]:
            self.long = super().__call__(k, k)
        return self.long[:, :, : q.shape[1], : k.shape[1]]


class HidesFromTheCorner(KeyAlibi):
    """The causal mask is aligned to the first key."""

    def __call__(self, q, k):
        bias = (self.slopes()[:, None, None] * k[:, None, None].float()).expand(-1, -1, q.shape[1], -1)
        hidden = torch.ones(q.shape[1], k.shape[1]).triu(1).bool()
        return bias.masked_fill(hidden, float("-inf"))


class BucketsOffByOne(T5Bias):
    def bucket(self, relative):
        return super().bucket(relative - 1)


class BucketsOfOtherDistance(T5Bias):
    def __init__(self):
        super().__init__()
        self.farthest = 64


class BucketsFloor(T5Bias):
    """Both ways; a logarithm one unit low: boundaries at powers of two fall into the bucket before."""

    def __init__(self):
        super().__init__(True)

    def bucket(self, relative):
        distance, exact = relative.abs(), 8
        log = torch.log(distance.clamp(min=1).double() / exact) / math.log(self.farthest / exact) * exact
        far = exact + (log - 1e-6).long().clamp(min=0, max=exact - 1)
        return (relative > 0) * 16 + torch.where(distance < exact, distance, far)


class DirectionLost(T5Bias):
    """Both ways expected; the sign of the distance is dropped."""

    def __init__(self):
        super().__init__(True)

    def relative(self, q, k):
        return -super().relative(q, k).abs()


class QueryOffsetLost(T5Bias):
    def relative(self, q, k):
        q = torch.arange(q.shape[1])[None].expand(len(q), -1)
        return super().relative(q, k)


# Attention ---------------------------------------------------------------------------------------------------------------


class TopLeftMask(Causal):
    """torch's is_causal over fewer queries than keys."""

    def visible(self, q_at, k_at, q_documents, k_documents):
        mask = torch.ones(q_at.shape[1], k_at.shape[1]).tril().bool()[None]
        own = super().visible(q_at, k_at, q_documents, k_documents)[:, 0]
        return (mask & own if q_documents is not None else mask)[:, None]


class NoMask(Causal):
    def visible(self, q_at, k_at, q_documents, k_documents):
        return torch.ones(len(q_at), 1, q_at.shape[1], k_at.shape[1]).bool()


class SeesOneAhead(Causal):
    def visible(self, q_at, k_at, q_documents, k_documents):
        return super().visible(q_at + 1, k_at, q_documents, k_documents)


class NotItself(Causal):
    """Sees strictly earlier keys, and itself only at the beginning."""

    def visible(self, q_at, k_at, q_documents, k_documents):
        return super().visible((q_at - 1).clamp(min=0), k_at, q_documents, k_documents)


class MasksByStorage(Causal):
    """Causality by the index of the key, with the last query at the last key."""

    def visible(self, q_at, k_at, q_documents, k_documents):
        i = torch.arange(k_at.shape[1] - q_at.shape[1], k_at.shape[1])
        return (torch.arange(k_at.shape[1]) <= i[:, None])[None, None]


class DocumentsSeeEachOther(Causal):
    def visible(self, q_at, k_at, q_documents, k_documents):
        return super().visible(q_at, k_at, None, None)


class PaddingIsSeen(Causal):
    def visible(self, q_at, k_at, q_documents, k_documents):
        if q_documents is not None:
            k_documents = k_documents.clamp(min=0)
            q_documents = q_documents.clamp(min=0)
        return super().visible(q_at, k_at, q_documents, k_documents)


class PaddedRowsAreNan(Causal):
    def weights(self, logits, seen):
        return logits.masked_fill(~seen, float("-inf")).softmax(-1)


class ScaledTwice(Causal):
    def scale(self, d):
        return 1.0 / d


class NotScaled(Causal):
    def scale(self, d):
        return 1.0


class HeadsInTurns(Causal):
    """Key heads are repeated in turns, not in groups."""

    def group(self, x, n):
        return x.repeat(1, n // x.shape[1], 1, 1)


class OnlyQueriesTurn(Causal):
    def rotated(self, q, k, q_at, k_at):
        return self.rope(q, q_at), k


class DecodesAtZero(Causal):
    """A single query is rotated as if it were the first token."""

    def rotated(self, q, k, q_at, k_at):
        return self.rope(q, q_at if q.shape[2] > 1 else torch.zeros_like(q_at)), self.rope(k, k_at)


class KeysCountedFromZero(Causal):
    def rotated(self, q, k, q_at, k_at):
        return self.rope(q, q_at), self.rope(k, torch.arange(k.shape[2])[None].expand(len(k), -1))


class BiasScaledToo(CausalAlibi):
    """The bias is added before the scale."""

    def bias(self, q_at, k_at, n):
        return super().bias(q_at, k_at, n) * self.scale(64)


class BiasLostInDecode(CausalAlibi):
    def bias(self, q_at, k_at, n):
        return super().bias(q_at, k_at, n) if q_at.shape[1] > 1 else 0.0


class SoftmaxOverQueries(Causal):
    def weights(self, logits, seen):
        return logits.masked_fill(~seen, torch.finfo(logits.dtype).min).softmax(-2)


LINEAR = {"layout": "half", "base": 10000.0, "scaling": "linear, factor 4"}
ROTATE = {
    "growing": (CachedInInferenceMode, GrowsInPieces, RowsModulo, KeyWithoutDtype),
    "interleaved": (),
    "limited": (LastRowForAllBeyond, LongerThanItsTable),
    "numpy": (lambda: transposed_numpy,),
    "partial": (ExponentOverHead, RunsIntoPassThrough),
    "rope": (
        OtherSign,
        OtherBase,
        OtherLayout,
        ExponentOverHalf,
        StartsAtOne,
        Bfloat16Positions,
        Float16Positions,
        Bfloat16Frequencies,
        PositionsInTokenDtype,
        IndexForPosition,
        FirstRowForAll,
        FirstPositionAndOn,
        OffsetOverRows,
        TurnsHeads,
        DynamicByLongest,
        NeverResets,
        KeyWithoutOffset,
        LengthsNotKept,
        CosOfCos,
        SinHalved,
        InPlace,
        NoGradient,
        HalfGradient,
        RotatesIn16Bits,
        AutocastMatmul,
        DefaultDtype,
        IgnoresStrides,
        SharedBetweenThreads,
        FrequenciesAsBuffer,
        TrainableFrequencies,
    ),
}
OTHERS = {
    "sinusoid": (
        CosineFirst,
        RowsPlusTwo,
        ExponentByChannel,
        EmbedsByIndex,
        EmbedsBfloat16,
        PaddingShifts,
        SmearsTokens,
        TrainedSinusoid,
        TableNotRestored,
    ),
    "learned": (ClampsRows,),
    "table": (lambda: table_by_length,),
    "alibi": (
        RewardsDistance,
        SlopesOffByOne,
        SlopesSorted,
        SlopesOfOtherHeads,
        NoPowerOfTwo,
        BiasInBfloat16,
        BiasByLengths,
        BiasCachedBySize,
        BiasSliced,
    ),
    "key alibi": (HidesFromTheCorner,),
    "t5": (BucketsOffByOne, BucketsOfOtherDistance, QueryOffsetLost),
    "t5 both ways": (DirectionLost, BucketsFloor),
    "attention": (
        TopLeftMask,
        NoMask,
        SeesOneAhead,
        NotItself,
        MasksByStorage,
        DocumentsSeeEachOther,
        PaddingIsSeen,
        PaddedRowsAreNan,
        ScaledTwice,
        NotScaled,
        HeadsInTurns,
        OnlyQueriesTurn,
        DecodesAtZero,
        KeysCountedFromZero,
        SoftmaxOverQueries,
    ),
    "attention with alibi": (BiasScaledToo, BiasLostInDecode),
}
NAMES = {transposed_numpy: "transposed_numpy", table_by_length: "table_by_length"}


def _name(make):
    return make.__name__ if isinstance(make, type) else make().__name__


# name -> (seam, make, what the correct implementation is identified as)
MUTANTS = {
    _name(make): (CORRECT[correct][0], make, CORRECT[correct][2])
    for correct, makes in (ROTATE | OTHERS).items()
    for make in makes
} | {"LinearForgotten": ("rotate", LinearForgotten, LINEAR)}
