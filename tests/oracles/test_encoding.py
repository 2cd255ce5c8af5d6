"""The contract: tables and their owner, state that nothing can touch, checks at the door."""

import copy
import pickle
import re

import pytest
import torch

from posenc import Positions, attend
from posenc.encoding import DistanceBias, PositionalEncoding
from posenc.encodings.alibi import ALiBi
from posenc.encodings.floater import FLOATER
from posenc.encodings.learned import Learned
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.encodings.transformer_xl import TransformerXL
from posenc.encodings.xpos import XPos
from posenc.support.identity import label
from posenc.support.tensors import working_dtype

from .by_hand import attention, close, draw, products, sees

# Each with a call that reads its tables.
WITH_TABLES = {
    "sinusoidal": (lambda: Sinusoidal(8), lambda e, x, at: e.embed(x[:, 0], at)),
    "rope": (lambda: RoPE(8), lambda e, x, at: e.rotate(x, at, "query")),
    "xpos": (lambda: XPos(8), lambda e, x, at: e.rotate(x, at, "key")),
}
FIXED = {**WITH_TABLES, "alibi": (lambda: ALiBi(2), lambda e, x, at: attend(x, x, x, e, at))}
FAR = torch.tensor([[0, 1, 511, 4095, 30000]])


def call(name, encoding, at, dtype=torch.float32):
    x = torch.from_numpy(draw(1, 1, 2, at.length, 8)).to(dtype)
    return FIXED[name][1](encoding, x, at)


# Tables


@pytest.mark.parametrize("name", WITH_TABLES)
def test_prepared_tables_are_used_and_give_the_same(name):
    encoding, at = WITH_TABLES[name][0](), Positions.at(FAR)
    prepared = encoding.prepare(at)
    assert torch.equal(call(name, encoding, prepared), call(name, encoding, at))
    assert at.tables == {}
    zeroed = copy.copy(prepared)
    object.__setattr__(zeroed, "tables", {encoding.identity: tuple(t * 0 for t in prepared.tables[encoding.identity])})
    assert not torch.equal(call(name, encoding, zeroed), call(name, encoding, at))


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (lambda: RoPE(8), lambda: RoPE(8, base=500.0)),
        (lambda: RoPE(8), lambda: RoPE(8, reverse=True)),
        (lambda: RoPE(8), lambda: RoPE(8, layout="half")),
        (lambda: XPos(8), lambda: XPos(8, gamma=0.5)),
        (lambda: XPos(8), lambda: RoPE(8)),
        (lambda: Sinusoidal(8), lambda: Sinusoidal(8, offset=2)),
        (lambda: Sinusoidal(8), lambda: Sinusoidal(8, layout="sin_cos")),
        (lambda: Sinusoidal(8), lambda: Sinusoidal(8, denominator="d/2-1")),
        (lambda: TransformerXL(8, 2, d_head=8), lambda: TransformerXL(8, 2, d_head=8, base=9.0)),
    ],
)
def test_tables_of_another_owner_raise(mine, theirs):
    """Every part of the configuration counts, and the message names both."""
    encoding, other = mine(), theirs()
    at = other.prepare(Positions.arange(1, 3))
    x = torch.zeros(1, 2, 3, 8)
    read = (lambda: encoding.embed(x[:, 0], at)) if "embed" in encoding.seams else lambda: attend(x, x, x, encoding, at)
    with pytest.raises(ValueError, match=r"prepared by .*, used with .*call prepare") as error:
        read()
    assert label(other) in str(error.value)
    assert label(encoding) in str(error.value)


def test_an_equal_configuration_is_the_same_owner():
    at = RoPE(8).prepare(Positions.arange(1, 3))
    x = torch.ones(1, 1, 3, 8)
    assert torch.equal(RoPE(8).rotate(x, at, "query"), RoPE(8).rotate(x, Positions.arange(1, 3), "query"))


def test_floater_tables_belong_to_the_instance():
    """Its tables hold the values of parameters, so an equal configuration is not enough."""
    torch.manual_seed(0)
    first, second = FLOATER(4), FLOATER(4)
    prepared, x = first.prepare(Positions.arange(1, 3)), torch.zeros(1, 3, 4)
    assert not torch.equal(first.embed(x, prepared), second.embed(x, Positions.arange(1, 3)))
    with pytest.raises(ValueError, match="prepared by"):
        second.embed(x, prepared)


@pytest.mark.parametrize("name", WITH_TABLES)
def test_tables_of_the_wrong_precision_raise(name):
    encoding, at = WITH_TABLES[name][0](), Positions.arange(1, 3)
    with pytest.raises(ValueError, match=r"prepared in torch\.float32, but torch\.float64 needs torch\.float64"):
        call(name, encoding, encoding.prepare(at), torch.float64)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        with pytest.raises(ValueError, match=r"prepared in torch\.float64, but torch\..*needs torch\.float32"):
            call(name, encoding, encoding.prepare(at, torch.float64), dtype)
        assert call(name, encoding, encoding.prepare(at), dtype).dtype == dtype


def test_encodings_without_tables_read_anybodys_positions():
    at = RoPE(8).prepare(Positions.arange(1, 3))
    assert Learned(4, 9).prepare(at) is at
    assert torch.equal(Learned(4, 9).embed(torch.zeros(1, 3, 4), at).detach(), torch.zeros(1, 3, 4)) is False
    assert torch.equal(call("alibi", ALiBi(2), at), call("alibi", ALiBi(2), Positions.arange(1, 3)))


