"""Mamba, RWKV and xLSTM: no attention; order comes from the recurrence."""

from __future__ import annotations

from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec

SCAN = say("none: a state space model carries a state from token to token")


@family("mamba", "mamba2", "falcon_mamba")
def mamba(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, coordinates=SCAN, d_model=keys.whole("hidden_size"))


@family("rwkv")
def rwkv(keys: Keys) -> PositionSpec:
    """Time mixing decays with distance at a learned rate per channel; context_length limits one CUDA kernel."""
    coordinates = say("none: time mixing carries a state from token to token, which decays at a learned rate per channel")
    return PositionSpec(
        keys.family,
        coordinates=coordinates,
        d_model=keys.whole("hidden_size"),
        trained_length=keys.whole("context_length", None),
    )


@family("xlstm")
def xlstm(keys: Keys) -> PositionSpec:
    coordinates = say("none: gated matrix memories carry a state from token to token")
    return PositionSpec(keys.family, coordinates=coordinates, d_model=keys.whole("hidden_size"))
