"""Packed documents and padded rows are computed document by document: the same numbers as under one mask."""

from __future__ import annotations

import pytest
import torch

from posenc import Positions, attend, create
from posenc.attention import plan, windows

B, H, G, T, D = 2, 4, 2, 24, 8
REPLACED = {"sinks", "return_lse"}  # what stick-breaking, which replaces the softmax, refuses
NAMES = ("nope", "rope", "xpos", "shaw", "transformer_xl", "cope", "fox", "stick_breaking")


@pytest.fixture(autouse=True)
def calls(monkeypatch):
    """However small; the lengths of the calls that reach a backend."""
    monkeypatch.setattr(windows, "CALL", 0)
    lengths, backend_of = [], plan.backend_of

    def recorded(call, impl="auto"):
        lengths.append(call.q.shape[2])
        return backend_of(call, impl)

    monkeypatch.setattr(plan, "backend_of", recorded)
    return lengths


def packed():
    return Positions.packed([0, 5, 6, 17, T])


def padded():
    mask = torch.ones(B, T, dtype=torch.bool)
    mask[0, :7] = False
    mask[1, 20:] = False
    return Positions.from_mask(mask)


def inputs(key_heads=H, dtype=torch.float64):
    source = torch.Generator().manual_seed(0)
    shapes = ((B, H, T, D), (B, key_heads, T, D), (B, key_heads, T, D))
    return [torch.randn(shape, generator=source, dtype=dtype).requires_grad_() for shape in shapes]


def encoding_of(name):
    torch.manual_seed(1)
    found = create(name, d_model=H * D, n_heads=H, d_head=D).double()
    for parameter in found.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_documents_apart_give_what_a_mask_gives(name, calls):
    encoding = encoding_of(name)
    for at in (packed(), padded()):
        at = encoding.read_hidden(torch.randn(B, T, H * D, dtype=torch.float64), at.expand(B))
        given, before = inputs(), len(calls)
        outs = [attend(*given, encoding, at)]
        assert T in calls[before : before + 1]  # whether a backend does so itself
        assert max(calls[before + 1 :]) < T
        outs.append(attend(*given, encoding, at, impl="reference"))
        torch.testing.assert_close(outs[0], outs[1], rtol=1e-9, atol=1e-9)
        grads = [torch.autograd.grad(out.square().sum(), given) for out in outs]
        for one, other in zip(*grads, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)
    assert {5, 1, 11, 7, 17, 20} <= set(calls)


OPTIONS = {
    "window": {"window": (3, 0)},
    "soft cap": {"softcap": 2.0},
    "mask": {"mask": torch.rand(B, 1, T, T, generator=torch.Generator().manual_seed(3)) < 0.7},
    "mask of all rows": {"mask": torch.randn(1, H, T, T, generator=torch.Generator().manual_seed(3))},
    "sinks": {"sinks": torch.randn(H, dtype=torch.float64)},
    "both ways": {"causal": False, "chunk": 4},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("at", [packed(), padded()], ids=["packed", "padded"])
def test_with_options_and_shared_keys(options, at, calls):
    encoding, given = encoding_of("rope"), inputs(G)
    found = attend(*given, encoding, at, return_lse=True, **options)
    assert max(calls[1:]) < T
    whole = attend(*given, encoding, at, return_lse=True, impl="reference", **options)
    for one, other in zip(found, whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


ALONE = {**OPTIONS, "plain": {}, "scale": {"scale": 0.3}, "dropout": {"dropout": 0.5}, "lse": {"return_lse": True}}


@pytest.mark.parametrize("options", ALONE.values(), ids=ALONE.keys())
@pytest.mark.parametrize("name", ["rope", "alibi", "t5", "shaw", "fox", "stick_breaking"])
def test_a_batch_of_padding_alone_has_the_gradients_of_the_formula(name, options):
    """Zeros for all that takes part, parameters included: a rank whose rows are padding goes backward as others do."""
    encoding, given = encoding_of(name), inputs(G)
    if ("causal" in options and "causal_only" in encoding.traits) or (name == "stick_breaking" and {*options} & REPLACED):
        pytest.skip("refused")
    options = {key: x.clone().requires_grad_() if key == "sinks" else x for key, x in options.items()}
    leaves = [*given, *([options["sinks"]] if "sinks" in options else []), *encoding.parameters()]
    at = encoding.read_hidden(torch.randn(B, T, H * D, dtype=torch.float64), Positions.from_mask(torch.zeros(B, T)))
    found, whole = (attend(*given, encoding, at, impl=impl, **options) for impl in ("auto", "reference"))
    for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, whole)), strict=True):
        assert torch.equal(one, other)
        assert one.requires_grad
    gradients = (torch.autograd.grad(x[0].sum() if isinstance(x, tuple) else x.sum(), leaves) for x in (found, whole))
    for one, other in zip(*gradients, strict=True):
        assert not one.any()
        assert not other.any()


def test_a_document_in_parts_is_one_call(calls):
    at = Positions.from_mask(torch.tensor([[1] * 5 + [0] * 4 + [1] * (T - 9)]))
    given = inputs()
    out = attend(*given, encoding_of("rope"), at)
    torch.testing.assert_close(out, attend(*given, encoding_of("rope"), at, impl="reference"), rtol=1e-9, atol=1e-9)
    assert set(calls) == {T}


def test_many_small_documents_are_one_call(monkeypatch, calls):
    monkeypatch.setattr(windows, "CALL", 2**20)
    attend(*inputs(), encoding_of("rope"), padded())
    assert set(calls) == {T}


def test_one_document_of_packed_ones_is_consecutive_alone():
    """Beside tokens of document 0 it is another document, so only `alone` says that it is consecutive in the row."""
    at = packed()
    assert at.narrow(6, 17).consecutive_in == "document"
    assert at.narrow(6, 17).single_document().consecutive_in == "row"
    assert at.narrow(0, 5).consecutive_in == "row"
    assert at.narrow(6, 18).consecutive_in == "document"
    assert padded().narrow(3, 9).consecutive_in == "document"
    assert padded().narrow(7, 20).consecutive_in == "row"
    assert padded().rows(1, 2).coords.tolist() == padded().coords[1:].tolist()
