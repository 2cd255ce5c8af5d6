"""An option that is finite, and too large to compute with, is refused by name where the encoding is made."""

import pytest
import torch

import posenc
from posenc.catalogue.built import facts
from posenc.catalogue.lookup import ENTRIES, create

SIZES = {"d_model": 64, "n_heads": 4, "n_layers": 2, "max_positions": 64}
NUMBERS = [
    (entry, option)
    for entry in ENTRIES
    if entry.kind != "positions"
    for option, default in facts(entry)["options"].items()
    if default is None or type(default) in (int, float)
]


@pytest.mark.parametrize("number", [1e300, -1e300])
def test_a_large_number_is_refused_or_gives_finite_numbers(number):
    """t5(scale=1e300) and eight others gave NaN; floater(step=1e300) never ended."""
    made, wrong = 0, []
    for entry, option in NUMBERS:
        try:
            encoding = create(entry.name, **SIZES, **{option: number}).at_layer(0)
        except (TypeError, ValueError):
            continue
        at = eval(entry.positions, {"posenc": posenc, "torch": torch, "batch": 1, "length": 9, "height": 3, "width": 3})
        attention = posenc.Attention(64, 4, encoding)
        with torch.no_grad():
            out = attention(torch.randn(1, at.length, 64), at, causal="causal_only" in encoding.traits)
        made += 1
        if not out.isfinite().all():
            wrong.append((entry.name, option))
    assert not wrong
    assert made > 1


@pytest.mark.parametrize(
    ("name", "option", "most"),
    [
        ("t5", "scale", "1e+15"),
        ("beam_temperature", "exponent", "8"),
        ("floater", "step", "100"),
        ("wire", "scale", "1e+15"),
    ],
)
def test_the_refusal_says_what_is_allowed(name, option, most):
    with pytest.raises(
        ValueError,
        match=rf"^{option}: expected a number of at most {most} in size, got 1e\+300$".replace("1e+15", r"1e\+15"),
    ):
        create(name, **SIZES, **{option: 1e300})
