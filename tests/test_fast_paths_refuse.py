"""Calls that a fast path would get wrong, each with the result of the definition, `impl="reference"`."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from posenc import Positions, attend, create
from posenc.encoding import DistanceBias
from posenc.encodings.rope import RoPE
from posenc.structure import rotated


def drawn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def both(q, k, v, encoding, *at, **options):
    """The outputs of "auto" and of the definition."""
    return [attend(q, k, v, encoding, *at, impl=impl, **options) for impl in ("auto", "reference")]


def agree(q, k, v, encoding, *at, **options):
    found, expected = both(q, k, v, encoding, *at, **options)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["shaw", "transformer_xl", "alibi", "rope"])
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("queries", [1, 5, 70])
def test_channels_that_are_not_side_by_side(name, which, queries):
    options = {"shaw": {"d_head": 16, "values": False}, "transformer_xl": {"d_model": 32, "n_heads": 2, "d_head": 16}}
    encoding = create(name, **options.get(name, {"d_head": 16} if name == "rope" else {"n_heads": 2}))
    for rows in (1, 2):
        tensors = [drawn(seed, rows, 2, 70, 16) for seed in range(3)]
        tensors[0] = tensors[0][:, :, :queries]
        tensors[which] = tensors[which].transpose(2, 3).contiguous().transpose(2, 3)
        agree(*tensors, encoding, Positions.arange(rows, queries, 70 - queries), Positions.arange(rows, 70))
    tensors = [drawn(seed, 1, 2, 70, 16) for seed in range(3)]
    tensors[which] = tensors[which][..., :1].expand(-1, -1, -1, 16)
    agree(*tensors, encoding, Positions.arange(1, 70))


@pytest.mark.parametrize("name", ["nope", "alibi", "shaw", "rope", "transformer_xl"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("part", [(4, 8), (4, 5), (0, 4)])
def test_parts_of_packed_positions_keep_their_documents(name, causal, part):
    if name == "alibi" and not causal:
        return
    sizes = {"nope": {}, "alibi": {"n_heads": 2}, "shaw": {"d_head": 16}, "rope": {"d_head": 16}}
    encoding = create(name, **sizes.get(name, {"d_model": 32, "n_heads": 2, "d_head": 16}))
    at = Positions.packed([0, 4, 8])
    for keys in ((0, 4), (4, 8)):
        q = drawn(0, 1, 2, part[1] - part[0], 16)
        k, v = (drawn(seed, 1, 2, 4, 16) for seed in (1, 2))
        agree(q, k, v, encoding, at.narrow(*part), at.narrow(*keys), causal=causal)


def test_a_document_alone_is_consecutive():
    at = Positions.packed([0, 4, 8]).narrow(4, 8)
    assert at.consecutive_in == "document"
    alone = at.single_document()
    assert alone.consecutive_in == "row"
    assert alone.document.tolist() == [[0, 0, 0, 0]]
    assert torch.equal(alone.coords, at.coords)


@pytest.mark.parametrize("name", ["alibi", "t5", "kerple", "fire", "rope", "nope", "transformer_xl"])
@pytest.mark.parametrize(
    "options", [{"window": (5, 0)}, {"chunk": 64}, {"window": (5, 0), "return_lse": True}, {"window": (3, 2)}]
)
@pytest.mark.parametrize(("queries", "start"), [(7, 100), (1, 100), (300, 30), (300, 0), (200, -150)])
def test_blocks_of_queries_that_see_no_key(name, options, queries, start):
    sizes = {"rope": {"d_head": 8}, "nope": {}, "transformer_xl": {"d_model": 8, "n_heads": 1, "d_head": 8}}
    encoding = create(name, **sizes.get(name, {"n_heads": 1}))
    if name == "transformer_xl" and "return_lse" in options:
        return
    for rows in (1, 2):
        q, k = drawn(0, rows, 1, queries, 8), drawn(1, rows, 1, 40, 8)
        agree(q, k, k, encoding, Positions.arange(rows, queries, start), Positions.arange(rows, 40), **options)


def test_a_learned_bias_has_a_gradient_of_zeros_where_no_key_is_seen():
    t5 = create("t5", n_heads=1)
    q, k = drawn(0, 1, 1, 1, 8), drawn(1, 1, 1, 40, 8)
    out = attend(q, k, k, t5, Positions.arange(1, 1, 100), Positions.arange(1, 40), window=(5, 0))
    (gradient,) = torch.autograd.grad(out.sum(), t5.table)
    assert not gradient.any()


class OfElsewhere(DistanceBias):
    """Slopes that another network computes: no parameters of the encoding."""

    def __init__(self, slopes):
        super().__init__(n_heads=len(slopes))
        self.slopes = [slopes]

    def at_distance(self, delta):
        return -self.slopes[0][:, None] * delta.abs()


@pytest.mark.parametrize("options", [{}, {"window": (20, 0)}])
@pytest.mark.parametrize("packed", [False, True])
def test_a_bias_from_elsewhere_keeps_its_gradient(options, packed):
    q, k, v = (drawn(seed, 1, 4, 300, 64) for seed in range(3))
    at = Positions.packed([0, 120, 300]) if packed else Positions.arange(1, 300)
    gradients = []
    for impl in ("auto", "reference"):
        slopes = torch.tensor([0.1, 0.2, 0.3, 0.4], requires_grad=True)
        out = attend(q, k, v, OfElsewhere(slopes * 1), at, impl=impl, **options)
        gradients.append(torch.autograd.grad(out.square().sum(), slopes)[0])
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["nope", "cope", "shaw", "rope", "dape"])
@pytest.mark.parametrize("options", [{}, {"softcap": 5.0}, {"return_lse": True}])
def test_a_mask_for_every_head(name, options):
    encoding = create(name, **{"nope": {}, "dape": {"n_heads": 4}}.get(name, {"d_head": 8}))
    for parameter in encoding.parameters():
        torch.nn.init.normal_(parameter)
    q, k, v = (drawn(seed, 2, 4, 6, 8) for seed in range(3))
    mask = drawn(3, 2, 4, 6, 6) > 0
    found = attend(q, k, v, encoding, Positions.arange(2, 6), mask=mask, **options)
    out = found[0] if options.get("return_lse") else found
    for head in range(4) if name != "dape" else ():  # every head as if its mask were that of all
        options = {**options, "mask": mask[:, head : head + 1]}
        alone = attend(q, k, v, encoding, Positions.arange(2, 6), impl="reference", **options)
        alone = alone[0] if options.get("return_lse") else alone
        torch.testing.assert_close(out[:, head], alone[:, head])


def test_a_network_over_neighbouring_keys_takes_one_mask():
    encoding = create("dape_v2", n_heads=4)
    q = drawn(0, 1, 4, 6, 8)
    with pytest.raises(ValueError, match=r"mask: expected one for all heads, \[b, 1, i, j\]"):
        attend(q, q, q, encoding, Positions.arange(1, 6), mask=torch.ones(1, 4, 6, 6, dtype=torch.bool))


@pytest.mark.parametrize(
    ("length", "d_head", "options"),
    [(100, 64, {}), (100, 64, {"window": (50, 0)}), (300, 64, {}), (120, 8, {"window": (5, 0)})],
)
def test_another_default_device_changes_nothing(length, d_head, options):
    q, k, v = (drawn(seed, 1, 4, length, d_head) for seed in range(3))
    alibi, at = create("alibi", n_heads=4), Positions.arange(1, length)
    expected = attend(q, k, v, alibi, at, **options)
    with torch.device("meta"):
        assert torch.equal(attend(q, k, v, alibi, at, **options), expected)


class Mirrored(RoPE):
    def tables(self, at, dtype):
        cos, sin = super().tables(at, dtype)
        return cos, -sin


class Strict(RoPE):
    def tables(self, at, dtype):
        raise ValueError("refused")


def test_few_tokens_are_turned_by_the_tables_of_the_subclass():
    at, q = Positions.arange(1, 1, 3), drawn(0, 1, 1, 1, 8)
    mirrored = Mirrored(8)
    assert torch.equal(rotated(mirrored, q, q, at, at)[0], mirrored.rotate(q, at, "query"))
    reverse = RoPE(8)
    reverse.reverse = True
    assert torch.equal(rotated(reverse, q, q, at, at)[0], reverse.rotate(q, at, "query"))
    patched = RoPE(8)
    patched.tables = mirrored.tables
    assert torch.equal(rotated(patched, q, q, at, at)[0], mirrored.rotate(q, at, "query"))
    with pytest.raises(ValueError, match="refused"):
        rotated(Strict(8), q, q, at, at)


def test_several_coordinates_are_named():
    at = Positions(torch.zeros(1, 3, 2), torch.arange(3)[None], torch.zeros(1, 3, dtype=torch.int64), "row")
    q = drawn(0, 1, 4, 3, 16)
    with pytest.raises(ValueError, match=r"reads 1 coordinate\(s\) per token"):
        rotated(create("rope", d_head=16), q, q, at, at)
    with torch.no_grad(), pytest.raises(ValueError, match=r"reads 1 coordinate\(s\) per token"):
        attend(q, q, q, create("alibi", n_heads=4), at, window=(1, 0))


def test_a_window_refuses_what_the_row_refuses():
    q, at = drawn(0, 1, 4, 100, 16), Positions.arange(1, 100).shift(0.5)
    for options in ({}, {"window": (3, 0)}):
        with torch.no_grad(), pytest.raises(TypeError, match="integer"):
            attend(q, q, q, create("t5", n_heads=4), at, **options)


@pytest.mark.parametrize("name", ["nope", "rope", "alibi"])
def test_a_batch_of_no_rows(name):
    encoding = create(name, **{"nope": {}, "rope": {"d_head": 16}, "alibi": {"n_heads": 2}}[name])
    four, one = torch.zeros(0, 2, 4, 16), torch.zeros(0, 2, 1, 16)
    packed, last, row, keys = (
        at.rows(0, 0)
        for at in (Positions.packed([0, 2, 4]), Positions.arange(1, 1, 4), Positions.arange(1, 4), Positions.arange(1, 4))
    )
    assert attend(one, four, four, encoding, last, row).shape == (0, 2, 1, 16)
    assert attend(four, four, four, encoding, row, keys).shape == (0, 2, 4, 16)
    assert attend(four, four, four, encoding, packed).shape == (0, 2, 4, 16)
    assert attend(one, four, four, encoding, last, row, window=(2, 0)).shape == (0, 2, 1, 16)


@pytest.mark.parametrize("name", ["alibi", "t5", "shaw", "transformer_xl", "rope", "fire"])
def test_no_tokens(name):
    sizes = {"shaw": {"d_head": 16}, "rope": {"d_head": 16}, "transformer_xl": {"d_model": 32, "n_heads": 2, "d_head": 16}}
    encoding, at = create(name, **sizes.get(name, {"n_heads": 2})), Positions.arange(1, 4)
    none, four = torch.zeros(1, 2, 0, 16), torch.zeros(1, 2, 4, 16)
    for impl in ("auto", "reference"):
        assert attend(none, none, none, encoding, at.narrow(2, 2), impl=impl).shape == (1, 2, 0, 16)
        assert not attend(four, none, none, encoding, at, at.narrow(2, 2), impl=impl).any()


def test_a_traced_graph_serves_rows_that_differ():
    t5 = create("t5", n_heads=2)
    q, one = drawn(0, 3, 2, 5, 8), torch.tensor([[0, 2, 3, 7, 9]])

    graph = make_fx(lambda at, q: attend(q, q, q, t5, at, impl="sdpa"))(Positions.at(one).expand(3), q)
    other = Positions.at(torch.stack([one[0], 2 * one[0], one[0] + torch.arange(5)]))
    torch.testing.assert_close(graph(other, q), attend(q, q, q, t5, other, impl="sdpa"))
