"""Parts of vision and speech models that have no positions."""

from __future__ import annotations

from posenc.dialects.family import family
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec


@family("molmo2_adapter")
def _(keys: Keys) -> PositionSpec:
    """One attention that pools a few patches into one; their order does not matter."""
    return PositionSpec(keys.family, layers=(Layer((), "pooling", causal=False),), coordinates="none: a set of patches")


@family("glm_image_vqmodel", "qwen2_5_omni_bigvgan", "sapiens2_head")
def _(keys: Keys) -> PositionSpec:
    """Convolutions and a codebook."""
    return PositionSpec(keys.family, coordinates="none: convolutions see order and place by themselves")