def test_one_coordinate_per_token_is_a_row_of_numbers():
    """[b, t, 1] says an axis that a 1-D encoding does not read."""
    at = Positions.at(torch.tensor([[[0], [1], [5]]]))
    x = torch.zeros(1, 2, 3, 8)
    for encoding in (RoPE(8), XPos(8), ALiBi(2), TransformerXL(8, 2, d_head=8)):
        with pytest.raises(ValueError, match=r"reads 1 coordinate\(s\) per token, got coords \[1, 3, 1\]"):
            attend(x, x, x, encoding, at)
    with pytest.raises(ValueError, match=r"reads 1 coordinate\(s\) per token"):
        Sinusoidal(8).embed(x[:, 0], at)


def test_working_dtype():
    assert working_dtype(torch.float64) == torch.float64
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert working_dtype(dtype) == torch.float32


# State


@pytest.mark.parametrize(
    "abuse",
    [
        lambda e: e.half(),
        lambda e: e.to(torch.bfloat16).float(),
        lambda e: e.double(),
        lambda e: e.to("meta").to_empty(device="cpu"),
        lambda e: e.apply(lambda m: [torch.nn.init.normal_(p) for p in m.parameters()]) and e,
        copy.deepcopy,
        lambda e: pickle.loads(pickle.dumps(e)),
        lambda e: e.eval().requires_grad_(False),
    ],
    ids=["half A2", "bf16 and back A2", "double A2", "to_empty B1", "weight init B3", "deepcopy", "pickle", "frozen"],
)
@pytest.mark.parametrize("name", FIXED)
def test_nothing_done_to_the_module_changes_its_output(name, abuse):
    at, fresh = Positions.at(FAR), FIXED[name][0]()
    expected = call(name, fresh, at)
    assert torch.equal(call(name, abuse(FIXED[name][0]()), at), expected)
    fresh.load_state_dict({}, strict=True)
    assert torch.equal(call(name, fresh, at), expected)


# The base class and those that follow from it


def test_base_class_is_no_encoding():
    q, k, v = (draw(seed, 1, 2, 3, 4) for seed in (1, 2, 3))
    got = attend(*map(torch.from_numpy, (q, k, v)), PositionalEncoding(), Positions.arange(1, 3))
    close(got, attention(products(q, k), v, sees([range(3)], [range(3)])))
    assert PositionalEncoding().traits == NoPE().traits == {"local", "shift_invariant", "norm_preserving"}


class Cubed(DistanceBias):
    """A bias that tells the sign and size of every distance."""

    def at_distance(self, delta):
        return torch.stack([delta.double() ** 3 / 1000, delta.double() + 0.5])


@pytest.mark.parametrize(("start_q", "start_k"), [(0, 0), (7, 2), (1, 30)])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (4, 4), (2, 5), (5, 2), (1, 6), (6, 1)])
def test_distance_bias_of_consecutive_positions(queries, keys, start_q, start_k):
    """query - key, for every pair, from one vector of queries + keys - 1 entries."""
    starts = torch.tensor([0, 100])
    at_q = Positions.arange(2, queries, start_q).shift(starts)
    at_k = Positions.arange(2, keys, start_k)
    q, k = torch.zeros(2, 2, queries, 3, dtype=torch.float64), torch.zeros(2, 2, keys, 3, dtype=torch.float64)
    any_q, any_k = at_q.take(torch.arange(queries)), at_k.take(torch.arange(keys))
    biases = [Cubed().bias(q, k, *both) for both in ((at_q, at_k), (any_q, any_k))]
    for b in range(2):
        for i in range(queries):
            for j in range(keys):
                delta = int(starts[b]) + start_q + i - start_k - j
                for of_pair in biases:
                    got = [of_pair(*map(torch.tensor, (b, h, i, j))).item() for h in range(2)]
                    assert got == [delta**3 / 1000, delta + 0.5]


def test_distance_bias_of_a_run_and_scattered_positions():
    """A run on one side only is no run of distances."""
    run, scattered = Positions.arange(1, 3, 5), Positions.at(torch.tensor([[9, 2, 2, 40]]))
    for at_q, at_k in ((run, scattered), (scattered, run)):
        q, k = (torch.zeros(1, 2, at.length, 3, dtype=torch.float64) for at in (at_q, at_k))
        of_pair = Cubed().bias(q, k, at_q, at_k)
        for i, query in enumerate(at_q.coords[0].tolist()):
            for j, key in enumerate(at_k.coords[0].tolist()):
                assert of_pair(*map(torch.tensor, (0, 0, i, j))).item() == (query - key) ** 3 / 1000


def test_configuration_is_said_in_the_representation():
    """The arguments that differ from their defaults, as they were filled in; the owner adds a digest of all of them."""
    assert repr(RoPE(8, base=500.0)) == "RoPE(d_head=8, base=500.0, rotary_dim=8, axes=1)"
    assert re.fullmatch(r"RoPE\(d_head=8, base=500\.0, rotary_dim=8, axes=1\) #[0-9a-f]{16}", RoPE(8, base=500.0).identity)
    assert repr(ALiBi(2)) == "ALiBi(n_heads=2, slopes=(0.0625, 0.00390625))"
