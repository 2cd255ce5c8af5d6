"""Every entry has a row in the lab and a place in the explorer's views of encodings, or the refusal says the reason."""

import pytest
import torch

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


@every_entry
@pytest.mark.parametrize(
    ("view", "parameter"),
    [(compare, "first"), (attention, "encoding"), (bias, "method")],
    ids=["compare", "attention", "bias"],
)
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
