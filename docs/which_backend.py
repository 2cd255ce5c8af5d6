"""The table of docs/backends.md: what "auto" takes, asked of the package itself."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import posenc
from posenc import PositionalEncoding, Positions, Stack
from posenc.attention.backends import BACKENDS
from posenc.attention.call import Call
from posenc.attention.plan import backend_of

SIZES = {"d_model": 64, "n_heads": 4, "max_positions": 64}
ENCODINGS = {
    "NoPE, Sinusoidal, Learned, RoPE, xPos": ["nope", "sinusoidal", "learned", "rope", "xpos"],
    "ALiBi, T5; Stack(RoPE, ALiBi)": ["alibi", "t5", "rope alibi"],
    "Shaw": ["shaw"],
    "Shaw(values=False), Transformer-XL": ["shaw keys", "transformer_xl"],
    "CoPE": ["cope"],
    "ReRoPE, Self-Extend, LM-Infinite, Dual Chunk, Shifted RoPE": [
        "rerope",
        "self_extend",
        "lm_infinite",
        "dual_chunk",
        "shifted_rope",
    ],
}
POSITIONS = {  # on both sides the same
    ("consecutive: `arange`", "连续：`arange`"): Positions.arange(1, 8),
    ("counted in documents: `packed`, `from_mask`", "文档内计数：`packed`、`from_mask`"): Positions.packed([0, 3, 8]),
    ("others: `at`, `randomized`, `take`", "其他：`at`、`randomized`、`take`"): Positions.at(torch.tensor([[0, 2, 3, 7]])),
}
HEADS = {
    "en": ("encoding", "positions of queries and keys", "CPU", "CUDA", '`impl="flex"` on the CPU'),
    "zh": ("编码", "查询与键的位置", "CPU", "CUDA", 'CPU 上的 `impl="flex"`'),
}
SERVED = {"en": ("yes", "no"), "zh": ("可", "否")}


def table(language: str) -> str:
    """One row for each kind of encoding and of positions. Raises AssertionError where those of a row differ."""
    rows = ["| " + " | ".join(HEADS[language]) + " |", "|---|---|---|---|---|"]
    for label, names in ENCODINGS.items():
        for words, at in POSITIONS.items():
            found = {answers(build(name), at) for name in names}
            assert len(found) == 1, f"{label}: {found}"
            on_cpu, on_cuda, flex = found.pop()
            cells = (label, words[language == "zh"], f"`{on_cpu}`", f"`{on_cuda}`", SERVED[language][not flex])
            rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def build(name: str) -> PositionalEncoding:
    if name == "shaw keys":
        return posenc.create("shaw", **SIZES, values=False)
    parts = [posenc.create(part, **SIZES) for part in name.split()]
    return parts[0] if len(parts) == 1 else Stack(*parts)


def answers(encoding: PositionalEncoding, at: Positions) -> tuple[str, str, bool]:
    """What "auto" takes on the CPU and on CUDA, and whether flex serves the call on the CPU; no gradients asked for.

    The queries on CUDA are fake: choosing reads their shape, dtype and device.
    """
    queries = torch.zeros(1, 4, at.length, 16)
    with FakeTensorMode():
        on_cuda = torch.zeros(1, 4, at.length, 16, device="cuda")
    names = {backend: name for name, backend in BACKENDS.items()}
    with torch.no_grad():
        here, there = (Call.of(q, q, q, encoding, at, at) for q in (queries, on_cuda))
        taken = [names[backend_of(call)] for call in (here, there)]
        flex = BACKENDS["flex"]
        serves = not (flex.refuses(encoding, here.structure) or flex.refuses_call(here))
    return taken[0], taken[1], serves
