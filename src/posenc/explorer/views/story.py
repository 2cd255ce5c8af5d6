"""The small figures of the start page, from integers to what was measured beyond the trained length."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from posenc import frequencies
from posenc.catalogue import create
from posenc.encodings.nope import NoPE
from posenc.encodings.sinusoidal import Sinusoidal, sinusoidal_table
from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters as Base
from posenc.measures.order import SENTENCE_PAIRS, sentence_sensitivity
from posenc.measures.scores import score_of_ones

MEASURED = Path(__file__).parent.parent / "measured.json"
SHOWN = ("sinusoidal", "rope", "alibi")


class Parameters(Base):
    pass


EXPORTED = (Parameters(),)
PYTHON = """import torch
import posenc

table = posenc.sinusoidal_table(32, 32, base=100.0, dtype=torch.float64)
omega = torch.tensor(posenc.frequencies.rotary(32, 100.0).values, dtype=torch.float64)
lags = torch.arange(33)
bias = posenc.create("alibi", n_heads=8).at_distance(-lags).double()"""


def data(asked: Parameters) -> Data:
    lags = torch.arange(33)
    rope = create("rope", d_head=32, base=100.0)
    scores = score_of_ones(rope, (torch.arange(24)[:, None] - torch.arange(24)).flatten().double(), 32)
    blind = {
        name: sentence_sensitivity(encoding, SENTENCE_PAIRS[0], d_model=16, n_heads=2, causal=False)
        for name, encoding in (("nope", NoPE()), ("sinusoidal", Sinusoidal(16)))
    }
    return Data(
        {
            "table": sinusoidal_table(32, 32, base=100.0, dtype=torch.float64),
            "omega": frequencies.rotary(32, 100.0).values,
            "bits": (np.arange(32)[:, None] >> np.arange(5)) & 1,
            "scores": scores.reshape(24, 24),
            "lags": lags,
            "bias": create("alibi", n_heads=8).at_distance(-lags),  # type: ignore[attr-defined]
        },
        PYTHON,
        {"blind": blind},
    )
