"""Mamba, RWKV and xLSTM: no attention; order comes from the recurrence."""

from __future__ import annotations

from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.spec import PositionSpec
from posenc.support.languages import Words

SCAN = Words("none: a state space model carries a state from token to token", "无：状态空间模型把状态从词元传到词元")


@family("mamba", "mamba2", "falcon_mamba")
def mamba(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, coordinates=SCAN, d_model=keys.whole("hidden_size"))


@family("rwkv")
def rwkv(keys: Keys) -> PositionSpec:
    """Time mixing decays with distance at a learned rate per channel; context_length limits one CUDA kernel."""
    coordinates = Words(
        "none: time mixing carries a state from token to token, which decays at a learned rate per channel",
        "无：时间混合把状态从词元传到词元，每个通道按学习的速率衰减",
    )
    return PositionSpec(
        keys.family,
        coordinates=coordinates,
        d_model=keys.whole("hidden_size"),
        trained_length=keys.whole("context_length", None),
    )


@family("xlstm")
def xlstm(keys: Keys) -> PositionSpec:
    coordinates = Words(
        "none: gated matrix memories carry a state from token to token", "无：门控的矩阵记忆把状态从词元传到词元"
    )
    return PositionSpec(keys.family, coordinates=coordinates, d_model=keys.whole("hidden_size"))
