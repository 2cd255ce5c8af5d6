"""Bugs that people plant by habit, each small, and what `posenc check` must say of each: HABITS.

Of most of them nothing is expected: what they should have been is not known, as where a stranger checks a file.
"""

import torch
from torch import nn

from conformance.correct import Alibi, Causal, CausalAlibi, Interleaved, KeyAlibi, Rope, Sinusoid, T5Bias, slopes_of


class OneTable(Rope):
    """A table [b, 1, t, d] of one angle for each channel, and a rotation by a partner with a sign."""

    def table(self, half):
        return torch.cat([half, half], -1)

    def partner(self, x):
        first, second = x.chunk(2, -1)
        return torch.cat([-second, first], -1)

    def turn(self, x, cos, sin):
        return (x * self.table(cos) + self.partner(x) * self.table(sin)).to(x.dtype)


class HalfTableNeighbours(OneTable):
    """The commonest: emb = cat(freqs, freqs), and rotate_every_two."""

    def partner(self, x):
        return torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2)


class NeighbourTableHalves(OneTable):
    """The reverse: freqs.repeat_interleave(2), and rotate_half."""

    def table(self, half):
        return half.repeat_interleave(2, -1)


class PartialMixed(HalfTableNeighbours):
    """The same in the first half of the channels."""

    def __call__(self, x, positions):
        n = x.shape[-1] // 2
        return torch.cat([super().__call__(x[..., :n], positions), x[..., n:]], -1)


class NoMinus(OneTable):
    """rotate_half without the minus."""

    def partner(self, x):
        first, second = x.chunk(2, -1)
        return torch.cat([second, first], -1)


class CosSinSwapped(Rope):
    def turn(self, x, cos, sin):
        return super().turn(x, sin, cos)


class OneFrequencyPerChannel(OneTable):
    """The exponent counts channels, not pairs: 1/base^(c/d)."""

    def angles(self, x, positions):
        d = x.shape[-1]
        frequencies = self.base ** (-torch.arange(d, dtype=torch.float32) / d)
        return positions[:, None, :, None].float() * frequencies

    def table(self, half):
        return half


def takes_no_positions(x):
    return Rope()(x, torch.arange(x.shape[2])[None].expand(len(x), -1))


def takes_a_length(x, seq_len):
    return Rope()(x, torch.arange(int(seq_len))[None].expand(len(x), -1))


def learned_by_length(x):
    return x + Sinusoid().table(x, torch.arange(x.shape[1])[None])


def uses_no_positions(x, positions):
    return x


def adds_nothing(x, positions):
    return x + 0.0


class HalfOfTheHead(Rope):
    """Gives back what turns, without what passes: q_pe instead of cat(q_nope, q_pe)."""

    def __call__(self, x, positions):
        return super().__call__(x[..., x.shape[-1] // 2 :], positions)


class TrailingPartial(Rope):
    def __call__(self, x, positions):
        n = x.shape[-1] // 2
        return torch.cat([x[..., :n], super().__call__(x[..., n:], positions)], -1)


class IndexBuffer(nn.Module):
    """Rows are looked up through a buffer of whole numbers that no state dict holds."""

    def __init__(self):
        super().__init__()
        self.register_buffer("index", torch.arange(512), persistent=False)

    def forward(self, x, positions):
        return Rope()(x, self.index[positions.long()])


class ComplexTable(nn.Module):
    """A table of complex numbers, which a cast leaves without their imaginary part."""

    def __init__(self, d=64):
        super().__init__()
        angles = torch.arange(4096)[:, None].float() * Rope().frequencies(d)
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles), persistent=False)

    def forward(self, x, positions):
        turns = self.turns[positions.long()][:, None]
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


class RoughPi(Rope):
    """Angles are reduced to one turn by a rough π."""

    def angles(self, x, positions):
        angles, turn = super().angles(x, positions), 2 * 3.14
        return angles - turn * (angles / turn).floor()


