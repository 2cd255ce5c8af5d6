"""The vision encoders of Idefics 2, Idefics 3 and SmolVLM: a learned square grid for images of any shape.

A patch reads the cell that holds its relative position in the image."""

from __future__ import annotations

from posenc.configs.families.clip import square_table
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.patches import WITH_IMAGE, tower
from posenc.configs.spec import PositionSpec
from posenc.support.languages import Words


@family("idefics2_vision", "idefics3_vision", "smolvlm_vision")
def idefics2_vision(keys: Keys) -> PositionSpec:
    """The image size is read from the first column and row of patch_attention_mask."""
    table = square_table(keys, "embeddings.position_embedding.weight", prefix=0, mode="bucket")
    keys.note(
        "image_size",
        "cells are computed in fp32 fractions, which misses some by one; padding reads the first cell",
        "单元格按 fp32 小数计算，有些会差一格；填充读第一个单元格",
    )
    return tower(keys, [], embedding=[table], coordinates=WITH_IMAGE)


@family("idefics2_perceiver")
def idefics2_perceiver(keys: Keys) -> PositionSpec:
    """Learned queries attend to image features, which already have positions; nothing is added here."""
    keys.note(
        "resampler_n_latents",
        f"{keys.whole('resampler_n_latents')} learned queries without positions",
        f"{keys.whole('resampler_n_latents')} 个没有位置的学习查询",
    )
    return PositionSpec(
        keys.family,
        coordinates=Words(
            "none: learned queries attend to image features, which already have positions",
            "无：学习得到的查询对图像特征做注意力，后者已带有位置",
        ),
    )
