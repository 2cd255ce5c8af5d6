"""Every entry has a row in the lab and a place in the explorer's views of encodings, or the refusal says the reason."""

import pytest
import torch

from cases import cases
from posenc.attention import attend
from posenc.catalogue import lookup
from posenc.catalogue.description import positions_of
from posenc.catalogue.lookup import ENTRIES
from posenc.encoding import DistanceBias
from posenc.encodings.shaw import Shaw
from posenc.explorer.parameters import Refused, parse
from posenc.explorer.views import attention, bias, compare
from posenc.lab.experiment import Size
from posenc.lab.experiment.arm import Arm, trainable
from posenc.lab.trial.model import Transformer
from posenc.positions import Positions

SIZE = Size(d_model=32, n_heads=2, n_layers=2)
every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)


@every_entry
def test_the_lab_trains_it_or_says_why_not(entry):
    if entry.name not in trainable():
        reason = "numbers tokens" if entry.kind == "positions" else f"reads {entry.axes} coordinates"
        if entry.of_pairs:
            reason = "reads a value of each pair"
        if "wide_output" in entry.needs:
            reason = "needs a wider output projection"
        with pytest.raises(ValueError, match=f"^{entry.name} {reason}"):
            Arm.parse(entry.name)
        return
    model = Transformer(Arm.parse(entry.name), SIZE, vocabulary=8, causal=True, positions=16, seed=0)
    logits = model(torch.randint(8, (2, 12)), model.prepare(Positions.arange(1, 12)))
    logits.square().mean().backward()
    assert logits.isfinite().all()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.encodings.parameters())


@pytest.mark.parametrize("name", lookup.names())
def test_positions_that_vmap_runs_over_are_those_of_a_loop(name):
    """Embedding, rotation, bias and finish; FLOATER says what to do instead."""
    entry, sizes = lookup.BY_NAME[name], {"d_model": 64, "n_heads": 4, "d_head": 16, "n_layers": 2, "max_positions": 64}
    sizes |= {"height": 2, "width": 4} if {"height", "width"} <= lookup.arguments_of(name) else {}
    torch.manual_seed(0)
    encoding = lookup.create(name, **sizes).at_layer(0)
    at = positions_of(entry, 8, (2, 4), encoding)
    x, q = torch.randn(1, at.length, 64), torch.randn(1, 4, at.length, 16)

    def output(coords):
        here = Positions.at(coords) if not entry.of_pairs else at.replaced(coords=coords)
        embedded = encoding.embed(x, here)
        here = encoding.read_hidden(embedded, here)
        return embedded.sum() + attend(q, q, q, encoding, here, causal="causal" in entry.needs or not entry.both_ways)

    both = torch.stack([at.coords, at.coords.flip(1)])
    if name == "floater":
        with pytest.raises(NotImplementedError, match=r"call prepare\(\) outside of the transform"):
            torch.func.vmap(output)(both)
        return
    assert torch.allclose(torch.func.vmap(output)(both), torch.stack([output(one) for one in both]), atol=1e-4)


def test_what_vmap_runs_over_is_checked():
    learned = lookup.create("learned", d_model=8, max_positions=16)
    coords = torch.tensor([[[3, 4]], [[15, 16]]])
    with pytest.raises(ValueError, match="Learned: position 16 is outside 0 … 15"):
        torch.func.vmap(lambda one: learned.embed(torch.zeros(1, 2, 8), Positions.at(one)))(coords)
    with pytest.raises(ValueError, match="cu_seqlens: expected integers that can be read"):
        torch.func.vmap(lambda ends: Positions.packed(ends).coords)(torch.tensor([[0, 3], [0, 4]]))


@every_entry
@cases("view, parameter", [(compare, "first"), (attention, "encoding"), (bias, "method")])
def test_the_explorer_shows_it_or_says_why_not(entry, view, parameter):
    fits = entry.in_a_row and (view is not bias or issubclass(entry.load(), (DistanceBias, Shaw)))
    if fits:
        assert getattr(parse(view.Parameters, {parameter: entry.name}), parameter) == entry.name
        return
    with pytest.raises(Refused, match=f"{parameter}: {entry.name} cannot be shown here: ") as refused:
        parse(view.Parameters, {parameter: entry.name})
    why = entry.not_in_a_row
    assert (why.en if why else "another kind of encoding") in str(refused.value)
    assert (why.zh if why else "别的编码") in str(refused.value)
