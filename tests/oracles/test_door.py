"""Bad input is refused at the door, the argument named: positions of other tokens, sides that do not exist."""

import pytest
import torch

import posenc
from posenc import Positions

EMBEDDING = {
    "sinusoidal": lambda: posenc.create("sinusoidal", d_model=4),
    "learned": lambda: posenc.create("learned", d_model=4, max_positions=8),
    "floater": lambda: posenc.create("floater", d_model=4),
}
ROTATING = {name: (lambda name=name: posenc.create(name, d_head=4)) for name in ("rope", "xpos")}


@pytest.mark.parametrize("name", EMBEDDING)
@pytest.mark.parametrize(("rows", "length"), [(2, 3), (2, 1), (3, 2)])
def test_embeddings_at_positions_of_other_tokens(name, rows, length):
    with pytest.raises(ValueError, match=rf"has positions \[{rows}, {length}\] for tokens \[2, 2\]"):
        EMBEDDING[name]().embed(torch.zeros(2, 2, 4), Positions.arange(rows, length))


@pytest.mark.parametrize("name", ROTATING)
@pytest.mark.parametrize(("rows", "length"), [(2, 3), (2, 1), (3, 2)])
def test_heads_at_positions_of_other_tokens(name, rows, length):
    with pytest.raises(ValueError, match=rf"has positions \[{rows}, {length}\] for tokens \[2, 2\]"):
        ROTATING[name]().rotate(torch.zeros(2, 1, 2, 4), Positions.arange(rows, length), "key")


@pytest.mark.parametrize("name", ROTATING)
def test_one_row_of_positions_serves_every_row(name):
    x = torch.randn(3, 1, 2, 4)
    alone = torch.cat([ROTATING[name]().rotate(x[row : row + 1], Positions.arange(1, 2, 5), "key") for row in range(3)])
    assert torch.equal(ROTATING[name]().rotate(x, Positions.arange(1, 2, 5), "key"), alone)


@pytest.mark.parametrize("name", ROTATING)
def test_sides(name):
    encoding, x, at = ROTATING[name](), torch.randn(1, 1, 2, 4), Positions.arange(1, 2, 5)
    for side in ("query", "key"):
        assert not torch.equal(encoding.rotate(x, at, side), x)
    for side in ("value", "output"):
        assert torch.equal(encoding.rotate(x, at, side), x)
    with pytest.raises(ValueError, match=r"side: expected one of 'query', 'key', 'value', 'output', got 'qeury'"):
        encoding.rotate(x, at, "qeury")


def test_the_base_class_knows_the_same_sides():
    """It turns nothing, and refuses a side that does not exist all the same."""
    encoding, x, at = posenc.create("nope"), torch.randn(1, 1, 2, 4), Positions.arange(1, 2, 5)
    for side in ("query", "key", "value", "output"):
        assert encoding.rotate(x, at, side) is x
    with pytest.raises(ValueError, match=r"side: expected one of .query., .key., .value., .output., got .qeury."):
        encoding.rotate(x, at, "qeury")


def test_builders():
    with pytest.raises(ValueError, match="lengths: expected tokens already seen, 0 or more, got -1"):
        Positions.decode([3, -1])
    with pytest.raises(ValueError, match="parts: expected at least one Positions, got none"):
        Positions.cat([])
    for batch in ("2", 2.0, True, -1):
        with pytest.raises(ValueError, match=f"batch: expected a whole number from 0, got {batch!r}"):
            Positions.arange(batch, 3)


def test_things_that_are_no_encoding_name_or_tensor():
    x = torch.zeros(1, 1, 2, 4)
    with pytest.raises(TypeError, match="name: expected a string, got None"):
        posenc.create(None)
    with pytest.raises(TypeError, match=r"encoding: expected a PositionalEncoding such as .* got 'rope'"):
        posenc.attend(x, x, x, "rope", Positions.arange(1, 2))
    with pytest.raises(TypeError, match=r"encoding: expected a PositionalEncoding such as .* got 'rope'"):
        posenc.Attention(8, 2, "rope")
    with pytest.raises(TypeError, match="k: expected a tensor, got list"):
        posenc.attend(x, [0.0], x, posenc.create("nope"), Positions.arange(1, 2))


X = torch.zeros(2, 2, 3, 4)
AT = Positions.arange(2, 3)
WRONG = {
    "encoding": ((X, X, X, "rope", AT, AT), TypeError, "encoding: expected a PositionalEncoding"),
    "no tensor": ((X, [0.0], X, posenc.create("nope"), AT, AT), TypeError, "k: expected a tensor, got list"),
    "axes": ((X[0], X, X, posenc.create("nope"), AT, AT), ValueError, r"q: expected \[batch, heads, tokens, channels\]"),
    "dtypes": ((X, X.double(), X, posenc.create("nope"), AT, AT), TypeError, "k: expected one floating dtype"),
    "shapes": ((X, X[..., :2], X, posenc.create("nope"), AT, AT), ValueError, "q, k, v: expected"),
    "heads": ((X, X[:, :0], X[:, :0], posenc.create("nope"), AT, AT), ValueError, "q, k: 2 query heads cannot be shared"),
    "no positions": ((X, X, X, posenc.create("nope"), AT, 3), TypeError, "at_k: expected Positions, got int"),
    "length": ((X, X, X, posenc.create("nope"), AT, Positions.arange(2, 4)), ValueError, "at_k: has positions"),
    "layers": (
        (X, X, X, posenc.PerLayer([posenc.create("nope")]), AT, AT),
        ValueError,
        "encoding: expected the encoding of one layer, got PerLayer",
    ),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("function", [posenc.attend, posenc.attend_rotated], ids=lambda function: function.__name__)
def test_both_ways_to_attend_refuse_the_same(function, name):
    arguments, error, said = WRONG[name]
    with pytest.raises(error, match=said):
        function(*arguments)
    with pytest.raises(ValueError, match=r"causal=False: .* is defined for causal attention only"):
        function(X, X, X, posenc.create("cope", d_head=4, n_heads=2), AT, AT, causal=False)
