"""Several encodings at once, by loops: Stack(Learned(...), T5(...)) and others."""

import itertools
import math

import numpy as np
import pytest
import torch

from posenc import Positions, Stack, attend, create
from posenc.checking import laws
from posenc.encoding import PositionalEncoding
from posenc.encodings.alibi import ALiBi
from posenc.encodings.bases.temperature import FloorLogTemperature
from posenc.encodings.cayley_string import CayleySTRING
from posenc.encodings.convolutional import Convolutional
from posenc.encodings.cope import CoPE
from posenc.encodings.learned import Learned
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.selective_rope import SelectiveRoPE
from posenc.encodings.shaw import Shaw
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.encodings.t5 import T5
from posenc.encodings.wavelet import Wavelet
from posenc.encodings.xpos import XPos
from posenc.frequencies import rotary, softmax_mscale

from .by_hand import add, attention, close, draw, each, products, sees, turned

D = 6


def filled(*parts: PositionalEncoding) -> Stack:
    stack = Stack(*parts).double()
    with torch.no_grad():
        for seed, parameter in enumerate(stack.parameters()):
            parameter.copy_(torch.from_numpy(draw(50 + seed, *parameter.shape)))
    return stack


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_rotation_and_two_biases(impl):
    q, k, v = draw(1, 2, 4, 5, D), draw(2, 2, 2, 5, D), draw(3, 2, 2, 5, D)
    t5 = T5(4, n_buckets=4, max_distance=8)
    stack, rows, order = filled(RoPE(D), ALiBi(4), t5), [range(3, 8), range(5)], [range(5)] * 2
    table = t5.table.detach().numpy()  # buckets 0, 1, then 2 from distance 2 and 3 from distance 4 on

    def rotated(x):
        out = np.empty_like(x)
        for b, h, t in each(*x.shape[:3]):
            out[b, h, t] = turned(x[b, h, t], [rows[b][t] * 10000 ** (-2 * i / D) for i in range(3)], "interleaved")
        return out

    def bias(b, h, i, j):
        distance = max(i - j, 0)
        return (
            -(2.0 ** (-2 * (h + 1))) * abs(i - j)
            + table[0 if distance == 0 else 1 if distance == 1 else 2 + (distance >= 4), h]
        )

    logits = add(products(rotated(q), rotated(k)), bias)
    got = attend(*map(torch.from_numpy, (q, k, v)), stack, Positions.arange(2, 5, torch.tensor([3, 0])), impl=impl)
    close(got, attention(logits, v, sees(order, order)))


def test_embeddings_are_added_by_every_part():
    stack = filled(Sinusoidal(4), Learned(4, 9))
    x, positions = draw(4, 1, 3, 4), [2, 8, 5]
    table = stack.parts[1].table.detach().numpy()
    sine = [[f(p * w) for w in (1.0, 0.01) for f in (math.sin, math.cos)] for p in positions]
    got = stack.embed(torch.from_numpy(x), Positions.at(torch.tensor([positions])))
    close(got, x + np.array(sine)[None] + table[positions][None])


def test_biases_of_every_part_and_values_of_one():
    q, k, v = (draw(seed, 1, 1, 4, D) for seed in (1, 2, 3))
    stack, rows = filled(Shaw(D, max_distance=1), NoPE(), Shaw(D, max_distance=2, values=False)), [range(4)]
    first, second = stack.parts[0], stack.parts[2]

    def of(table, clip, i, j):
        return table.detach().numpy()[max(-clip, min(clip, j - i)) + clip]

    logits = add(
        products(q, k), lambda b, h, i, j: q[b, h, i] @ (of(first.keys, 1, i, j) + of(second.keys, 2, i, j)) / math.sqrt(D)
    )
    got = attend(*map(torch.from_numpy, (q, k, v)), stack, Positions.arange(1, 4))
    close(got, attention(logits, v, sees(rows, rows), lambda b, h, i, j: of(first.values, 1, i, j)))


