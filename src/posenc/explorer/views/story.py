"""The numbers of the start page's figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from posenc import frequencies
from posenc.attention import attend
from posenc.catalogue import measured
from posenc.catalogue.lookup import create
from posenc.encodings.alibi import ALiBi
from posenc.encodings.nope import NoPE
from posenc.encodings.sinusoidal import Sinusoidal, sinusoidal_table
from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters as Base
from posenc.pictures.measures.order import SENTENCE_PAIRS, sentence_sensitivity, word_vectors
from posenc.pictures.measures.scores import score_of_ones
from posenc.positions import Positions

SHOWN = ("sinusoidal", "rope", "alibi")


class Parameters(Base):
    pass


EXPORTED = (Parameters(),)
PYTHON = """import torch
import posenc
from posenc.pictures.measures.order import word_vectors

hero = posenc.sinusoidal_table(48, 128, dtype=torch.float64)
hero_omega = torch.tensor(posenc.frequencies.rotary(128).values, dtype=torch.float64)
table = posenc.sinusoidal_table(32, 32, base=100.0, dtype=torch.float64)
omega = torch.tensor(posenc.frequencies.rotary(32, 100.0).values, dtype=torch.float64)
lags = torch.arange(33)
bias = posenc.create("alibi", n_heads=8).at_distance(-lags).double()

words = word_vectors(("我", "爱", "你"), 8)[None, None]
outputs = posenc.attend(words, words, words, posenc.create("nope"), posenc.Positions.arange(1, 3), causal=False)[0, 0]"""


def data(asked: Parameters) -> Data:
    lags = torch.arange(33)
    rope = create("rope", d_head=32, base=100.0)
    scores = score_of_ones(rope, (torch.arange(24)[:, None] - torch.arange(24)).flatten().double(), 32)
    blind = {
        name: sentence_sensitivity(encoding, SENTENCE_PAIRS[0], d_model=16, n_heads=2, causal=False)
        for name, encoding in (("nope", NoPE()), ("sinusoidal", Sinusoidal(16)))
    }
    words = word_vectors(SENTENCE_PAIRS[0].before, 8)[None, None]
    return Data(
        {
            "outputs": attend(words, words, words, NoPE(), Positions.arange(1, 3), causal=False)[0, 0],
            "hero": sinusoidal_table(48, 128, dtype=torch.float64),
            "hero_omega": frequencies.rotary(128).values,
            "table": sinusoidal_table(32, 32, base=100.0, dtype=torch.float64),
            "omega": frequencies.rotary(32, 100.0).values,
            "bits": (np.arange(32)[:, None] >> np.arange(5)) & 1,
            "scores": scores.reshape(24, 24),
            "lags": lags,
            "bias": ALiBi(8).at_distance(-lags),
        },
        PYTHON,
        {"blind": blind, "measured": _measured()},
    )


def _measured() -> dict[str, Any]:
    task = measured.task("language_model")
    arms = {arm["name"]: arm for arm in task["arms"]}
    series = [
        {"name": name, "title": arms[name]["title"], "bits": [cell.get("mean") for cell in arms[name]["cells"]]}
        for name in SHOWN
    ]
    return {"trained": task["length"], "lengths": task["lengths"], "series": series}