class SwitchesFactors(Rope):
    """LongRoPE's: other factors where the call reaches beyond the trained length."""

    def angles(self, x, positions):
        return super().angles(x, positions) / (4.0 if int(positions.max()) >= 600 else 1.0)


class OtherRamp(Rope):
    """YaRN by 4 whose ramp begins and ends elsewhere."""

    def frequencies(self, d):
        ramp = ((torch.arange(d // 2, dtype=torch.float32) - 5) / 9).clamp(0, 1)
        return super().frequencies(d) * (1 - ramp + ramp / 4)


class FromOne(Rope):
    def positions(self, x, positions):
        return positions.float() + 1


class OtherWay(Rope):
    sign = -1


class DenominatorHalved(Rope):
    """2i/(d/2) for 2i/d."""

    def frequencies(self, d):
        return self.base ** (-torch.arange(0, d, 2, dtype=torch.float32) / (d // 2))


class OtherBase(Interleaved):
    base = 100_000.0


class AppliedTwice(Rope):
    def __call__(self, x, positions):
        return super().__call__(super().__call__(x, positions), positions)


class HalfExponent(Rope):
    """base^(-i/d) of pair i, for base^(-2i/d)."""

    def frequencies(self, d):
        return 10000.0 ** (-torch.arange(d // 2, dtype=torch.float32) / d)


class Degrees(Rope):
    """np.deg2rad of angles that are in radians."""

    def frequencies(self, d):
        return torch.deg2rad(super().frequencies(d))


class Turns(Rope):
    """Angles divided by 2π, as if the sine read turns."""

    def frequencies(self, d):
        return super().frequencies(d) / (2 * torch.pi)


class PositionsMultiplied(Rope):
    """Linear scaling the wrong way: positions times 8, so that fast pairs turn by more than half a turn a position."""

    def frequencies(self, d):
        return super().frequencies(d) * 8


class AllFrequenciesOne(Rope):
    """//, an integer division, in the exponent."""

    def frequencies(self, d):
        return 10000.0 ** -(torch.arange(0, d, 2, dtype=torch.float32) // d)


class FrequenciesReversed(Rope):
    def frequencies(self, d):
        return super().frequencies(d).flip(0)


class UnknownFrequencies(Rope):
    """A straight line of frequencies instead of powers."""

    def frequencies(self, d):
        return torch.linspace(1.0, 0.001, d // 2, dtype=torch.float32)


class PositionsOverLength(Rope):
    """Positions are divided by the length of the call."""

    def positions(self, x, positions):
        return positions.float() / x.shape[2]


class LogitsDtypePositions(Rope):
    def positions(self, x, positions):
        return positions.bfloat16().float()


class TurnsOverHeads(Rope):
    """[b, h, t, d] is read as [b, t, h, d]: the head is the position."""

    def angles(self, x, positions):
        return torch.arange(x.shape[1])[None, :, None, None].float() * self.frequencies(x.shape[-1])


class IndexInTheCall(Rope):
    def positions(self, x, positions):
        return torch.arange(x.shape[2]).expand(len(x), -1).float()


class NanBeyond(Rope):
    """A division that gives 0/0 at the far end."""

    def positions(self, x, positions):
        at = positions.float()
        return torch.where(at > 3000, at * float("nan"), at)


class SinusoidHalfExponent(Sinusoid):
    """i/d for 2i/d."""

    base = 100.0


class SinusoidFromOne(Sinusoid):
    offset = 1


class SinusoidPerChannel(Sinusoid):
    def table(self, x, positions):
        index = torch.arange(x.shape[-1], dtype=torch.float32)
        angles = positions.float()[..., None] * self.base ** (-index / x.shape[-1])
        return torch.where(index % 2 == 0, angles.sin(), angles.cos())


class SinusoidByIndex(Sinusoid):
    def positions(self, x, positions):
        return torch.arange(x.shape[1])[None].expand(len(x), -1).float()


class SlopesReversed(Alibi):
    n = 8

    def slopes(self):
        return torch.tensor(slopes_of(8), dtype=torch.float32).flip(0)


class SlopesHalved(Alibi):
    n = 8

    def slopes(self):
        return torch.tensor(slopes_of(8), dtype=torch.float32) / 2


class DistanceSquared(Alibi):
    """So steep that far keys lie where masks do."""

    def distance(self, q, k):
        return super().distance(q, k) ** 2


class RewardsDistance(Alibi):
    def __call__(self, q, k):
        return -super().__call__(q, k)


class HidesItself(KeyAlibi):
    def __call__(self, q, k):
        hidden = k[:, None, None] >= q[:, None, :, None]
        return super().__call__(q, k).masked_fill(hidden & (q[:, None, :, None] > 0), float("-inf"))


class T5OtherSign(T5Bias):
    """query - key for key - query: all keys before the query share one bucket."""

    def relative(self, q, k):
        return -super().relative(q, k)


def t5_bucket_numbers_swapped(q, k):
    """Both ways, as numbers of buckets: those before the query get the numbers of those after it."""
    return T5Bias(True).bucket(q[:, :, None] - k[:, None]).float()[:, None]


class ScaledByWidth(Causal):
    def scale(self, d):
        return 1.0 / d


class ScaleMultiplied(Causal):
    """Times √d in place of divided by it: float32 does not hold the differences of such logits."""

    def scale(self, d):
        return d**0.5


class ScaleIsNan(Causal):
    def scale(self, d):
        return float("nan")


class NotItself(Causal):
    """Hides the token itself: the softmax scale is not a number."""

    def visible(self, q_at, k_at, q_documents, k_documents):
        return super().visible((q_at - 1).clamp(min=0), k_at, q_documents, k_documents)


class HeadsInTurns(Causal):
    def group(self, x, n):
        return x.repeat(1, n // x.shape[1], 1, 1)


class OnlyQueries(Causal):
    def rotated(self, q, k, q_at, k_at):
        return self.rope(q, q_at), k


class MaskFromTheCorner(Causal):
    def visible(self, q_at, k_at, q_documents, k_documents):
        return torch.ones(q_at.shape[1], k_at.shape[1]).tril().bool()[None, None]


class DocumentsAsMask(Causal):
    """Takes document numbers for a mask: what is no padding sees all that is no padding."""

    def visible(self, q_at, k_at, q_documents, k_documents):
        if q_documents is not None:
            q_documents, k_documents = q_documents.clamp(max=0), k_documents.clamp(max=0)
        return super().visible(q_at, k_at, q_documents, k_documents)


class IndexBias(CausalAlibi):
    """Distances of indices in the call."""

    def bias(self, q_at, k_at, n):
        i, j = (torch.arange(at.shape[1])[None].expand(len(at), -1) for at in (q_at, k_at))
        return super().bias(i, j, n)


class AlibiWithoutMask(CausalAlibi):
    """The bias in the place of the mask."""

    def visible(self, q_at, k_at, q_documents, k_documents):
        return torch.ones(len(q_at), 1, q_at.shape[1], k_at.shape[1]).bool()


class BiasOverLength(Alibi):
    """Distances in shares of the keys of the call."""

    def distance(self, q, k):
        return super().distance(q, k) / k.shape[1]


def key_bias_both_ways(q, k):
    """slope·position of the key where both directions are seen."""
    return Alibi().slopes()[:, None, None] * k[:, None, None].float().expand(-1, -1, q.shape[1], -1)


# Caches that keep the dtype of the call that filled them ---------------------------------------------------------------


def rows_of(x):
    """Cosines and sines of 8192 positions, in the dtype of the tokens."""
    with torch.inference_mode(False):
        angles = torch.arange(8192, dtype=torch.float32)[:, None] * Rope().frequencies(x.shape[-1])
        return torch.cat([angles.cos(), angles.sin()], -1).to(x.dtype)


class FirstDtype(Rope):
    """Filled at the first call."""

    rows = None

    def __call__(self, x, positions):
        if self.rows is None:
            self.rows = rows_of(x)
        return self.turn(x, *self.rows[positions.long()][:, None].chunk(2, -1))


class FirstDtypeInAClosure:
    """A function; what fills it is closed over."""

    def __new__(cls):
        rope = FirstDtype()
        return lambda x, positions: rope(x, positions)


OF_A_GLOBAL = {}


def turned_by_a_global(x, positions):
    if "rows" not in OF_A_GLOBAL:
        OF_A_GLOBAL["rows"] = rows_of(x)
    return Rope().turn(x, *OF_A_GLOBAL["rows"][positions.long()][:, None].chunk(2, -1))


class FirstDtypeInAGlobal:
    """A function; what fills it is a global."""

    def __new__(cls):
        OF_A_GLOBAL.clear()
        return turned_by_a_global


class FirstDtypeOfItsClass(Rope):
    """All objects of the class share it."""

    rows = None

    def __init__(self):
        type(self).rows = None

    def __call__(self, x, positions):
        if self.rows is None:
            type(self).rows = rows_of(x)
        return self.turn(x, *self.rows[positions.long()][:, None].chunk(2, -1))


class FirstDtypeInAttention(Causal):
    def __init__(self):
        self.rope = FirstDtype()


class SlopesOfFirstDtype(CausalAlibi):
    """Slopes and distances in the dtype of the first queries."""

    dtype = None

    def __call__(self, q, *arguments, **documents):
        self.dtype = self.dtype or q.dtype
        return super().__call__(q, *arguments, **documents)

    def bias(self, q_at, k_at, n):
        distance = (q_at[:, None, :, None] - k_at[:, None, None]).abs()
        return -torch.tensor(slopes_of(n), dtype=self.dtype)[:, None, None] * distance.to(self.dtype)


class BiasOfDefaultDtype(Alibi):
    """A row of biases over distances, in the default dtype of the first call."""

    row = None

    def __call__(self, q, k):
        if self.row is None:
            self.row = -torch.tensor(slopes_of(self.n))[:, None] * torch.arange(20_000)
        return self.row[:, (q[:, :, None] - k[:, None]).abs()].transpose(0, 1)


# Keys ------------------------------------------------------------------------------------------------------------------


class KeysTurnedAgain(Causal):
    """What is read from a cache is turned, though the cache holds turned keys."""

    def rotated(self, q, k, q_at, k_at):
        q, k = super().rotated(q, k, q_at, k_at)
        past = k.shape[2] - q.shape[2]
        return q, torch.cat([self.rope(k[:, :, :past], k_at[:, :past]), k[:, :, past:]], 2)


class CacheTurnedAgain(Causal):
    """A cache of its own, whose keys are turned at each read, and kept so."""

    kept = None

    def rotated(self, q, k, q_at, k_at):
        past = k.shape[2] - q.shape[2]
        new = self.rope(k[:, :, past:], k_at[:, past:])
        if past and (self.kept is None or self.kept.shape[2] != past):
            self.kept = self.rope(k[:, :, :past], k_at[:, :past])
        self.kept = torch.cat([self.rope(self.kept, k_at[:, :past]), new], 2) if past else new
        return self.rope(q, q_at), self.kept


class DecodesOneLate(Causal):
    """A decoded token is turned as the next one."""

    def rotated(self, q, k, q_at, k_at):
        return self.rope(q, q_at + (q.shape[2] < k.shape[2])), self.rope(k, k_at)


class Chunks(Causal):
    """A query sees the keys of its chunk, and nobody said so."""

    def visible(self, q_at, k_at, q_documents, k_documents):
        return (
            super().visible(q_at, k_at, q_documents, k_documents) & (k_at[:, None] // 8 == q_at[:, :, None] // 8)[:, None]
        )


# Six heads, and a tensor without a dtype -------------------------------------------------------------------------------


def slopes_without_dtype(n):
    """Those of no power of two, of which 6 are none of ALiBi's."""
    return torch.tensor([2.0 ** (-8 * (i + 1) / n) for i in range(n)])[:, None, None]


class SixSlopes(Alibi):
    def __call__(self, q, k):
        return -slopes_without_dtype(6) * (q[:, None, :, None] - k[:, None, None]).abs()


class BaseWithoutDtype(Rope):
    """A base that may be meant, and frequencies without a dtype."""

    base = 20_000.0

    def frequencies(self, d):
        return self.base ** (-torch.arange(0, d, 2) / d)


ROTATES, EMBEDS, BIASES, ATTENDS = "rotate", "embed", "bias", "attention"


# name -> (seam, make, what is expected, the verdict, the name of the diagnosis)
class AnglesWithoutHeads(Rope):
    """cos and sin [b, t, d / 2] meet x [b, h, t, d / 2]: right for one row, and for as many rows as heads only by shape."""

    def __call__(self, x, positions):
        angles = positions[..., None].double() * self.angles_of_one(x)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    @staticmethod
    def angles_of_one(x):
        return 10000.0 ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])


HABITS = {
    getattr(make, "__name__", ""): (seam, make, expect, verdict, diagnosis)
    for seam, make, expect, verdict, diagnosis in (
        (ROTATES, HalfTableNeighbours, {}, "failed", "mixed layouts"),
        (ROTATES, NeighbourTableHalves, {}, "failed", "mixed layouts"),
        (ROTATES, PartialMixed, {}, "failed", "mixed layouts"),
        (ROTATES, NoMinus, {}, "failed", "no minus"),
        (ROTATES, CosSinSwapped, {}, "failed", "cosine for sine"),
        (ROTATES, OneFrequencyPerChannel, {}, "failed", "one angle each"),
        (ROTATES, takes_no_positions, {}, "failed", "no positions"),
        (ROTATES, takes_a_length, {}, "failed", "no positions"),
        (ROTATES, uses_no_positions, {}, "failed", "positions unused"),
        (EMBEDS, adds_nothing, {}, "failed", "positions unused"),
        (EMBEDS, learned_by_length, {}, "failed", "no positions"),
        (ROTATES, HalfOfTheHead, {}, "failed", "part of the head"),
        (ROTATES, TrailingPartial, {}, "unusual", "trailing"),
        (ROTATES, IndexBuffer, {}, "failed", "construction"),
        (ROTATES, ComplexTable, {}, "failed", "cast state"),
        (ROTATES, RoughPi, {}, "failed", "not relative"),
        (ROTATES, SwitchesFactors, {}, "failed", "length state"),
        (ROTATES, OtherRamp, {}, "unusual", "scaling"),
        (ROTATES, FromOne, {}, "failed", "from one"),
        (ROTATES, OtherWay, {}, "unusual", "sign"),
        (ROTATES, DenominatorHalved, {}, "unusual", "base"),
        (ROTATES, OtherBase, {}, "unusual", "base"),
        (ROTATES, AppliedTwice, {}, "unusual", "scaling"),
        (ROTATES, HalfExponent, {}, "unusual", "base"),
        (ROTATES, Degrees, {}, "unusual", "scaling"),
        (ROTATES, Turns, {}, "unusual", "scaling"),
        (ROTATES, PositionsMultiplied, {}, "unusual", "scaling"),
        (ROTATES, AllFrequenciesOne, {}, "unusual", "frequencies"),
        (ROTATES, FrequenciesReversed, {}, "unusual", "reversed"),
        (ROTATES, UnknownFrequencies, {}, "unusual", "frequencies"),
        (ROTATES, PositionsOverLength, {}, "failed", "length state"),
        (ROTATES, LogitsDtypePositions, {}, "failed", "low precision angles"),
        (ROTATES, TurnsOverHeads, {}, "failed", "wrong axis"),
        (ROTATES, AnglesWithoutHeads, {}, "failed", "rows over heads"),
        (ROTATES, IndexInTheCall, {}, "failed", "position ignored"),
        (ROTATES, NanBeyond, {}, "failed", "not finite"),
        (EMBEDS, SinusoidHalfExponent, {}, "unusual", "base"),
        (EMBEDS, SinusoidFromOne, {}, "unusual", "offset"),
        (EMBEDS, SinusoidPerChannel, {}, "unusual", "one angle each"),
        (EMBEDS, SinusoidByIndex, {}, "failed", "position ignored"),
        (BIASES, SlopesReversed, {}, "unusual", "slopes"),
        (BIASES, SlopesHalved, {}, "unusual", "slopes"),
        (BIASES, DistanceSquared, {}, "unusual", "kind"),
        (BIASES, RewardsDistance, {}, "failed", "bias sign"),
        (BIASES, HidesItself, {}, "failed", "hides itself"),
        (BIASES, T5OtherSign, {}, "unusual", "bucket sign"),
        (BIASES, t5_bucket_numbers_swapped, {}, "unusual", "bucket sign"),
        (BIASES, BiasOverLength, {}, "failed", "bias cache"),
        (BIASES, key_bias_both_ways, {"future_slope": "falls"}, "failed", "bias sign"),
        (ATTENDS, ScaledByWidth, {}, "unusual", "softmax_scale"),
        (ATTENDS, ScaleMultiplied, {}, "failed", "softmax scale"),
        (ATTENDS, ScaleIsNan, {}, "failed", "not finite"),
        (ATTENDS, NotItself, {}, "failed", "hides itself"),
        (ATTENDS, HeadsInTurns, {}, "failed", "heads"),
        (ATTENDS, OnlyQueries, {}, "failed", "one side"),
        (ATTENDS, MaskFromTheCorner, {}, "failed", "causal alignment"),
        (ATTENDS, DocumentsAsMask, {}, "failed", "packing"),
        (ATTENDS, IndexBias, {}, "failed", "position ignored"),
        (ATTENDS, AlibiWithoutMask, {}, "failed", "future"),
        (ROTATES, FirstDtype, {}, "failed", "cache key"),
        (ROTATES, FirstDtypeInAClosure, {}, "failed", "cache key"),
        (ROTATES, FirstDtypeInAGlobal, {}, "failed", "cache key"),
        (ROTATES, FirstDtypeOfItsClass, {}, "failed", "cache key"),
        (ATTENDS, FirstDtypeInAttention, {}, "failed", "cache key"),
        (ATTENDS, SlopesOfFirstDtype, {}, "failed", "cache key"),
        (BIASES, BiasOfDefaultDtype, {}, "failed", "cache key"),
        (ATTENDS, KeysTurnedAgain, {}, "failed", "keys turned again"),
        (ATTENDS, CacheTurnedAgain, {}, "failed", "keys turned again"),
        (ATTENDS, DecodesOneLate, {}, "failed", "decode offset"),
        (ATTENDS, Chunks, {}, "failed", "hidden by place"),
        (BIASES, SixSlopes, {}, "failed", "slopes"),
        (ROTATES, BaseWithoutDtype, {}, "failed", "default dtype"),
    )
}
# What is right but for a number that only its configuration tells.
FORGOTTEN = {
    "yarn's magnitude": (ROTATES, Rope, {"magnitude": 1.13863}, "failed", "base"),
    "yarn's softmax scale": (ATTENDS, Causal, {"softmax_scale": 0.16206}, "failed", "softmax scale"),
    "llama 3's scaling": (ROTATES, Rope, {"scaling": "llama3, factor 8, original length 8192"}, "failed", "base"),
}
HABITS |= FORGOTTEN