class Stretched(PositionalEncoding):
    """Logits times a factor, then moved by the query's first channel: it has a finish of its own."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def finish(self, s):
        return s.mix(s.weights(s.logits * self.factor + s.q[..., :1] * s.at_k.coords[:, None, None, :]))


def test_one_part_may_finish():
    q, k, v = (draw(seed, 1, 2, 4, D) for seed in (1, 2, 3))
    rows = [range(4)]
    logits = add(products(q, k) * -2.0, lambda b, h, i, j: q[b, h, i, 0] * j)
    got = attend(*map(torch.from_numpy, (q, k, v)), Stack(NoPE(), Stretched(-2.0), NoPE()), Positions.arange(1, 4))
    close(got, attention(logits, v, sees(rows, rows)))
    with pytest.raises(ValueError, match="at most one with a finish of its own, got Stretched and Shaw"):
        Stack(Stretched(0.5), NoPE(), Shaw(D))


def test_parts_are_turned_in_the_order_given():
    """xPos before RoPE: two rotations add their angles, the decay stays."""
    x, at = torch.from_numpy(draw(5, 1, 2, 3, D)), Positions.at(torch.tensor([[3, 40, 7]]))
    for side in ("query", "key", "value", "output"):
        by_hand = RoPE(D, layout="half").rotate(XPos(D).rotate(x, at, side), at, side)
        assert torch.equal(Stack(XPos(D), RoPE(D, layout="half")).rotate(x, at, side), by_hand)
    assert not torch.equal(
        Stack(XPos(D), RoPE(D, layout="half")).rotate(x, at, "key"),
        Stack(RoPE(D, layout="half"), XPos(D)).rotate(x, at, "key"),
    )


def test_sites_and_traits_come_from_the_parts():
    assert Stack(NoPE()).seams == frozenset()
    assert Stack(Learned(4, 5), RoPE(4), ALiBi(2)).seams == {"embed", "rotate", "bias"}
    assert Stack(ALiBi(2), CoPE(4)).seams == {"bias", "finish"}
    assert Stack(RoPE(4), ALiBi(2)).traits == {"local", "shift_invariant", "norm_preserving"}
    assert Stack(RoPE(4), Learned(4, 5)).traits == {"local", "norm_preserving"}  # all parts must be invariant
    assert Stack(ALiBi(2), XPos(4)).traits == {"local", "shift_invariant", "causal_only"}  # one causal part is enough


HALF, TURNED = RoPE(8, layout="half"), RoPE(8)
RELATIVE = [
    (TURNED, RoPE(8, base=100.0)),  # rotations in the same planes commute
    (RoPE(8, rotary_dim=4), RoPE(8, rotary_dim=4, trailing=True, layout="half")),  # and those that share no channel
    (RoPE(8, rotary_dim=4), TURNED),  # the first two planes are planes of both
    (XPos(8), TURNED),
    (CayleySTRING(8), TURNED),  # the other basis comes first
    (SelectiveRoPE(8, 2, 8), TURNED),  # angles of the content, then of the position
    (Stack(TURNED, ALiBi(2)), TURNED),
    (Shaw(8), T5(2)),
]
ABSOLUTE = [
    (TURNED, HALF),
    (RoPE(8, rotary_dim=4, layout="half"), HALF),  # (0, 2) is no pair of the other
    (TURNED, CayleySTRING(8)),
    (TURNED, SelectiveRoPE(8, 2, 8)),
    (TURNED, Shaw(8)),  # q·a of a turned query
    (CoPE(8), TURNED),
    (Shaw(8), RoPE(8, sides=("value", "output"))),  # a vector of a distance, turned back by the query's position
    (Stack(TURNED, ALiBi(2)), HALF),
    (Stack(TURNED, ALiBi(2)), Wavelet(8)),
]


@pytest.mark.parametrize(("one", "other"), RELATIVE)
def test_what_stays_relative(one, other):
    assert "shift_invariant" in Stack(one, other).traits


@pytest.mark.parametrize(("one", "other"), ABSOLUTE)
def test_what_does_not_stay_relative(one, other):
    """Each part depends on distances alone, both together do not."""
    assert "shift_invariant" in one.traits & other.traits
    assert "shift_invariant" not in Stack(one, other).traits


def test_a_rotation_of_queries_or_keys_alone_is_not_relative():
    for side in ("query", "key"):
        assert "shift_invariant" not in RoPE(8, sides=(side,)).traits
        laws.shift_invariance(RoPE(8, sides=(side,)), laws.Setting())


DOZEN = {
    "learned": lambda: Learned(32, 128),
    "convolution": lambda: Convolutional(32, 4, groups=4),
    "rope": lambda: RoPE(8),
    "rope half": lambda: RoPE(8, layout="half"),
    "rove": lambda: create("rove", d_head=8),
    "xpos": lambda: XPos(8),
    "cayley": lambda: CayleySTRING(8),
    "selective": lambda: SelectiveRoPE(32, 4, 8),
    "temperature": lambda: create("log_n", trained_length=4),
    "alibi": lambda: ALiBi(4),
    "shaw": lambda: Shaw(8, max_distance=4),
    "cope": lambda: CoPE(8),
}


FINISHING = {"shaw", "cope"}  # a stack takes one of them


@pytest.mark.parametrize(
    ("first", "second"), [pair for pair in itertools.product(DOZEN, DOZEN) if not FINISHING.issuperset(pair)]
)
def test_traits_of_all_pairs_by_measurement(first, second):
    """Present traits hold, and absent ones are seen to be absent; a pair is served both ways unless it is causal only."""
    stack = laws.draw_parameters(Stack(DOZEN[first](), DOZEN[second]()), seed=1).double()
    setting = laws.Setting(dtype=torch.float64, n_kv_heads=4)
    for law in ("shift_invariance", "norm_preservation", "locality"):
        laws.check(stack, setting, [law])
    q, at = torch.randn(1, 4, 6, 8, dtype=torch.float64), Positions.arange(1, 6)
    at = stack.read_hidden(torch.randn(1, 6, 32, dtype=torch.float64), at)
    if "causal_only" in stack.traits:
        with pytest.raises(ValueError, match="causal"):
            attend(q, q, q, stack, at, causal=False)
    else:
        attend(q, q, q, stack, at, causal=False)


def test_tables_of_every_part_travel_together():
    """Prepared once, read by each part; a part alone can read the stack's positions too."""
    stack, at = filled(Sinusoidal(D), RoPE(D, layout="half"), ALiBi(2)), Positions.arange(1, 4, 7)
    prepared = stack.prepare(at, torch.float64)
    assert set(prepared.tables) == {stack.parts[0].identity, stack.parts[1].identity}
    q, k, v = (torch.from_numpy(draw(seed, 1, 2, 4, D)) for seed in (1, 2, 3))
    assert torch.equal(attend(q, k, v, stack, prepared), attend(q, k, v, stack, at))
    x = torch.from_numpy(draw(6, 1, 4, D))
    assert torch.equal(stack.embed(x, prepared), stack.embed(x, at))
    with pytest.raises(ValueError, match=r"prepared by .*used with"):
        RoPE(D).rotate(q, prepared, "query")


