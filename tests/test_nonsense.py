"""Every public callable refuses nonsense: the machinery is in nonsense.py, the cases once found by hand are named here."""

import pytest
import torch

import posenc
from nonsense import doors, raised_by_posenc, report
from posenc import PerLayer, Positions, frequencies
from posenc.attention.backends import BACKENDS
from posenc.attention.module import Attention
from posenc.catalogue import lookup
from posenc.checking.engine import LAWS
from sampling import WITHOUT_STATES, foundation_first

DOORS = {door.name: door for door in doors()}


@pytest.fixture(autouse=True)
def _laws(monkeypatch):
    """A law that a call adds is gone afterwards."""
    monkeypatch.setattr(posenc.checking.laws.registry, "LAWS", dict(posenc.laws.LAWS))
    monkeypatch.setitem(LAWS, "encoding", dict(LAWS["encoding"]))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if at % 16 == 0 else pytest.mark.acceptance) for at, name in enumerate(sorted(DOORS))],
)
def test_nonsense_is_refused_by_the_name_of_its_argument(name):
    findings = report(DOORS[name])
    assert not findings, "\n".join(map(str, findings))


def rope():
    return posenc.create("rope", d_head=8)


X, AT = torch.zeros(2, 4, 6, 8), Positions.arange(2, 6)
NESTED = torch.nested.nested_tensor([torch.zeros(4, 6, 8), torch.zeros(4, 5, 8)])
NAMED = {
    "rotate without positions": (lambda: rope().rotate(X, None, "query"), "at"),
    "rotate at a tensor": (lambda: rope().rotate(X, torch.arange(6), "query"), "at"),
    "rotate nothing": (lambda: rope().rotate(None, AT, "query"), "x"),
    "rotate a number": (lambda: rope().rotate(torch.tensor(1.0), AT, "query"), "x"),
    "rotate on meta": (lambda: rope().rotate(X.to("meta"), AT, "query"), "x"),
    "rotate sparse": (lambda: rope().rotate(X.to_sparse(), AT, "query"), "x"),
    "rotate nested": (lambda: rope().rotate(NESTED, AT, "query"), "x"),
    "frequencies in a list": (lambda: posenc.create("rope", d_head=8, frequencies=[1.0, 0.1]), "frequencies"),
    "frequencies in a tensor": (lambda: posenc.create("rope", d_head=8, frequencies=torch.ones(4)), "frequencies"),
    "decode with a dict": (lambda: Attention(32, 4, rope()).decode(torch.zeros(2, 6, 32), AT, {}), "cache"),
    "embed nothing": (lambda: posenc.create("learned", d_model=8).embed(None, AT), "x"),
    "cat of integers": (lambda: Positions.cat([1, 2]), "parts"),
    "cat of two batches": (lambda: Positions.cat([AT, Positions.arange(3, 2)]), "parts"),
    "cat of other axes": (lambda: Positions.cat([AT, Positions.grid(2, 3, batch=2)]), "parts"),
    "take out of range": (lambda: AT.take(torch.tensor([9])), "index"),
    "shift of other rows": (lambda: AT.shift(torch.tensor([1, 2, 3])), "by"),
    "shift by a word": (lambda: AT.shift("a"), "by"),
    "start as a word": (lambda: Positions.arange(2, 6, start="1"), "start"),
    "packed nothing": (lambda: Positions.packed(None), "cu_seqlens"),
    "decode nothing": (lambda: Positions.decode(None), "lengths"),
    "no ends": (lambda: AT.shard(0, 2, cu_seqlens=[]), "cu_seqlens"),
    "no key heads": (lambda: posenc.attend(X, X[:, :0], X[:, :0], rope(), AT), "k"),
    "no channels": (lambda: posenc.attend(X[..., :0], X[..., :0], X, posenc.create("alibi", n_heads=4), AT), "q"),
    "implementation in a list": (lambda: posenc.attend(X, X, X, rope(), AT, impl=["sdpa"]), "impl"),
    "encodings of several layers": (lambda: posenc.attend(X, X, X, PerLayer([rope()]), AT), "encoding"),
    "no configuration": (lambda: posenc.read_config(None), "config"),
    "ntk beyond float64": (lambda: frequencies.ntk(frequencies.rotary(8), 1e300), "factor"),
    "dynamic beyond float64": (lambda: frequencies.dynamic(frequencies.rotary(8), 1e300, 16).at_length(1000), "factor"),
}


@pytest.mark.parametrize("case", NAMED)
def test_cases_found_by_hand(case):
    call, argument = NAMED[case]
    with pytest.raises((TypeError, ValueError, IndexError), match=rf"\b{argument}\b") as caught:
        call()
    assert raised_by_posenc(caught.value)


SIZES = {"d_model": 48, "n_heads": 2, "d_head": 24, "n_layers": 2}


@pytest.mark.parametrize("name", posenc.names())
def test_a_size_that_does_not_fit_is_named(name):
    """Sizes that no model has but a small or odd one: what is refused is the size, not an argument that nobody gave."""
    named = tuple(f"{size}: " for size in SIZES)
    for size in SIZES.keys() & lookup.arguments_of(name):
        for value in (0, 1, 2, 3, 4, 5, 7, 10, -1, True, 2.0):
            refusal = None
            try:
                posenc.create(name, **SIZES | {size: value})
            except (TypeError, ValueError) as error:
                refusal = error
            said = f"{size}={value}: {refusal}"
            assert refusal is None or raised_by_posenc(refusal), said
            assert refusal is None or str(refusal).startswith(named) or f" of {size}={value} is" in str(refusal), said


ABSURD = {
    "ape": {"base": 1e-300},
    "deberta": {"norm_eps": -1.0},
    "dype": {"base": 1.0},
    "rope_mixed": {"base": 1e-300},
    "xpos": {"gamma": 1e300},
}


@pytest.mark.parametrize("name", ABSURD)
def test_absurd_options_are_named(name):
    """Found by trying every option of every name at 35 values: what gave an error of Python or torch, or NaN."""
    (option,) = ABSURD[name]
    with pytest.raises(ValueError, match=rf"\b{option}\b") as caught:
        posenc.create(name, **SIZES, **ABSURD[name])
    assert raised_by_posenc(caught.value)
    with pytest.raises(ValueError, match=r"\bntk\b.*beyond float64"):
        frequencies.dype(frequencies.rotary(4), 1e300, 1.0, 64, method="ntk")


@pytest.mark.parametrize("impl", ["auto", *BACKENDS])
@pytest.mark.parametrize("name", foundation_first(WITHOUT_STATES))
def test_attention_of_nothing(name, impl):
    """No queries, no keys, no rows: an output of the right shape with nothing from nowhere in it, or a refusal by name."""
    encoding = posenc.create(name, d_model=32, n_heads=4, max_positions=16)
    for b, i, j in ((2, 0, 3), (2, 3, 0), (2, 0, 0), (0, 3, 3)):
        q, k, v = torch.ones(b, 4, i, 8), torch.ones(b, 4, j, 8), torch.ones(b, 4, j, 8)
        at_q, at_k = (Positions.at(torch.arange(n)[None]) for n in (i, j))
        try:
            out = posenc.attend(q, k, v, encoding, at_q, at_k, impl=impl)
        except (TypeError, ValueError) as error:
            out = error
        if isinstance(out, Exception):
            assert raised_by_posenc(out), f"{(b, i, j)}: {out!r}"
        else:
            assert out.shape == q.shape
            assert not out.any(), f"{(b, i, j)}: something came of no keys"
