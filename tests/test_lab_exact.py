"""Exact properties of sound encodings, and of planted ones that break each law."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from posenc.catalogue import lookup
from posenc.encoding import PositionalEncoding
from posenc.lab.experiment import Trial, read_experiment
from posenc.lab.experiment.arm import Arm
from posenc.lab.trial import fp64_properties
from posenc.positions import Positions

COMPARED = read_experiment("compare_text")
SIZE = COMPARED.size
DEFAULT = COMPARED.encodings


def trial(name: str) -> Trial:
    return COMPARED.first_trials(COMPARED.tasks[0])[0].model_copy(update={"encoding": name})


@pytest.mark.parametrize("name", DEFAULT)
def test_measured_properties_agree_with_the_declared_ones(name: str) -> None:
    arm = Arm.parse(name)
    found = fp64_properties.properties(trial(name))
    encoding = lookup.create(arm.encoding, d_model=64, n_heads=4)
    assert (found["shift"] <= fp64_properties.SAME) == (arm.encoding not in ("sinusoidal", "learned", "floater"))
    assert found["decode"] <= fp64_properties.SAME
    assert (found["order"]["bidirectional"] is None) == (arm.encoding in ("xpos", "cope"))
    assert found["order"]["causal"] > 0.5
    assert (found["reordered"] > 0.01) == (arm.encoding != "nope")
    assert found["sites"] == [seam.upper() for seam in ("embed", "rotate", "bias", "finish") if seam in encoding.seams]


def test_sizes_by_hand() -> None:
    """Width 64, 4 heads of 16, 2 layers, trained at 64."""
    found = {name: fp64_properties.properties(trial(name)) for name in (*DEFAULT, "learned+randomized")}
    parameters = {name: value["parameters"] for name, value in found.items() if value["parameters"]}
    assert parameters == {
        "learned": 64 * 64,
        "learned+randomized": 512 * 64,
        "floater": 2 * 64 + 2 * (65 * 64 + 64),
        "t5": 32 * 4,
        "shaw": 2 * 2 * 33 * 16,
        "transformer_xl": 2 * (2 * 4 * 16 + 4 * 16 * 64),
        "cope": 2 * 64 * 16,
    }
    tables = {name: value["table_bytes_per_token"] for name, value in found.items() if value["table_bytes_per_token"]}
    assert tables == {
        "sinusoidal": 64 * 4,
        "floater": 2 * 64 * 4,
        "transformer_xl": 64 * 4,
        "rope": 16 * 4,
        "rope+randomized": 16 * 4,
        "xpos": 4 * 8 * 4,
    }
    largest = {name: value["largest_position"] for name, value in found.items() if value["largest_position"]}
    assert largest == {"learned": 63, "learned+randomized": 511, "xpos": largest["xpos"]}
    assert {name for name, value in found.items() if value["from_zero"]} == {"learned", "learned+randomized", "floater"}


class ByIndex(PositionalEncoding):
    """Broken: counts the tokens it is shown instead of reading where they sit."""

    def embed(self, x: Tensor, at: Positions) -> Tensor:
        return x + torch.arange(x.shape[1], dtype=x.dtype)[:, None].sin()


class ByCoordinate(PositionalEncoding):
    """Broken: says nothing about itself, and is not shift invariant."""

    def embed(self, x: Tensor, at: Positions) -> Tensor:
        return x + at.coords[..., None].to(x.dtype).sin()


def test_planted_faults_are_measured() -> None:
    assert fp64_properties.decode(ByIndex(), SIZE) > 0.1
    assert fp64_properties.shift(ByIndex(), SIZE) == 0
    assert fp64_properties.shift(ByCoordinate(), SIZE) > 0.1
    assert fp64_properties.decode(ByCoordinate(), SIZE) < fp64_properties.SAME


def test_reversed_sentences_look_alike_to_a_symmetric_bias() -> None:
    """The sentence pairs of the notes exchange the ends of three words; ALiBi sees |i - j| only."""
    assert (
        fp64_properties.order(Arm("alibi"), SIZE, causal=False)
        < fp64_properties.SAME
        < 0.1
        < fp64_properties.reordered(Arm("alibi"), SIZE)
    )
    assert fp64_properties.order(Arm("nope"), SIZE, causal=False) < fp64_properties.SAME
    assert fp64_properties.reordered(Arm("nope"), SIZE) < fp64_properties.SAME
