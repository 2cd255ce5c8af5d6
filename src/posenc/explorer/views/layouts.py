"""The two layouts of RoPE, and the scores if weights and code use different layouts."""

from __future__ import annotations

from itertools import product

from pydantic import Field

from posenc.configs.convert.families import known_layout
from posenc.explorer.data import Data, computed
from posenc.explorer.parameters import Parameters as Base
from posenc.frequencies.layouts import Layout

ORDER = 170

BOTH: tuple[Layout, Layout] = ("half", "interleaved")
LENGTH = 12
DRAWS = 64
D_MODEL = 16
MODELS = {
    "llama": "Llama (Hugging Face)",
    "qwen3": "Qwen 3",
    "gemma3": "Gemma 3",
    "gpt_neox": "GPT-NeoX",
    "gpt_oss": "gpt-oss",
    "roformer": "RoFormer",
    "gptj": "GPT-J",
    "glm4": "GLM-4",
    "cohere": "Cohere",
    "llama4": "Llama 4",
}

ARRAYS = (
    *("omega", "half", "interleaved", "permutation", "rows", "query", "turned", "right", "got", "difference"),
    *("by_distance", "converted_matrices"),
)


class Parameters(Base):
    d_head: int = Field(default=8, ge=4, le=32, multiple_of=2)
    base: float = Field(default=10000.0, ge=1.01, le=1e6)
    weights: Layout = "half"
    code: Layout = "half"
    convert_q: bool = False
    convert_k: bool = False


EXPORTED = (
    Parameters(),
    *(
        Parameters(weights=weights, code=code, convert_q=q, convert_k=k)
        for weights, code, q, k in product(BOTH, BOTH, (False, True), (False, True))
        if (weights, code, q, k) != ("half", "half", False, False)
    ),
    Parameters(d_head=16, code="interleaved"),
    Parameters(d_head=32, code="interleaved"),
)


def data(params: Parameters) -> Data:
    other: Layout = "interleaved" if params.weights == "half" else "half"
    models = [[name, known_layout({"model_type": family})] for family, name in MODELS.items()]
    return computed(_python(params, other), ARRAYS, {"models": models})


def _python(params: Parameters, other: Layout) -> str:
    d, base, now = params.d_head, params.base, params.weights
    taken = {
        name: f'posenc.convert_keys({name}, "{now}", "{other}")' if converted else name
        for name, converted in (("q", params.convert_q), ("k", params.convert_k))
    }
    return f"""import torch
import posenc
from posenc import layouts
from posenc.configs.convert.rows import Heads, convert_rows, row_permutation

omega = torch.tensor(posenc.frequencies.rotary({d}, {base!r}), dtype=torch.float64)
half = torch.stack(layouts.split(torch.arange({d}), "half"), dim=1)
interleaved = torch.stack(layouts.split(torch.arange({d}), "interleaved"), dim=1)
permutation = layouts.permutation({d}, "{now}", "{other}")  # x_{other} = x_{now}[permutation]


def scores(q, k, layout):
    rope = posenc.create("rope", d_head={d}, base={base!r}, layout=layout)
    return rope.rotate(q, at, "query")[0] @ rope.rotate(k, at, "key")[0].mT


# {DRAWS} heads of random queries and keys, made for {now}
at = posenc.Positions.arange(1, {LENGTH})
random = torch.Generator().manual_seed(0)
q, k = torch.randn(2, 1, {DRAWS}, {LENGTH}, {d}, dtype=torch.float64, generator=random)
all_right = scores(q, k, "{now}")
q_given, k_given = {taken["q"]}, {taken["k"]}
all_got = scores(q_given, k_given, "{params.code}")
right, got, query = all_right[0], all_got[0], q[0, 0]
difference = got - right
turned = posenc.create("rope", d_head={d}, base={base!r}, layout="{now}").rotate(q, at, "query")[0, 0]

# how far off, by distance
apart = (torch.arange({LENGTH})[:, None] - torch.arange({LENGTH})).abs()
error = (all_got - all_right).square().mean(dim=0)
of_distance = torch.stack([error[apart == distance].mean() for distance in range({LENGTH})])
by_distance = (of_distance / all_right.square().mean()).sqrt()

# W_q and W_k of two heads, moved as posenc convert --to {other} moves them
heads = Heads(n_heads=2, d_head={d})
rows = row_permutation({2 * d}, heads.slices("q").q, {d}, "{now}", "{other}")
w_q, w_k = torch.randn(2, {2 * d}, {D_MODEL}, dtype=torch.float64, generator=random)
x = torch.randn(1, {LENGTH}, {D_MODEL}, dtype=torch.float64, generator=random)


def projected(w):
    return (x @ w.T).unflatten(-1, (2, -1)).transpose(1, 2)


moved = [convert_rows(w, part, heads, "{now}", "{other}") for part, w in (("q", w_q), ("k", w_k))]
before, after = scores(projected(w_q), projected(w_k), "{now}"), scores(*map(projected, moved), "{other}")
converted_matrices = (after - before).abs().max() / before.abs().max()"""
