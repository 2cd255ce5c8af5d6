"""Who an encoding is: two that differ anywhere in their configuration never use each other's tables."""

import copy
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from posenc import Attention, PerLayer, PositionalEncoding, Positions, Stack, attend, create
from posenc.checking import laws
from posenc.encodings.bases.learned_rope import LeRoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.frequencies import Frequencies, rotary
from posenc.support.identity import Configuration
from posenc.support.tensors import tables_at


class Table(PositionalEncoding):
    """A stranger's encoding: its tables are rows of a tensor that it was given."""

    def __init__(self, rows: torch.Tensor, **more: object) -> None:
        super().__init__(rows=rows, **more)
        self.rows = rows

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[torch.Tensor]:
        return (self.rows.to(dtype)[at.coords],)

    def embed(self, x: torch.Tensor, at: Positions) -> torch.Tensor:
        return x + tables_at(self, at, x.dtype)[0]


@pytest.mark.parametrize("size", [64, 1000])
def test_tensors_that_differ_in_one_inner_entry_are_two_identities(size):
    """The printed form of both is the same; with it as identity, one used the other's tables: 0.0 instead of 9.0."""
    zeros = torch.zeros(size, size)
    other = zeros.clone()
    other[size // 2, size // 2] = 9.0
    assert repr(zeros) == repr(other)
    first, second = Table(zeros), Table(other)
    assert first.identity != second.identity
    at = Positions.arange(1, size)
    x = torch.zeros(1, size, size)
    assert second.embed(x, second.prepare(at))[0, size // 2, size // 2] == 9.0
    with pytest.raises(ValueError, match="positions: prepared by Table"):
        second.embed(x, first.prepare(at))
    assert torch.equal(second.embed(x, Table(other.clone()).prepare(at)), second.embed(x, at))


CHANGES = {
    "dtype": lambda t: t.double(),
    "shape": lambda t: t.reshape(2, 8),
    "sign": lambda t: -t,
    "order": lambda t: t.flip(0),
    "complex": lambda t: t + 0j,
    "array": lambda t: t.numpy(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_dtype_shape_and_every_bit_of_a_tensor_count(change):
    rows = torch.arange(16.0).reshape(4, 4)
    assert PositionalEncoding(rows=rows).identity == PositionalEncoding(rows=rows.T.contiguous().T).identity
    assert PositionalEncoding(rows=change(rows)).identity != PositionalEncoding(rows=rows).identity


NEARLY = [
    (1, 1.0),
    (1, True),
    (1.0, math.nextafter(1.0, 2)),
    (0.0, -0.0),
    ("1", 1),
    (None, "None"),
    (b"1", "1"),
    ((1, 2), (1, (2,))),
    ((1, 2), (12,)),
    (("a", "b"), ("a, b",)),
    ((1.0, 2.0), (1.0, 2)),
    ((1.0,), (1.0, 1.0)),
    ((0.0,), (-0.0,)),
    ({"a": 1}, {"a": 2}),
    ({"a": 1}, (("a", 1),)),
    (torch.float32, "torch.float32"),
    (math.sin, math.cos),
    (np.zeros(3), np.zeros((3, 1))),
    (RoPE(8), RoPE(8, base=500.0)),
    (rotary(8), replace(rotary(8), cos_sin_scale=1 + 1e-12)),
]


@pytest.mark.parametrize(("one", "other"), NEARLY, ids=lambda value: repr(value)[:30])
def test_values_that_look_alike_are_told_apart(one, other):
    first, second = PositionalEncoding(value=one), PositionalEncoding(value=other)
    assert first.identity != second.identity
    assert first.configuration != second.configuration
    assert PositionalEncoding(value=copy.deepcopy(one)).identity == first.identity
    assert hash(PositionalEncoding(value=copy.deepcopy(one)).configuration) == hash(first.configuration)


def test_classes_and_names_count():
    class Other(PositionalEncoding):
        pass

    assert Other(a=1).identity != PositionalEncoding(a=1).identity
    assert PositionalEncoding(a=1).identity != PositionalEncoding(b=1).identity
    assert PositionalEncoding(a=1, b=2).identity == PositionalEncoding(b=2, a=1).identity.replace("b=2, a=1", "a=1, b=2")


def test_what_cannot_be_told_by_value_is_like_nothing_else():
    """A lambda, a parameter and a tensor without data: every such encoding is one of its own, and knows itself."""
    for value in (lambda t: t, torch.nn.Parameter(torch.zeros(2)), torch.zeros(2, device="meta"), object()):
        first, second = PositionalEncoding(value=value), PositionalEncoding(value=value)
        assert first.identity != second.identity
        assert first.identity == first.identity


def test_a_configuration_is_frozen():
    rows, sizes = torch.zeros(3), [1, 2]
    mine = PositionalEncoding(rows=rows, sizes=sizes)
    rows += 1
    sizes.append(3)
    assert mine.configuration["rows"].sum() == 0
    assert mine.configuration["sizes"] == (1, 2)
    with pytest.raises(TypeError):
        mine.configuration["sizes"] = (3,)
    assert mine.configuration == {"rows": torch.zeros(3), "sizes": (1, 2)}
    assert mine.configuration | {"sizes": 5} == Configuration({"rows": torch.zeros(3), "sizes": 5})


def test_copies_share_fixed_tables_and_refuse_learned_ones():
    at = Positions.arange(1, 3)
    for copied in (copy.deepcopy, lambda encoding: pickle.loads(pickle.dumps(encoding))):
        fixed, learned = RoPE(8, base=500.0), LeRoPE(8)
        assert copied(fixed).identity == fixed.identity
        assert copied(learned).identity != learned.identity
        assert copied(learned).configuration == learned.configuration
        q = torch.zeros(1, 1, 3, 8)
        attend(q, q, q, copied(fixed), fixed.prepare(at))
        attend(q, q, q, learned, learned.prepare(at))
        with pytest.raises(ValueError, match="positions: prepared by LeRoPE"):
            attend(q, q, q, copied(learned), learned.prepare(at))


def test_constructors_that_fill_in_a_default_have_the_identity_of_those_told_it():
    assert RoPE(8).identity == RoPE(8, base=10000.0, rotary_dim=8, axes=1).identity
    assert RoPE(8).identity != RoPE(8, trailing=True).identity
    assert Sinusoidal(8, base=[2.0, 3.0], axes=2).identity == Sinusoidal(8, base=(2.0, 3.0), axes=2).identity
    assert RoPE(8, frequencies=Frequencies((1.0,))).identity != RoPE(8, frequencies=Frequencies((1.0 + 2**-52,))).identity


AT, QKV = Positions.arange(1, 4), [torch.zeros(1, 1, 4, 8)] * 3


def test_errors_say_arguments_and_no_digests():
    """A reader can do nothing with #487fd691; two encodings of the same arguments are told apart in words."""
    scaled = create("yarn", d_head=8, factor=4.0)
    assert "#" in scaled.identity
    calls = [
        lambda: attend(*QKV, create("xpos", d_head=8), AT, causal=False),
        lambda: attend(*QKV, scaled, create("rope", d_head=8).prepare(AT)),
        lambda: attend(*QKV, Stack(scaled, create("cope", d_head=8)), AT, impl="sdpa"),
        lambda: Attention(8, 1, create("lerope", d_head=8))(QKV[0][0], create("lerope", d_head=8).prepare(AT)),
    ]
    for call in calls:
        with pytest.raises(ValueError) as error:  # noqa: PT011 the message is what is tested
            call()
        assert "#" not in str(error.value), error.value
    assert "used with another LeRoPE(d_head=8" in str(error.value)


class Turn(PositionalEncoding):
    """The first two channels turned by p/scale. Its constructor keeps `scale` from the configuration."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def tables(self, at, dtype):
        angle = at.coords.double() / self.scale
        return angle.cos().to(dtype), angle.sin().to(dtype)

    def rotate(self, x, at, side, out=None):
        if side in ("value", "output"):
            return x
        cos, sin = (table[:, None, :] for table in tables_at(self, at, x.dtype))
        first, second = x[..., 0], x[..., 1]
        return torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1)


def test_encodings_whose_arguments_are_not_in_the_configuration_share_no_tables():
    layers, at = PerLayer([Turn(1.0), Turn(100.0)]), Positions.arange(1, 10)
    prepared, q = layers.prepare(at), torch.randn(1, 2, 10, 2)
    for n in (0, 1):
        one = layers.at_layer(n)
        assert torch.equal(one.rotate(q, prepared, "query"), one.rotate(q, at, "query"))
    with pytest.raises(ValueError, match=r"prepared by Turn\(\), used with another Turn\(\)"):
        Turn(100.0).rotate(q, Turn(1.0).prepare(at), "query")
    with pytest.raises(laws.LawBroken, match=r"Turn's configuration lacks its argument scale: .*__init__\(scale=scale\)"):
        laws.check(Turn(1.0), laws.Setting(d_model=4, n_heads=2), ["state_is_configuration"])
