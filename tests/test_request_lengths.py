"""Frequencies that depend on the length of a request: whoever does not ask for a length is told, and every example asks."""

import copy
import itertools
import math
import warnings

import pytest
import torch

from posenc import PerLayer, Positions, Stack, create, frequencies
from posenc.catalogue import lookup
from posenc.catalogue.description import describe, program
from posenc.catalogue.lookup import BY_NAME
from posenc.configs import float32
from posenc.configs.mapped import Mapped
from posenc.encodings.alibi import ALiBi
from posenc.encodings.rerope import ReRoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.rope_pp import RoPEPlusPlus

BASES = itertools.count(20_000)  # a warning is given once for each configuration


def dynamic(length=128):
    return frequencies.dynamic(frequencies.rotary(8, float(next(BASES))), 2.0, length)


def longrope(length=128):
    return frequencies.longrope(frequencies.rotary(8, float(next(BASES))), [1.0] * 4, [2.0] * 4, length, factor=4.0)


MADE = {
    "create dynamic": lambda: create("dynamic", d_head=8, trained_length=128, base=float(next(BASES))),
    "create longrope": lambda: create("longrope", d_head=8, trained_length=128, base=float(next(BASES))),
    "rope": lambda: RoPE(8, frequencies=dynamic()),
    "a length that is too short": lambda: RoPE(8, frequencies=longrope(), length=100),
    "rope++": lambda: RoPEPlusPlus(8, frequencies=longrope()),
    "rerope": lambda: ReRoPE(8, frequencies=dynamic()),
    "parity": lambda: RoPE(8, frequencies=float32.dynamic(8, float(next(BASES)), 2.0, 128)),
    "mapped": lambda: RoPE(8, frequencies=Mapped(dynamic(), "linear", (("factor", 1.0),))),
    "stack": lambda: Stack(RoPE(8, frequencies=dynamic()), ALiBi(2)),
    "per layer": lambda: PerLayer([create("nope"), RoPE(8, frequencies=dynamic())]),
}


def warned(encoding, at):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        encoding.prepare(at)
    return [str(one.message) for one in seen]


@pytest.mark.parametrize("name", MADE)
def test_a_position_beyond_the_trained_length_is_said_once(name):
    encoding = MADE[name]()
    assert warned(encoding, Positions.arange(2, 128)) == []
    (said,) = warned(encoding, Positions.arange(2, 8, 125))
    for part in ("RoPE", "position 132", "original length is 128", "at_length(n)", "at least 133"):
        assert part in said
    assert warned(encoding, Positions.arange(2, 8, 500)) == []
    assert warned(copy.deepcopy(encoding), Positions.arange(2, 8, 125)) == []


@pytest.mark.parametrize("name", MADE)
def test_the_encoding_of_the_request_says_nothing(name):
    longer = MADE[name]().at_length(512)
    assert warned(longer, Positions.arange(1, 512)) == []


def test_a_longer_request_than_the_one_asked_for():
    """Dynamic frequencies are those of one length; LongRoPE has one set for all lengths beyond the original one."""
    (said,) = warned(RoPE(8, frequencies=dynamic(), length=512), Positions.arange(1, 513))
    assert "beyond the 512 tokens that it was made for" in said
    assert warned(RoPE(8, frequencies=longrope(), length=512), Positions.arange(1, 4096)) == []


def test_frequencies_that_do_not_change_say_nothing():
    plain = frequencies.rotary(8, float(next(BASES)))
    far = Positions.arange(1, 8, 10_000)
    assert warned(RoPE(8, frequencies=plain), far) == []
    assert warned(RoPE(8, frequencies=frequencies.longrope(plain, [2.0] * 4, [2.0] * 4, 128, factor=4.0)), far) == []


def test_nothing_is_read_in_a_graph_or_on_meta():
    encoding, at = RoPE(8, frequencies=dynamic()), Positions.arange(1, 8, 500)
    compiled = torch.compile(lambda at: encoding.tables(at, torch.float32), backend="eager", fullgraph=True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        compiled(at)
        encoding.prepare(at.to("meta"))
    assert not [one for one in seen if "original length" in str(one.message)]
    assert len(warned(encoding, at)) == 1


def test_what_the_warning_is_about():
    """At position 8191 a fresh dynamic encoding is off by more than 1 in a unit pair; that of the length is the formula."""
    x, at, d = torch.tensor([1.0, 0.0] * 4).view(1, 1, 1, 8), Positions.arange(1, 1, 8191), 8
    base = 10000.0 * (2.0 * 8192 / 2048 - 1) ** (d / (d - 2))
    angle = [8191 * base ** (-2 * i / d) for i in range(4)]
    expected = torch.tensor([f(one) for one in angle for f in (math.cos, math.sin)], dtype=torch.float64)
    encoding = create("dynamic", d_head=8, layout="interleaved")
    assert (encoding.at_length(8192).rotate(x, at, "query").flatten().double() - expected).abs().max() < 1e-6
    assert (encoding.rotate(x, at, "query").flatten().double() - expected).abs().max() > 1


def test_examples_ask_for_the_length():
    """Of every entry whose fresh encoding is that of short requests: the first program of its page, and its own example."""
    found = []
    for name in lookup.names():
        made = create(name, d_model=64, n_heads=4, d_head=16, max_positions=64, n_layers=2)
        if getattr(made, "made_for", None) is not None:
            found.append(name)
            assert BY_NAME[name].by_length
            assert ".at_length(length)\n" in program(describe(BY_NAME[name]))
            assert ".at_length(" in BY_NAME[name].page.example
    assert found == [name for name in lookup.names() if BY_NAME[name].by_length] == ["dynamic", "longrope"]


@pytest.mark.parametrize("name", ["dynamic", "longrope"])
def test_explorer_and_exported_tables_ask_for_it_too(name, tmp_path):
    from typer.testing import CliRunner

    from posenc.cli import app
    from posenc.explorer.views import attention, compare, order

    assert (
        f'posenc.create("{name}", d_model=64, n_heads=4).at_length(61)'
        in compare.data(compare.Parameters(second=name)).python
    )
    assert ").at_length(3).double()" in attention.data(attention.Parameters(encoding=name)).python
    assert ").at_length(3)\n" in order.data(order.Parameters(sentence="猫 吃 鱼", encoding=name)).python
    out = tmp_path / "tables.npz"
    asked = ["export-tables", name, "--length", "8192", "--d-model", "64", "--n-heads", "4", "--out", str(out)]
    assert CliRunner().invoke(app, asked).exit_code == 0
    import numpy as np

    expected = create(name, d_head=16).at_length(8192).frequencies.values
    assert np.load(out)["frequencies"].tolist() == pytest.approx(expected, rel=1e-6)
