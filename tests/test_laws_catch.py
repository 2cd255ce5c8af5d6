"""The laws themselves: each must fail on an encoding that shipped libraries have shown us, planted here on purpose."""

import sys
import time

import pytest
import torch

from posenc import Positions, Stack, create
from posenc.attention import backends, plan
from posenc.checking import engine, laws
from posenc.checking.bugs import BUGS
from posenc.encoding import PositionalEncoding
from posenc.encodings.alibi import ALiBi, alibi_slopes
from posenc.encodings.convolutional import Convolutional
from posenc.encodings.fox import FoX
from posenc.encodings.rope import RoPE
from posenc.encodings.shaw import Shaw
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.encodings.xpos import XPos
from posenc.structure import added_to_output
from posenc.support.tensors import readable


class Absolute(Sinusoidal):
    """A sinusoid whose planted fault is in how it finds the position or keeps its table."""

    def __init__(self):
        super().__init__(32)

    def add(self, x, coords):
        (table,) = Sinusoidal.tables(self, Positions.at(coords.expand(x.shape[0], -1)), torch.float32)
        return (x.float() + table).to(x.dtype)


class SmearsTokens(Absolute):
    def embed(self, x, at):
        return super().embed(x, at) + x.mean(dim=1, keepdim=True)


class Stretches(RoPE):
    def __init__(self):
        super().__init__(8)

    def rotate(self, x, at, side):
        return super().rotate(x, at, side) * 1.1


class CountsByIndex(Absolute):
    """The decode offset lost, left padding counted, shards numbered from 0."""

    def embed(self, x, at):
        return self.add(x, torch.arange(x.shape[1])[None])


class RunsThroughDocuments(Absolute):
    def embed(self, x, at):
        return self.add(x, at.order)


class GoesOnFromTheLastColumn(FoX):
    """Gates of rejected drafts still count: the sum goes on from the last stored column, whatever stands there."""

    def __init__(self):
        super().__init__(32, 4)

    def state_of(self, x, at, past):
        (sums,) = super().state_of(x, at, None)
        return (sums if past is None else sums + self.sums(past)[:, -1:],)


