"""Files as version 4 wrote them, and files that leave out what the class fills in, against what the class makes of them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from posenc.configs import PositionSpec, read_config

YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}


def same(old: dict[str, Any]) -> PositionSpec:
    """Every layer of every part is the same, read from the file and from what the class saves after it has read it."""
    given = {key: value for key, value in deepcopy(old).items() if key != "model_type"}
    new = CONFIG_MAPPING[old["model_type"]](**given).to_dict()
    mine, theirs = read_config(old), read_config(new)
    for (path, one), (_, other) in zip(mine.walk(), theirs.walk(), strict=True):
        assert len(one.layers) == len(other.layers), path
        for number, (layer, saved) in enumerate(zip(one.layers, other.layers, strict=True)):
            where = f"{path} layer {number}"
            assert (layer.kind, layer.window, layer.causal) == (saved.kind, saved.window, saved.causal), where
            assert [use.arguments for use in layer.uses] == [use.arguments for use in saved.uses], where
    assert places(mine) == places(theirs)
    return mine


def places(spec: PositionSpec) -> set[str]:
    """Which layers are attention, where others are not, as the notes say it."""
    return {finding.text for finding in spec.remarks if "attention is in layers" in finding.text}
