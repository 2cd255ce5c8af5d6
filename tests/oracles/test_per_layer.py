"""A different encoding for each layer: what each layer then does is what its encoding does alone."""

from pathlib import Path

import pytest
import torch

import in_process
from posenc import PerLayer, Positions, Stack, attend, create, frequencies
from posenc.catalogue.built import facts
from posenc.catalogue.lookup import BY_NAME
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE

from .by_hand import close


def of(seed: int = 0) -> torch.Tensor:
    return torch.randn(1, 2, 5, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_each_layer_has_its_own_and_absolute_ones_act_at_the_first_only():
    local, wide, learned = RoPE(8, base=100.0), RoPE(8, base=1e6), create("learned", d_model=8, max_positions=9)
    encoding = PerLayer([learned, local, NoPE(), wide, learned])
    x, at = of(), Positions.arange(1, 5)
    close(encoding.at_layer(1).rotate(x, at, "query"), local.rotate(x, at, "query"))
    close(encoding.at_layer(3).rotate(x, at, "query"), wide.rotate(x, at, "query"))
    close(encoding.at_layer(2).rotate(x, at, "query"), x)
    words = x[0, :1].clone()
    assert not torch.equal(encoding.at_layer(0).embed(words, at), words)
    assert torch.equal(encoding.at_layer(4).embed(words, at), words)
    assert len(encoding) == 5
    assert sum(p.numel() for p in encoding.parameters()) == 9 * 8  # shared, not copied


def test_tables_are_prepared_once_for_all_layers():
    local, wide = RoPE(8, base=100.0), RoPE(8, base=1e6)
    encoding = PerLayer([local, NoPE(), wide, RoPE(8, base=100.0)])
    at = encoding.prepare(Positions.arange(1, 5), torch.float64)
    assert set(at.tables) == {local.identity, wide.identity}
    for n, alone in ((0, local), (2, wide), (3, local)):
        close(encoding.at_layer(n).rotate(of(n), at, "key"), alone.rotate(of(n), Positions.arange(1, 5), "key"))


def test_lengths_and_slices_reach_every_layer():
    family = frequencies.dynamic(frequencies.rotary(8), 4.0, 16)
    encoding = PerLayer([RoPE(8, frequencies=family), create("alibi", n_heads=4)])
    longer = encoding.at_length(64)
    close(longer.at_layer(0).frequencies.values, family.at_length(64).values)
    assert longer.at_layer(0).frequencies != encoding.at_layer(0).frequencies
    assert encoding.heads(2, 4).at_layer(1).slopes == create("alibi", n_heads=4).slopes[2:]


def test_wrong_layers_are_refused():
    with pytest.raises(ValueError, match="at least one layer"):
        PerLayer([])
    with pytest.raises(TypeError, match=r"^layers: expected encodings"):
        PerLayer(["rope"])
    for n in (-1, 1):
        with pytest.raises(ValueError, match=r"n: expected a layer from 0 to 0, this PerLayer has 1, got"):
            PerLayer([NoPE()]).at_layer(n)


def test_it_prints_as_a_drawing_of_its_layers():
    """Rows: what acts; columns: layers. A learned table acts in the first layer only; a stack has a row for each part."""
    learned, local = create("learned", d_model=8, max_positions=9), RoPE(8, base=100.0)
    both = Stack(local, create("alibi", n_heads=2))
    title, *rows = repr(PerLayer([learned, local, both, NoPE()])).splitlines()
    assert title == "PerLayer of 4 layers, the first on the left, ■ where an encoding acts:"
    assert [row.split()[0] for row in rows] == ["■···", "·■■·", "··■·", "···■"]
    assert [row.split()[1] for row in rows] == ["embed", "rotate", "bias", "–"]
    assert rows[0].endswith("Learned(d_model=8, max_positions=9)")
    assert repr(Stack(learned, local)).splitlines()[1:] == [
        "  ■  embed   Learned(d_model=8, max_positions=9)",
        f"  ■  rotate  {local!r}",
    ]


def test_the_drawing_stands_in_the_terminal_and_on_pages():
    preset = create("irope", d_model=512, n_heads=8, n_layers=6)
    assert facts(BY_NAME["irope"])["drawing"] == repr(preset)
    assert repr(preset) in in_process.posenc("list", "irope", "--lang", "en").stdout
    use = (Path(__file__).parents[2] / "docs/use.md").read_text(encoding="utf-8")
    assert repr(create("irope", d_model=512, n_heads=8, n_layers=4)) in use


@torch.no_grad()
def test_prepared_for_all_layers_without_gradients():
    """RoPE computes angles of few tokens within, unless the positions carry tables, here of sinusoids."""
    sinusoid, rope = create("sinusoidal", d_model=16), RoPE(8)
    for layers in ([Stack(sinusoid, rope), rope], [Stack(rope, sinusoid), rope], [sinusoid, rope]):
        encoding, plain = PerLayer(layers), Positions.arange(1, 5)
        at = encoding.prepare(plain)
        q = torch.randn(1, 2, 5, 8, generator=torch.Generator().manual_seed(0))
        assert torch.equal(attend(q, q, q, encoding.at_layer(1), at), attend(q, q, q, rope, rope.prepare(plain)))
