"""DiffusionGemma: Gemma 4's text model twice, a causal one that reads and one that looks both ways and writes."""

from __future__ import annotations

from posenc.dialects.families.gemma4 import LOCAL, PROPORTIONAL, _decoder
from posenc.dialects.family import family, parts
from posenc.dialects.keys import Keys
from posenc.dialects.schedule import FULL, SLIDING
from posenc.dialects.spec import PositionSpec


@family("diffusion_gemma_text")
def _(keys: Keys) -> PositionSpec:
    """Every sixth layer is full, the last one always, with wider heads of which a quarter turns."""
    keys.find(
        "note",
        "layer_types",
        "the layers of the reader; the writer's are the same, look both ways within what is "
        "written, and count on from what was read",
    )
    if keys.text("use_bidirectional_attention", None, among=("all", "vision")) == "all":
        keys.find("warning", "use_bidirectional_attention", "makes no mask: the reader stays causal where masks are given")
    return _decoder(keys, {SLIDING: LOCAL, FULL: PROPORTIONAL}, lambda n: (n + 1) % 6 != 0)


@family("diffusion_gemma")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"))