def test_layers_lengths_and_heads_go_to_the_parts():
    stack = filled(Learned(4, 5), T5(4, n_buckets=4, max_distance=8), ALiBi(4))
    deep = stack.at_layer(3)
    x, at = torch.zeros(1, 2, 4), Positions.arange(1, 2)
    assert torch.equal(deep.embed(x, at), x)
    assert not torch.equal(stack.at_layer(0).embed(x, at), x.double())
    assert deep.parts[1] is stack.parts[1]
    part = stack.heads(1, 3)
    assert part.parts[2].slopes == stack.parts[2].slopes[1:3]
    close(part.parts[1].table, stack.parts[1].table[:, 1:3].detach())
    assert [type(one) for one in stack.at_length(7)] == [Learned, T5, ALiBi]


def test_softmax_scale():
    assert Stack(RoPE(4), ALiBi(2)).softmax_scale(16) == 0.25
    assert Stack(T5(2, scale=1.0), T5(2, scale=1.0)).softmax_scale(16) == 1.0
    assert Stack(T5(2, scale=1.0), ALiBi(2)).softmax_scale(16) == 1.0  # ALiBi asks for none
    assert Stack(Stack(ALiBi(2)), create("pope", d_head=16, n_heads=2)).softmax_scale(32) == 0.25
    mixed = Stack(T5(2, scale=1.0), RoPE(16))
    with pytest.raises(ValueError, match=r"different softmax scales, \[0\.25, 1\.0\]"):
        mixed.softmax_scale(16)
    q = torch.zeros(1, 2, 3, 16)
    for impl in ("reference", "sdpa"):
        with pytest.raises(ValueError, match=r"different softmax scales.*give them one, or the call a `scale`"):
            attend(q, q, q, mixed, Positions.arange(1, 3), impl=impl)
        attend(q, q, q, mixed, Positions.arange(1, 3), impl=impl, scale=0.5)


