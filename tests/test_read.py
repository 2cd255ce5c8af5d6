"""Encodings that read hidden states: `Attention`, its cache, the laws and the lab's model hand them over."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from posenc import Attention, PositionalEncoding, Positions, Stack, create
from posenc.checking import laws
from posenc.checking.laws import Setting, draw_parameters
from posenc.encoding import BiasFn
from posenc.encodings.alibi import ALiBi
from posenc.encodings.bases.distance_bank import DistanceBank
from posenc.encodings.of_families.t5_content import T5OfContent
from posenc.encodings.of_families.t5_gated import GatedT5
from posenc.encodings.rope import RoPE
from posenc.support.tensors import full_precision
from sampling import one_in


class Forgetting(PositionalEncoding):
    """A forget gate: logits += S_i - S_j, S_t the sum of log σ(w·x) up to t (Lin et al. 2025, "Forgetting Transformer")."""

    traits = frozenset({"local", "shift_invariant", "norm_preserving", "causal_only"})
    reads_vectors = False
    learned_tables = True

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__(d_model=d_model, n_heads=n_heads)
        self.gate = torch.nn.Parameter(torch.zeros(n_heads, d_model))

    def read_hidden(self, x, at, past=None):
        with full_precision(x):
            total = F.logsigmoid(F.linear(x, self.gate.to(x.dtype))).cumsum(dim=1)  # [b, t, h]
        if past is not None and past.length:
            total = total + past.states[self.identity][0][:, -1:]
        at = at.expand(x.shape[0])
        return at.replaced(states={**at.states, self.identity: (total,)})

    def bias(self, q, k, at_q, at_k) -> BiasFn:
        query, key = at_q.states[self.identity][0].to(q.dtype), at_k.states[self.identity][0].to(q.dtype)
        return lambda b, h, i, j: query[b, i, h] - key[b, j, h]

    @torch.no_grad()
    def heads(self, start, stop):
        part = Forgetting(self.configuration["d_model"], stop - start).to(self.gate)
        part.gate.copy_(self.gate[start:stop])
        return part


class Placed(RoPE):
    """RoPE at positions that the token moves a little, as RePo does: `read_hidden` gives other coordinates."""

    def __init__(self, d_head: int, d_model: int) -> None:
        super().__init__(d_head)
        self._configure(**self.configuration, d_model=d_model)
        self.move = torch.nn.Parameter(torch.zeros(d_model))

    def prepare(self, at, dtype=torch.float32):
        return at  # where the tokens stand is known once they have been read

    def read_hidden(self, x, at, past=None):
        at = at.expand(x.shape[0])
        with full_precision(x):
            return at.replaced(coords=at.coords + (x.double() @ self.move.double()).tanh(), tables={})


class Forgetful(Forgetting):
    """A mistake: what came before is forgotten, so that a decoded token counts from itself."""

    def read_hidden(self, x, at, past=None):
        return super().read_hidden(x, at)


D, H, DH = 32, 4, 8
READERS = {
    "distance_bank": lambda: DistanceBank(H, D, profiles=3, extent=9),
    "distance_bank with a floor": lambda: DistanceBank(H, D, profiles=3, extent=9, floor=4),
    "t5_content": lambda: T5OfContent(H, D, n_buckets=8, max_distance=20),
    "t5_gated": lambda: GatedT5(H, DH, n_buckets=8, max_distance=20),
    "forgetting": lambda: Forgetting(D, H),
    "placed": lambda: Placed(DH, D),
    "in a stack": lambda: Stack(RoPE(DH), Forgetting(D, H), ALiBi(H)),
}


def made(name: str) -> Attention:
    torch.manual_seed(3)
    encoding = draw_parameters(READERS[name]())
    return Attention(D, H, encoding, n_kv_heads=2).double()


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(2, 9, D, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


def near(mine: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", READERS)
def test_what_is_read_matters(name, x):
    """Attention with the parameters that read set to zero gives something else: the rest tests something."""
    layer, at = made(name), Positions.arange(2, 9)
    out = layer(x, at)
    with torch.no_grad():
        for label, parameter in layer.encoding.named_parameters():
            if label.rpartition(".")[2] in ("project", "gate", "move"):
                parameter.zero_()
    assert (layer(x, at) - out).abs().max() > 1e-3


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("chunks", [(4, 1, 1, 3), (1,) * 9, (8, 1)], ids=str)
def test_decoding_gives_what_the_prefill_gives(name, chunks, x):
    layer = made(name)
    expected = layer(x, Positions.arange(2, 9))
    cache, outputs, begin = None, [], 0
    for size in chunks:
        at = Positions.arange(2, size, begin) if size > 1 else Positions.decode([begin, begin])
        out, cache = layer.decode(x[:, begin : begin + size], at, cache)
        outputs.append(out)
        begin += size
    near(torch.cat(outputs, dim=1), expected)


@pytest.mark.parametrize("name", READERS)
def test_prepared_positions_may_be_decoded(name, x):
    layer = made(name)
    expected = layer(x, Positions.arange(2, 9))
    prepared = lambda at: layer.encoding.prepare(at, torch.float64)  # noqa: E731
    near(layer(x, prepared(Positions.arange(2, 9))), expected)
    first, cache = layer.decode(x[:, :8], prepared(Positions.arange(2, 8)))
    last, _ = layer.decode(x[:, 8:], prepared(Positions.decode([8, 8])), cache)
    near(torch.cat([first, last], dim=1), expected)


@pytest.mark.parametrize("name", READERS)
def test_packed_documents_give_what_each_gives_alone(name, x):
    layer, ends = made(name), [0, 4, 9]
    together = layer(x[:1], Positions.packed(ends))
    for begin, end in itertools.pairwise(ends):
        near(together[:, begin:end], layer(x[:1, begin:end], Positions.arange(1, end - begin)))


@pytest.mark.parametrize("name", READERS)
def test_padding_changes_nothing(name, x):
    layer = made(name)
    mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1, 0, 0]] * 2)
    near(layer(x, Positions.from_mask(mask))[:, 2:7], layer(x[:, 2:7], Positions.arange(2, 5)))


GRAPH = "one_graph_over_lengths"


@pytest.mark.acceptance
@pytest.mark.parametrize("name", (name for name in READERS if "floor" not in name))
def test_one_graph_for_encodings_that_read(name):
    laws.check(draw_parameters(READERS[name]()), Setting(d_model=D, n_heads=H), [GRAPH])


@pytest.mark.parametrize("name", one_in(12, (name for name in READERS if "floor" not in name)))
def test_laws_hold_for_encodings_that_read(name):
    encoding = draw_parameters(READERS[name]())
    found = laws.report(encoding, Setting(d_model=D, n_heads=H), [law for law in laws.LAWS if law != GRAPH])
    broken = [f"{one.law}: {one.detail}" for one in found if one.held is False]
    assert not broken


def test_the_laws_see_what_was_forgotten():
    tried = ["decode_equals_prefill", "packed_equals_separate"]
    report = laws.report(draw_parameters(Forgetful(D, H)), Setting(d_model=D, n_heads=H), tried)
    found = {one.law: one.held for one in report}
    assert found["decode_equals_prefill"] is False
    assert found["packed_equals_separate"]


def test_the_forget_gate_is_the_papers_formula(x):
    layer = made("forgetting")
    out = layer(x[:1, :3], Positions.arange(1, 3))
    q, k, v = (one(x[0, :3]).unflatten(-1, (-1, DH)) for one in (layer.query, layer.key, layer.value))
    gates = [[torch.sigmoid(layer.encoding.gate[h] @ x[0, t]).item() for t in range(3)] for h in range(H)]
    rows = []
    for i in range(3):
        heads = []
        for h in range(H):
            logits = [
                (q[i, h] @ k[j, h // 2]).item() / math.sqrt(DH) + sum(math.log(gates[h][t]) for t in range(j + 1, i + 1))
                for j in range(i + 1)
            ]
            weights = torch.tensor(logits, dtype=torch.float64).softmax(0)
            heads.append(sum(weights[j] * v[j, h // 2] for j in range(i + 1)))
        rows.append(torch.cat(heads))
    near(out[0], layer.out(torch.stack(rows)))


def test_states_travel_with_the_positions(x):
    encoding = Forgetting(D, H)
    at = encoding.read_hidden(x, Positions.arange(2, 9))
    state = at.states[encoding.identity][0]
    assert torch.equal(at.take(torch.tensor([4, 1])).states[encoding.identity][0], state[:, [4, 1]])
    whole = Positions.cat([at, at])
    assert torch.equal(whole.states[encoding.identity][0], torch.cat([state, state], dim=1))
    leaves, spec = torch.utils._pytree.tree_flatten(at)
    again = torch.utils._pytree.tree_unflatten(leaves, spec)
    assert torch.equal(again.states[encoding.identity][0], state)
    assert not at.shift(1).states
    part = at.narrow(2, 5)
    assert torch.equal(part.states[encoding.identity][0], state[:, 2:5])
    assert part.coords.tolist() == [[2, 3, 4]] * 2
    assert part.consecutive_in == "row"
    assert at.replaced(coords=at.coords * 2).consecutive_in is None  # nobody has looked
    assert at.replaced(states={}).consecutive_in == "row"
    assert PositionalEncoding().read_hidden(x, at) is at


@pytest.mark.parametrize(("name", "kept"), [("sinusoidal", 0), ("rope", 0), ("transformer_xl", 0), ("rerope", 1)])
def test_the_cache_keeps_the_tables_that_a_bias_may_read_and_no_others(name, kept):
    torch.manual_seed(0)
    layer = Attention(16, 2, create(name, d_model=16, n_heads=2))
    at, x = layer.encoding.prepare(Positions.arange(2, 6)), torch.randn(2, 6, 16)
    first, cache = layer.decode(x[:, :5], at.narrow(0, 5))
    last, cache = layer.decode(x[:, 5:], at.narrow(5, 6), cache)
    assert len(cache.at.tables) == kept
    torch.testing.assert_close(torch.cat([first, last], dim=1), layer(x, at))
