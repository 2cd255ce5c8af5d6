"""Encodings side by side: what each adds to the same scores, and the properties of two of them.

plain         [h, i, j]     q·k/√d without any encoding; NaN where masked
added         [m, h, i, j]  the score with the encoding, minus that without
distance      [n]           i - j
mean, lowest, highest  [m, h, n]  of what is added, over all pairs at that distance

All encodings share the same random words and projections. With `words` "same", one word stands everywhere and its key is
its query, so that whatever differs between two scores comes from the positions. Learned parameters are drawn from
N(0, 0.5²), not trained.
Legend: m encodings, h heads, i query, j key, n distances, t tokens, w d_model, d d_head.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal

import torch
from pydantic import Field

import posenc
from posenc.catalogue.description import SEAMS, TRAITS, requested
from posenc.catalogue.lookup import BY_NAME, directed
from posenc.encoding import scale_of
from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.parameters import encodings
from posenc.support.languages import LANGUAGES

ORDER = 150
POSITION = "i"

if TYPE_CHECKING:
    Method = str
else:
    Method = encodings()
MOVED_BY = 37
SHOWN = ("nope", "sinusoidal", "learned", "rope", "xpos", "alibi", "t5", "shaw", "transformer_xl", "cope")

ARRAYS = ("plain", "added", "distance", "mean", "lowest", "highest")


class Parameters(Base):
    first: Method = "sinusoidal"
    second: Method = "rope"
    words: Literal["same", "different"] = "same"
    length: int = Field(default=24, ge=4, le=128)
    d_model: int = Field(default=64, ge=16, le=256, multiple_of=16)
    n_heads: Literal["1", "2", "4", "8"] = "4"
    causal: bool = False
    seed: int = Field(default=0, ge=0, le=999)

    @property
    def methods(self) -> list[str]:
        """Those that are always shown, then the chosen ones that are not among them."""
        return list(dict.fromkeys((*SHOWN, self.first, self.second)))


EXPORTED = (
    Parameters(),
    Parameters(words="different"),
    Parameters(causal=True),
    Parameters(first="rope", second="alibi"),
    Parameters(first="shaw", second="transformer_xl"),
)


def logits(encoding, x, w_q, w_k, at, causal):  # type: ignore[no-untyped-def]
    """Every score before the softmax, [h, i, j], with each way in which an encoding acts, in order."""
    x = encoding.embed(x, at)
    q, k = encoding.rotate(x[:, None] @ w_q, at, "query"), encoding.rotate(x[:, None] @ w_k, at, "key")
    scores = q @ k.mT * scale_of(encoding, q.shape[-1])
    b, h, i, j = torch.meshgrid(*map(torch.arange, scores.shape), indexing="ij")
    if (bias := encoding.bias(q, k, at, at)) is not None:
        scores = scores + bias(b, h, i, j)
    seen = ((j <= i) | (not causal and "causal_only" not in encoding.traits))[:, :1]
    state = posenc.Scores(scores, q, torch.zeros_like(q), at, at, seen)
    encoding.finish(state)  # it keeps the logits of which it takes the softmax
    return state.kept.get("logits", scores).masked_fill(~seen, float("nan"))[0]


def data(params: Parameters) -> Data:
    """The data. The fact `methods` holds catalogue entries and the change of the scores when all positions are shifted."""
    python = _python(params)
    try:
        variables = run(python)
    except ModuleNotFoundError as error:
        raise ValueError(f"methods: {error}") from error
    moved, facts = posenc.Positions.arange(1, params.length, MOVED_BY), []
    for name, encoding, before in zip(params.methods, variables["encodings"], variables["scores"], strict=True):
        after = logits(encoding, variables["x"], variables["w_q"], variables["w_k"], moved, params.causal)
        facts.append(_facts(name, encoding) | {"moved": float((after - before).nan_to_num().abs().max())})
    return Data({name: variables[name] for name in ARRAYS}, python, {"methods": facts, "moved_by": MOVED_BY})


def _shapes(params: Parameters) -> tuple[tuple[int, ...], ...]:
    """x [1, t, w], w_q and w_k [h, w, d]."""
    heads = int(params.n_heads)
    projection = (heads, params.d_model, params.d_model // heads)
    return (1, params.length, params.d_model), projection, projection


def _options(name: str, params: Parameters) -> dict[str, Any]:
    sizes = {"d_model": params.d_model, "n_heads": int(params.n_heads)}
    return sizes | directed(name, params.causal)


def _facts(name: str, encoding: posenc.PositionalEncoding) -> dict[str, Any]:
    entry = BY_NAME[name]
    seams = [seam for seam in SEAMS if seam in encoding.seams]
    traits = sorted(encoding.traits)
    return {
        "name": name,
        "title": entry.page.title.as_dict(),
        "formula": entry.formula,
        "idea": entry.page.idea.as_dict(),
        "used_by": {language: entry.users(language) for language in LANGUAGES},
        "source": entry.page.source,
        "seams": {language: [SEAMS[seam].in_language(language) for seam in seams] for language in LANGUAGES},
        "traits": {language: [TRAITS[trait].in_language(language) for trait in traits] for language in LANGUAGES},
        "parameters": sum(parameter.numel() for parameter in encoding.parameters()),
        "largest_position": encoding.largest_position(),
        "causal_only": "causal_only" in traits,
    }


def _python(params: Parameters) -> str:
    def created(name: str) -> str:
        return ", ".join(
            [f'    posenc.create("{name}"', *(f"{key}={value!r}" for key, value in _options(name, params).items())]
        )

    encodings = "\n".join(f"{created(name)}){requested(name, params.length + MOVED_BY)}," for name in params.methods)
    source = inspect.getsource(logits).replace("  # type: ignore[no-untyped-def]", "")
    x, projection, _ = _shapes(params)
    start = 0 if params.causal else 1 - params.length
    one_word = "\nx, w_k = x[:, :1].expand_as(x), w_q  # one word everywhere, its key the same as its query"
    return f"""import torch
import posenc
from posenc.encoding import scale_of


{source}

random = torch.Generator().manual_seed({params.seed})
shapes = {x}, {projection}, {projection}
x, w_q, w_k = (torch.randn(shape, generator=random, dtype=torch.float64) for shape in shapes)
w_q, w_k = w_q / {params.d_model}**0.5, w_k / {params.d_model}**0.5{one_word if params.words == "same" else ""}
at = posenc.Positions.arange(1, {params.length})
encodings = [
{encodings}
]
# Learned tables are random here: nothing is trained.
encodings = [posenc.laws.draw_parameters(e.double(), seed={params.seed}).requires_grad_(False) for e in encodings]
plain = logits(posenc.create("nope"), x, w_q, w_k, at, causal={params.causal})
scores = torch.stack([logits(e, x, w_q, w_k, at, causal={params.causal}) for e in encodings])
added = scores - plain

distance = torch.arange({start}, {params.length})  # i - j
diagonals = [added.diagonal(-d, -2, -1) for d in distance.tolist()]
mean = torch.stack([diagonal.mean(-1) for diagonal in diagonals], -1)
lowest, highest = (torch.stack([f(diagonal, -1) for diagonal in diagonals], -1) for f in (torch.amin, torch.amax))"""