def test_dape_of_neighbours_beside_a_part_without_a_bias():
    """It reads one mask for all heads; a part without a bias must not make one for each."""
    parts = create("rope", d_head=8), laws.draw_parameters(create("dape_v2", d_head=8, n_heads=2), seed=1)
    q, at = torch.randn(1, 2, 5, 8), Positions.arange(1, 5)
    turned_q = parts[0].rotate(q, at, "query")
    torch.testing.assert_close(attend(q, q, q, Stack(*parts), at), attend(turned_q, turned_q, q, parts[1], at))


def test_parameters_of_the_parts_are_the_stacks():
    stack = Stack(Learned(4, 5), ALiBi(2), T5(2))
    assert sum(parameter.numel() for parameter in stack.parameters()) == 4 * 5 + 32 * 2
    assert list(stack.state_dict()) == ["parts.0.table", "parts.2.table"]


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"parts: expected at least one encoding, got none.*NoPE"):
        Stack()
    with pytest.raises(TypeError, match=r"^parts: expected encodings, got list"):
        Stack([RoPE(4), ALiBi(2)])
    q = torch.zeros(1, 2, 3, 4)
    with pytest.raises(ValueError, match="is defined for causal attention only"):
        attend(q, q, q, Stack(ALiBi(2), XPos(4)), Positions.arange(1, 3), causal=False)
    with pytest.raises(ValueError, match="impl='sdpa' cannot express Stack"):
        attend(q, q, q, Stack(ALiBi(2), CoPE(4)), Positions.arange(1, 3), impl="sdpa")
    with pytest.raises(ValueError, match="impl='sdpa' cannot express Stack"):
        attend(q, q, q, Stack(ALiBi(2), Shaw(4)), Positions.arange(1, 3), impl="sdpa")


def test_a_temperature_has_no_say_in_the_softmax_scale():
    sharp = RoPE(16, frequencies=softmax_mscale(rotary(16), 40.0, 1.0))
    assert Stack(sharp, FloorLogTemperature(0.1, 8)).softmax_scale(16) == sharp.softmax_scale(16) != 0.25
    assert Stack(FloorLogTemperature(0.1, 8), FloorLogTemperature(0.1, 8)).softmax_scale(16) == 0.25
    assert FloorLogTemperature(0.1, 8).softmax_scale(16) is None


def test_the_largest_position_is_the_smallest_of_the_parts():
    learned, xpos = Learned(8, 50), XPos(8)
    assert learned.largest_position() == 49
    assert Learned(8, 50, clamp=True).largest_position() is None
    assert Stack(xpos, learned).largest_position() == 49
    assert Stack(xpos, ALiBi(2)).largest_position() == xpos.largest_position() == 33994
    assert Stack(ALiBi(2)).largest_position() is None
    assert xpos.largest_position(torch.float16) == 2266
