"""MLCD: patches turn by row and column, the class token by angles of its own, which are trained."""

from __future__ import annotations

from dataclasses import replace

from posenc.dialects.family import family
from posenc.dialects.keys import Keys
from posenc.dialects.patches import axial, even_head, tower
from posenc.dialects.spec import PositionSpec, Weight


@family("mlcd", "mlcd_vision_model")
def _(keys: Keys) -> PositionSpec:
    use = axial(keys, even_head(keys))
    arguments, said = (*use.arguments, ("prefix", 1)), (*use.said_by, ("prefix", "constant of the code"))
    use = replace(
        use,
        encoding="encodings.families.prefix_rope.PrefixRoPE",
        arguments=arguments,
        said_by=said,
        weights=(Weight("angles", "class_pos_emb"),),
    )
    keys.find("note", "rope_parameters", "the class token turns by angles of its own, a weight of the model")
    return tower(keys, [use], coordinates="(row, column) of the patch, from 0, row by row; the class token at (-1, 0)")