class LooksAtTheLongest(Absolute):
    """Dynamic scaling by positions.max(): a long batch-mate changes a short row."""

    def embed(self, x, at):
        return self.add(x, at.coords / (1 + at.coords.max() // 64))


class ClaimsShiftInvariance(Absolute):
    traits = Sinusoidal.traits | {"shift_invariant"}


class HidesShiftInvariance(RoPE):
    traits = frozenset({"local", "norm_preserving"})

    def __init__(self):
        super().__init__(8)


class HidesNormPreservation(RoPE):
    traits = frozenset({"local", "shift_invariant"})

    def __init__(self):
        super().__init__(8)


class HidesLocality(RoPE):
    traits = frozenset({"norm_preserving", "shift_invariant"})

    def __init__(self):
        super().__init__(8)


class SlopesOfTheRank(ALiBi):
    """Slopes recomputed for the local head count (the tensor-parallel bug)."""

    def __init__(self, n_heads=4):
        super().__init__(n_heads, slopes=alibi_slopes(n_heads))

    def heads(self, start, stop):
        return SlopesOfTheRank(stop - start)


class FrequenciesInABuffer(RoPE):
    def __init__(self):
        super().__init__(8)
        self.register_buffer("inv_freq", torch.tensor(self.frequencies[0]), persistent=False)

    def tables(self, at, dtype):
        angle = at.coords[..., None] * self.inv_freq.to(dtype)
        return angle.cos(), angle.sin()


class LosesItsOffset(Absolute):
    """A setting that copying and pickling change."""

    def __getstate__(self):
        return {**self.__dict__, "offset": 1}


class DefaultDtype(Absolute):
    def embed(self, x, at):
        return x + torch.outer(torch.arange(x.shape[1]) * torch.tensor(1.0 / 3), torch.ones(x.shape[2])).sin().to(x.dtype)


class AnglesByMatmul(Absolute):
    """An outer product that autocast casts to bfloat16."""

    def tables(self, at, dtype):
        angle = (at.coords[0, :, None].to(dtype) @ torch.tensor([self.frequencies], dtype=dtype)).to(dtype)
        return (torch.cat([angle.sin(), angle.cos()], dim=-1).expand(at.batch, -1, -1),)


class CachesOnTheModule(Absolute):
    def embed(self, x, at):
        self.cached = self.tables(at, torch.float32)[0]
        return (x + self.cached).to(x.dtype)


class KeepsWhatInferenceMade(Absolute):
    """A table made at the first call, in inference mode, which no later call can train through."""

    table = None

    def embed(self, x, at):
        if self.table is None:
            self.table = Sinusoidal.tables(self, at, torch.float32)[0]
        return x * self.table.to(x.dtype)


class CountsCallsAtOnce(Absolute):
    """A counter on the module that another thread moves during the call."""

    inside = 0

    def embed(self, x, at):
        self.inside += 1
        time.sleep(0.2)
        out = super().embed(x * self.inside, at)
        self.inside -= 1
        return out


class DrawsANumber(PositionalEncoding):
    """Moves the global random state."""

    def embed(self, x, at):
        torch.rand(1)
        return x


class WritesInPlace(PositionalEncoding):
    def embed(self, x, at):
        return x.add_(0.0)


class TakesAnybodysTables(Absolute):
    def embed(self, x, at):
        (table,) = next(iter(at.tables.values())) if at.tables else self.tables(at, torch.float32)
        return (x.float() + table).to(x.dtype)


class AsksForValues(Absolute):
    """A graph break: a branch on a tensor's value."""

    def embed(self, x, at):
        return super().embed(x, at) if at.coords.max().item() < 10_000 else x


class GrowsACache(Absolute):
    """One graph per length."""

    def embed(self, x, at):
        table = torch.zeros(int(x.shape[1]), 32) if x.shape[1] in (8, 16) else torch.zeros(x.shape[1], 32) + 0
        return super().embed(x, at) + table


class ComplexNumbers(PositionalEncoding):
    def embed(self, x, at):
        turned = torch.view_as_complex(x.float().unflatten(-1, (-1, 2))) * torch.ones(1, dtype=torch.complex64)
        return torch.view_as_real(turned).flatten(-2).to(x.dtype)


class NoGradient(Absolute):
    def embed(self, x, at):
        return super().embed(x.detach(), at)


class TableWithoutGradient(PositionalEncoding):
    """It has many more numbers than are read, so that a direction of all has little of each."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.zeros(400, 32))

    def embed(self, x, at):
        return x + self.table.detach()[at.coords].to(x.dtype)


class UndeclaredContext(PositionalEncoding):
    """Reads the logits and says that it does not: the fused kernel would leave it out."""

    seams = frozenset()

    def finish(self, scores):
        return scores.mix(scores.weights(scores.logits * 0.5))


class ContextWithoutGradient(PositionalEncoding):
    """Reads the logits, says that it does not, and changes none; in the reference their gradient is lost."""

    seams = frozenset()

    def finish(self, scores):
        return scores.mix(scores.weights(scores.logits.detach()))


class HidesItsBias(ALiBi):
    """A bias, and says that it has none."""

    seams = frozenset()

    def __init__(self):
        super().__init__(4)


class KeysByStorage(ALiBi):
    """Distance from the index at which a key is stored: wrong as soon as shards are gathered out of order."""

    def __init__(self):
        super().__init__(4)

    def bias(self, q, k, at_q, at_k):
        slopes = torch.tensor(self.slopes)
        return lambda b, h, i, j: -slopes[h] * (at_q.coords[b, i] - at_k.coords[b, 0 * j] - j).abs()


class PairsByStorage(ALiBi):
    """Distance from the indices at which query and key are stored: wrong where keys outside a window are left out."""

    def __init__(self):
        super().__init__(4)

    def bias(self, q, k, at_q, at_k):
        slopes = torch.tensor(self.slopes)
        return lambda b, h, i, j: -slopes[h] * (i - j).abs()


class WrongTangent(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        return gradient

    @staticmethod
    def jvp(ctx, tangent):
        return 2 * tangent


class LosesTangents(Absolute):
    """Right backwards, wrong forwards."""

    def embed(self, x, at):
        return super().embed(WrongTangent.apply(x), at)


class SquaresAndReadsTwice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return ctx.saved_tensors[0] * gradient + ctx.saved_tensors[0] * gradient


class ReadsSavedTensorsTwice(Absolute):
    """Checkpointing without reentry hands a saved tensor out once."""

    def embed(self, x, at):
        return super().embed(SquaresAndReadsTwice.apply(x), at)


class ChangesAtEveryCall(Absolute):
    """What is computed again is not what was computed."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def embed(self, x, at):
        self.calls += 1
        return super().embed(x * self.calls, at)


class GuessesWhenNothingIsKnown(Absolute):
    """A fast path for consecutive positions that is one position off from the other."""

    def embed(self, x, at):
        return self.add(x, at.coords if at.consecutive_in == "row" else at.coords + 1)


class CountsFromTheFirstToken(RoPE):
    """Tables of a part that begin at zero: right for every part alone, wrong for parts in one cache."""

    def __init__(self):
        super().__init__(8)

    def tables(self, at, dtype):
        return super().tables(at.shift(-at.coords[:, 0]), dtype)


class ReadsMemoryInOrder(PositionalEncoding):
    """A kernel that takes every tensor for dense."""

    def rotate(self, x, at, side, out=None):
        return x.as_strided(x.shape, torch.empty(x.shape).stride()) + 0


class TurnsInOneGoOnly(RoPE):
    """`_rotate_both`, which attention calls for all tokens at once, turns another way than `rotate`."""

    def __init__(self):
        super().__init__(8)

    def _rotate_both(self, q, k, at_q, at_k):
        return (q, k) if at_q.length > 5 else super()._rotate_both(q, k, at_q, at_k)


class HidesByALargeNumber(PositionalEncoding):
    """Half the lowest number in the place of -inf: where every key is hidden so, all logits are rounded to it."""

    def bias(self, q, k, at_q, at_k):
        lowest = torch.finfo(q.dtype).min / 2

        def of_pair(b, h, i, j):
            earlier = at_k.coords[b, j] < at_q.coords[b, i]
            return torch.zeros_like(earlier, dtype=q.dtype).masked_fill(earlier, lowest) + 0 * h

        return of_pair


class DividesByNothing(PositionalEncoding):
    """A softmax of its own, of which a row of -inf alone is NaN."""

    def finish(self, scores):
        return scores.mix(scores.masked(scores.logits).softmax(dim=-1))


class AddsWhereNothingIsSeen(PositionalEncoding):
    """A constant past the weights, for queries without a key too."""

    @added_to_output
    def finish(self, v, at_q, at_k, may_attend):
        return v.new_ones(v.shape[0], 4, at_q.length, v.shape[3])


class OverflowsAtPadding(PositionalEncoding):
    """A factor that is infinite between padding and a real token; the mask hides the pair, not its gradient."""

    def bias(self, q, k, at_q, at_k):
        query, key = (1000.0 * at.document.clamp(max=0) for at in (at_q, at_k))

        def of_pair(b, h, i, j):
            return (q[b, h, i] * k[b, h, j]).sum(-1) * (key[b, j] - query[b, i]).to(q.dtype).exp()

        return of_pair


class LooksAtTheFirstToken(Absolute):
    """Reads the first position of every row: there is none in an empty one."""

    def embed(self, x, at):
        return super().embed(x, at.shift(at.coords[:, 0] * 0))


class TakesTheLargestKey(PositionalEncoding):
    """A number of all keys: of none there is no largest."""

    def bias(self, q, k, at_q, at_k):
        largest = at_k.coords.amax(dim=1).to(q.dtype)
        return lambda b, h, i, j: -0.01 * largest[b] + 0 * (h + i + j)


class MixesChannelsOfValues(PositionalEncoding):
    """Each channel of a value without the mean of all."""

    def rotate(self, x, at, side, out=None):
        return x - x.mean(dim=-1, keepdim=True) if side == "value" else x


class RoundsItsFrequencies(RoPE):
    """Learned frequencies without a word to casts: bfloat16 rounds them, and positions multiply the rounding."""

    learned_tables = True

    def __init__(self):
        super().__init__(8)
        self.own = torch.nn.Parameter(torch.tensor(self.frequencies.values) * 1.01)

    def tables(self, at, dtype):
        angle = at.coords[..., None].double() * self.own.double()
        return angle.cos().to(dtype), angle.sin().to(dtype)


class ReadsTheFirstRow(ALiBi):
    """Distances of the first row serve all rows: the offset by batch instead of by row."""

    def __init__(self):
        super().__init__(4)

    def structure(self):
        return None

    def bias(self, q, k, at_q, at_k):
        delta = (at_q.coords[:1, :, None] - at_k.coords[:1, None, :]).reshape(-1)
        flat, shape = self.at_distance(delta).to(q.dtype), (at_q.length, at_k.length)
        table = flat.reshape(-1, *shape)
        return lambda b, h, i, j: table[h, i, j]


class CountsColumns(ALiBi):
    """Distances counted in columns of what is stored, whatever their positions are."""

    def __init__(self):
        super().__init__(4)

    def structure(self):
        return None

    def bias(self, q, k, at_q, at_k):
        last = at_k.length - at_q.length
        delta = (last + torch.arange(at_q.length)[:, None] - torch.arange(at_k.length)[None]).reshape(-1)
        table = self.at_distance(delta).to(q.dtype).reshape(-1, at_q.length, at_k.length)
        return lambda b, h, i, j: table[h, i, j]


PLANTED = [
    ("rollback_equals_never_seen", GoesOnFromTheLastColumn),
    ("rollback_equals_never_seen", CountsColumns),
    ("evicted_equals_kept_alone", CountsColumns),
    ("reordered_equals_rows", ReadsTheFirstRow),
    ("ring_equals_window", CountsColumns),
    ("locality", SmearsTokens),
    ("locality", HidesLocality),
    ("norm_preservation", Stretches),
    ("norm_preservation", HidesNormPreservation),
    ("decode_equals_prefill", CountsByIndex),
    ("packed_equals_separate", RunsThroughDocuments),
    ("packed_equals_separate", CountsByIndex),
    ("padded_equals_unpadded", CountsByIndex),
    ("rejected_drafts_do_not_matter", CountsByIndex),
    ("rejected_drafts_do_not_matter", GoesOnFromTheLastColumn),
    ("sharded_equals_whole", KeysByStorage),
    ("storage_order_does_not_matter", KeysByStorage),
    ("listed_equals_counted", GuessesWhenNothingIsKnown),
    ("joined_equals_listed", CountsFromTheFirstToken),
    ("strides_do_not_matter", ReadsMemoryInOrder),
    ("module_equals_attend", CountsByIndex),
    ("module_equals_attend", TurnsInOneGoOnly),
    ("batch_mates_do_not_matter", LooksAtTheLongest),
    ("shift_invariance", ClaimsShiftInvariance),
    ("shift_invariance", HidesShiftInvariance),
    ("head_slices", SlopesOfTheRank),
    ("casts_keep_positions_exact", RoundsItsFrequencies),
    ("state_is_configuration", FrequenciesInABuffer),
    ("casting_a_module_does_not_round_its_angles", FrequenciesInABuffer),
    ("tables_survive_to_empty", FrequenciesInABuffer),
    ("state_is_configuration", LosesItsOffset),
    ("default_dtype_does_not_matter", DefaultDtype),
    ("autocast_does_not_matter", AnglesByMatmul),
    ("inference_mode_does_not_matter", KeepsWhatInferenceMade),
    ("calls_at_once_do_not_matter", CountsCallsAtOnce),
    ("forward_writes_nothing", CachesOnTheModule),
    ("forward_writes_nothing", DrawsANumber),
    ("forward_writes_nothing", WritesInPlace),
    ("tables_know_their_owner", TakesAnybodysTables),
    ("one_graph_over_lengths", AsksForValues),
    ("one_graph_over_lengths", GrowsACache),
    ("one_graph_over_lengths", ComplexNumbers),
    ("gradients", NoGradient),
    ("gradients_agree", ContextWithoutGradient),
    ("transforms", LosesTangents),
    ("checkpointed_equals_plain", ReadsSavedTensorsTwice),
    ("checkpointed_equals_plain", ChangesAtEveryCall),
    ("backends_agree", UndeclaredContext),
    ("backends_agree", HidesItsBias),
    ("options_agree", PairsByStorage),
    ("rows_that_see_no_key", HidesByALargeNumber),
    ("rows_that_see_no_key", DividesByNothing),
    ("rows_that_see_no_key", AddsWhereNothingIsSeen),
    ("rows_that_see_no_key", OverflowsAtPadding),
    ("empty_calls", LooksAtTheFirstToken),
    ("empty_calls", TakesTheLargestKey),
    ("width_of_values", MixesChannelsOfValues),
]


def test_a_lost_gradient_of_a_large_table_breaks_the_law(monkeypatch):
    finite_differences = sys.modules["torch.autograd.gradcheck"]
    monkeypatch.setattr(
        finite_differences, "_run_slow_mode_and_get_error", lambda *_: ""
    )  # of each number, for the message
    with pytest.raises(laws.LawBroken, match="analytic and numerical gradients differ"):
        laws.gradients(TableWithoutGradient(), laws.Setting())


@pytest.mark.parametrize(("law", "planted"), PLANTED, ids=lambda value: getattr(value, "__name__", value))
def test_a_planted_fault_breaks_the_law(law, planted):
    encoding = planted()
    broken_graph = torch._dynamo.exc.TorchDynamoException if law == "one_graph_over_lengths" else laws.LawBroken
    with pytest.raises((laws.LawBroken, broken_graph)):
        laws.check(encoding, laws.Setting(dtype=torch.float32), [law])


def test_every_law_has_a_planted_fault():
    assert {law for law, _ in PLANTED} == set(laws.LAWS)


def test_report_names_what_broke_and_the_backends():
    results = {result.law: result for result in laws.report(CountsByIndex())}
    assert not results["decode_equals_prefill"].held
    assert "differs by" in results["decode_equals_prefill"].detail
    assert results["norm_preservation"].verdict == "passed"
    assert results["norm_preservation"].backends == ()  # it computes no attention
    assert results["decode_equals_prefill"].backends == ("sdpa",)
    assert results["shift_invariance"].backends == ("reference",)  # what a shift changes is looked for by the reference
    assert results["backends_agree"].backends == ("reference", "sdpa")


def test_a_failure_is_shrunk_and_its_bug_named():
    (result,) = laws.report(CountsByIndex(), laws=["decode_equals_prefill"])
    assert dict(result.example) == {"batch": 1, "length": 11}  # the law needs eleven tokens
    assert result.figure > result.allowed > 0
    assert result.bug is BUGS["decode offset"]
    assert "smallest input: batch 1, length 11" in str(result)


def test_an_encoding_that_raises_breaks_the_law():
    class Unfinished(PositionalEncoding):
        def embed(self, x, at):
            raise NotImplementedError("later")

    (result,) = laws.report(Unfinished(), laws=["padded_equals_unpadded"])
    assert (result.verdict, result.detail) == ("failed", "raises NotImplementedError: later")


def test_a_law_of_ones_own_is_tried_by_the_same_engine(monkeypatch):
    monkeypatch.setitem(engine.LAWS, "encoding", dict(engine.LAWS["encoding"]))
    monkeypatch.setattr(laws.registry, "LAWS", dict(laws.LAWS))

    @laws.law
    def embeds_zeros_as_zeros(encoding, setting):
        if encoding.embed(torch.zeros(1, 2, setting.d_model), Positions.arange(1, 2)).any():
            raise laws.LawBroken("zeros become something else")

    with pytest.raises(laws.LawBroken, match=r"^embeds_zeros_as_zeros: Sinusoidal.*: zeros become something else"):
        embeds_zeros_as_zeros(Sinusoidal(32), laws.Setting())
    found = [laws.report(made, laws=["embeds_zeros_as_zeros"])[0] for made in (Sinusoidal(32), ALiBi(4))]
    assert [one.verdict for one in found] == ["failed", "passed"]
    assert found[0].detail == "zeros become something else"


def test_a_named_backend_is_never_replaced_by_another():
    """Relative vectors are computed on consecutive positions only: packed documents are refused, and the law says so."""
    shaw = laws.draw_parameters(Shaw(8))
    packed, chunked = laws.report(shaw, laws.Setting(impl="relative"), ["packed_equals_separate", "decode_equals_prefill"])
    assert (packed.verdict, packed.backends) == ("not applicable", ())
    assert "impl='relative' cannot express" in packed.detail
    assert (chunked.verdict, chunked.backends) == ("passed", ("relative",))
    (packed,) = laws.report(shaw, laws.Setting(impl="auto"), ["packed_equals_separate"])
    assert (packed.verdict, packed.backends) == ("passed", ("reference", "relative"))


def test_a_backend_that_says_it_refuses_and_does_not_breaks_the_law(monkeypatch):
    monkeypatch.setattr(backends.sdpa, "refuses_call", lambda *call: "planted")
    monkeypatch.setattr(plan, "reason", lambda *call: None)
    with pytest.raises(laws.LawBroken, match="says that it refuses the call"):
        laws.check(RoPE(8), laws.Setting(impl="sdpa"), ["packed_equals_separate"])


def test_a_law_that_has_nothing_to_say_is_not_applicable():
    (result,) = laws.report(RoPE(8), laws.Setting(causal=False), ["decode_equals_prefill"])
    assert (result.verdict, result.held) == ("not applicable", True)
    assert "causal" in result.detail


def test_absent_traits_are_absent():
    """A convolution refuses tokens without their neighbours; xPos makes queries shorter."""
    (result,) = laws.report(Convolutional(32, 4, groups=4), laws=["locality"])
    assert result.verdict == "passed"
    (result,) = laws.report(XPos(8), laws=["norm_preservation"])
    assert result.verdict == "passed"


SIZED = {
    "rope": (16, 4),
    "shaw": (16, 4),
    "alibi": (8, 6),
    "inkling": (16, 6),
    "learned": (24, 4),
    "pope": (16, 6),
    "fox": (16, 6),
    "carope": (16, 6),
    "ms_poe": (16, 6),
}


@pytest.mark.parametrize("name", SIZED)
def test_a_report_takes_heads_and_widths_from_the_encoding(name):
    """With no setting: it was tried with 4 heads of 8 channels, and 23 laws were broken."""
    encoding = laws.draw_parameters(create(name, d_model=96, n_heads=6, d_head=16, max_positions=64))
    names = ["decode_equals_prefill", "packed_equals_separate", "head_slices", "batch_mates_do_not_matter", "locality"]
    assert [result.verdict for result in laws.report(encoding, laws=names)] == ["passed"] * 5
    laws.check(encoding, laws=names)
    d_head, n_heads = SIZED[name]
    laws.check(
        encoding, laws.Setting(d_model=d_head * n_heads, n_heads=n_heads, n_kv_heads=n_heads, max_positions=64), names
    )


def test_heads_and_widths_of_a_stack():
    laws.check(Stack(Sinusoidal(64), ALiBi(8)), laws=["decode_equals_prefill", "head_slices"])
    with pytest.raises(ValueError, match=r"^encoding: its parts are built for d_head=8 and 16"):
        laws.report(Stack(RoPE(8), Shaw(16)))
    with pytest.raises(ValueError, match=r"^encoding: built for .* laws are tried with d_model = n_heads·d_head"):
        laws.report(Stack(Sinusoidal(60), ALiBi(8)))


@pytest.mark.parametrize("ask", [laws.report, laws.check])
def test_what_does_not_fit_is_one_error(ask):
    with pytest.raises(
        ValueError, match=r"^setting: ALiBi is built for n_heads=8, got n_heads=4; give these, or leave the setting out"
    ):
        ask(ALiBi(8), laws.Setting())
    with pytest.raises(ValueError, match=r"^setting: RoPE is built for d_head=16, got d_head=8"):
        ask(RoPE(16), laws.Setting())
    with pytest.raises(ValueError, match=r"^encoding: RoPE reads 2 coordinates per token"):
        ask(RoPE(8, axes=2))


def test_unknown_law():
    with pytest.raises(ValueError, match="laws: encoding has no law 'lokality'"):
        laws.check(RoPE(8), laws=["lokality"])


def test_readable_is_for_eager_cpu_tensors():
    assert readable(torch.zeros(1))
    assert not readable(torch.zeros(1, device="meta"))
