"""What the original code of docs/my-code.md gives: tests/original_code.json.

    python tools/original_code.py FOLDER      FOLDER: one folder for each entry of FROM, of its name, unpacked

`pip download --no-deps` brings what is on the package index; nanochat, nanoGPT and Marian are the files of their
repositories. Each definition is taken from its file and run alone: besides torch, x-transformers needs a folder einops, and
mlx-lm a folder mlx with what mlx and mlx-cpu hold. Marian's function is compiled with g++.

TOKENS, and positions or a grid, go in; what comes out is rounded to nine digits. The tests make the same input.
"""

from __future__ import annotations
import __future__

import ast
import json
import math
import subprocess
import sys
import tempfile
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests" / "original_code.json"
FROM = {
    "nanoGPT": "commit 3adf61e1, model.py",
    "nanochat": "commit 92d63d4, nanochat/gpt.py",
    "llama_models": "llama-models 0.3.0",
    "litgpt": "litgpt 0.5.13",
    "torchtune": "torchtune 0.6.1",
    "torchtitan": "torchtitan 0.3.0",
    "nanotron": "nanotron 0.4",
    "x_transformers": "x-transformers 2.31.10",
    "timm": "timm 1.0.31",
    "diffusers": "diffusers 0.42.1",
    "fairseq": "fairseq 0.12.2",
    "marian": "commit c9f287db (1.12.43), src/tensors/cpu/tensor_operators.cpp",
    "mlx_lm": "mlx-lm 0.32.2 on mlx 0.32.4",
}
AT = [0, 1, 37, 1000]
GRID = (2, 3)
FRAMES = (2, 2, 3)


def tokens(count: int, width: int) -> Tensor:
    """Numbers that are none of another [count, width], the same everywhere."""
    return (0.7 * torch.arange(1, count * width + 1, dtype=torch.float64)).sin().float().view(count, width)


def grid_table() -> Tensor:
    """Class token and a grid of 4 x 4, 8 channels."""
    return tokens(17, 8)


def defined(path: Path, *names: str, replaced: tuple[str, str] = ("", ""), **given: Any) -> SimpleNamespace:
    """Definitions of a file, methods too, compiled alone; all of its top level without names. Decorators are dropped."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text.replace(*replaced) if replaced[0] else text)
    kinds = (ast.FunctionDef, ast.ClassDef)
    if names:
        nodes = [next(n for n in ast.walk(tree) if isinstance(n, kinds) and n.name == name) for name in names]
    else:
        nodes = [node for node in tree.body if isinstance(node, kinds)]
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, kinds):
            kept = ("dataclass", "staticmethod", "property", "classmethod")
            node.decorator_list = [one for one in node.decorator_list if ast.unparse(one).startswith(kept)]
    scope: dict[str, Any] = {**vars(typing), "torch": torch, "nn": nn, "F": F, "math": math, "np": np, "Tensor": Tensor}
    scope |= {"dataclass": dataclass, "__name__": "original"} | given
    code = compile(ast.Module(list(nodes), []), str(path), "exec", flags=__future__.annotations.compiler_flag)
    exec(code, scope)
    return SimpleNamespace(**scope)


def nano_gpt(folder: Path) -> Tensor:
    model: dict[str, Any] = {"__name__": "original"}
    sys.modules["original"] = SimpleNamespace(__dict__=model)  # type: ignore[assignment]
    exec(compile((folder / "model.py").read_text(encoding="utf-8"), "model.py", "exec"), model)
    gpt = model["GPT"](model["GPTConfig"](block_size=1024, vocab_size=4, n_layer=1, n_head=4, n_embd=64, dropout=0.0))
    gpt.transformer.wpe.weight.data.copy_(tokens(1024, 64))
    gpt.transformer.wte.weight.data.copy_(tokens(4, 64))
    ids = torch.zeros(1, 1001, dtype=torch.long)
    ids[0, AT] = torch.arange(4)
    seen: list[Tensor] = []
    gpt.transformer.drop.register_forward_hook(lambda module, given, out: seen.append(out))
    gpt(ids)
    return seen[0][0, AT]


def nanochat(folder: Path) -> Tensor:
    code = defined(folder / "gpt.py", "apply_rotary_emb", "_precompute_rotary_embeddings", COMPUTE_DTYPE=torch.float32)
    cos, sin = code._precompute_rotary_embeddings(None, 1001, 64, device="cpu")
    return code.apply_rotary_emb(tokens(4, 64)[None, :, None], cos[:, AT], sin[:, AT])[0, :, 0]


def llama(folder: Path) -> Tensor:
    path = next(folder.rglob("llama3/model.py"))
    code = defined(path, "precompute_freqs_cis", "reshape_for_broadcast", "apply_rotary_emb")
    x = tokens(4, 64)[None, :, None]
    return code.apply_rotary_emb(x, x, code.precompute_freqs_cis(64, 1001, 500000.0)[AT])[0][0, :, 0]


def litgpt(folder: Path) -> Tensor:
    """Pythia: a quarter of the head turns."""
    code = defined(next(folder.rglob("litgpt/model.py")), "build_rope_cache", "apply_rope")
    cos, sin = code.build_rope_cache(1001, 16)
    x = tokens(4, 64)[None, None]
    turned = code.apply_rope(x[..., :16], cos[None, AT], sin[None, AT])
    return torch.cat((turned, x[..., 16:]), dim=-1)[0, 0]


def torchtune(folder: Path) -> Tensor:
    path = next(folder.rglob("modules/position_embeddings.py"))
    rope = defined(path, "RotaryPositionalEmbeddings").RotaryPositionalEmbeddings(64)
    return rope(tokens(4, 64)[None, :, None], input_pos=torch.tensor([AT]))[0, :, 0]


def torchtitan(folder: Path) -> Tensor:
    """Qwen 3."""

    class Module(nn.Module):
        class Config:
            pass

    code = defined(next(folder.rglob("common/rope.py")), "RoPE", "CosSinRoPE", Module=Module)
    rope = code.CosSinRoPE(SimpleNamespace(dim=64, max_seq_len=1001, theta=1_000_000.0, scaling="none"))
    x = tokens(4, 64)[None, :, None]
    return rope.apply_rotary_emb(x, x, rope.cache[None, AT, None])[0][0, :, 0]


def nanotron(folder: Path) -> Tensor:
    code = defined(next(folder.rglob("models/llama.py")), "RotaryEmbedding", replaced=('"cuda"', '"cpu"'))
    return code.RotaryEmbedding(64, 2048)(tokens(4, 64)[None, :, None], torch.tensor([AT]))[0, :, 0]


def einops_of(folder: Path) -> Any:
    sys.path.insert(0, str(folder.parent / "einops"))
    import einops  # type: ignore[import-not-found]

    return einops


def x_transformers(folder: Path) -> Tensor:
    """Half of the head turns unless rotary_emb_dim says otherwise."""
    einops = einops_of(folder)
    given = {
        "rearrange": einops.rearrange,
        "arange": torch.arange,
        "stack": torch.stack,
        "cat": torch.cat,
        "Module": nn.Module,
    }
    given |= {"exists": lambda x: x is not None, "is_tensor": torch.is_tensor}
    path = next(folder.rglob("x_transformers/x_transformers.py"))
    code = defined(path, "RotaryEmbedding", "rotate_half", "apply_rotary_pos_emb", **given)
    freqs, scale = code.RotaryEmbedding(32)(torch.tensor(AT))
    return code.apply_rotary_pos_emb(tokens(4, 64)[None, None], freqs, scale)[0, 0]


def timm_rope(folder: Path, name: str, half: bool, **options: Any) -> Tensor:
    path = next(folder.rglob("layers/pos_embed_sincos.py"))
    given = {"ndgrid": lambda parts: torch.meshgrid(*parts, indexing="ij"), "_assert": lambda *_: None}
    given |= {"meshgrid": torch.meshgrid}
    code = defined(path, **given)
    emb = getattr(code, name)(64, **options).eval().get_embed(list(GRID))
    return code.apply_rot_embed_cat(tokens(6, 64), emb, half=half)


def timm_grid(folder: Path) -> Tensor:
    code = defined(next(folder.rglob("layers/pos_embed.py")), is_exporting=lambda: False)
    resampled: Tensor = code.resample_abs_pos_embed(grid_table()[None], [3, 6])[0]
    return resampled


def diffusers_code(folder: Path, file: str, *names: str) -> SimpleNamespace:
    one = defined(next(folder.rglob("models/embeddings.py")), "get_1d_rotary_pos_embed", "apply_rotary_emb")
    given = {
        "get_1d_rotary_pos_embed": one.get_1d_rotary_pos_embed,
        "maybe_adjust_dtype_for_device": lambda dtype, _: dtype,
    }
    found = defined(next(folder.rglob(f"transformers/{file}.py")), *names, **given)
    return SimpleNamespace(**{**vars(found), "apply": one.apply_rotary_emb})


def flux(folder: Path) -> Tensor:
    """Two words, and six patches."""
    code = diffusers_code(folder, "transformer_flux", "FluxPosEmbed")
    grid = torch.cartesian_prod(*map(torch.arange, GRID))
    ids = torch.cat((torch.zeros(2, 3), torch.cat((torch.zeros(6, 1), grid), dim=1)))
    return code.apply(tokens(8, 128)[None, None], code.FluxPosEmbed(10000, [16, 56, 56])(ids))[0, 0]


def wan(folder: Path) -> Tensor:
    code = diffusers_code(folder, "transformer_wan", "WanRotaryPosEmbed", "apply_rotary_emb")
    cos, sin = code.WanRotaryPosEmbed(128, (1, 2, 2), 64)(torch.zeros(1, 16, 2, 4, 6))
    return code.apply_rotary_emb(tokens(12, 128)[None, :, None], cos, sin)[0, :, 0]


def fairseq(folder: Path) -> Tensor:
    path = next(folder.rglob("modules/sinusoidal_positional_embedding.py"))
    code = defined(path, "SinusoidalPositionalEmbedding").SinusoidalPositionalEmbedding
    padding = 1
    return tokens(4, 64) + code.get_embedding(1100, 64, padding)[[padding + 1 + p for p in AT]]


def marian(folder: Path) -> Tensor:
    """Its embeddings are multiplied by √dimEmb first (src/models/transformer.h)."""
    text = (folder / "tensor_operators.cpp").read_text(encoding="utf-8")
    begin = text.index("void SinusoidalPositionEmbeddings(")
    function = text[begin : text.index("\n}\n", begin) + 3]
    program = """#include <cmath>
#include <cstdio>
#include <vector>
namespace marian {
struct Held { std::vector<int> s; std::vector<float> d; std::vector<int>& shape() { return s; }
  size_t size() { return d.size(); } float* data() { return d.data(); } };
typedef Held* Tensor;
}
FUNCTION
int main() { marian::Held t; t.s = {1001, 64}; t.d.resize(1001 * 64); SinusoidalPositionEmbeddings(&t, 0);
  for(float x : t.d) printf("%.9g ", x); }
"""
    body = function.replace("t->shape()[-1]", "t->shape().back()")  # Marian's shapes count from the end
    with tempfile.TemporaryDirectory() as place:
        source, run = Path(place) / "a.cpp", Path(place) / "a"
        source.write_text(program.replace("FUNCTION", body), encoding="utf-8")
        subprocess.run(["g++", str(source), "-o", str(run)], check=True)
        out = subprocess.run([str(run)], capture_output=True, encoding="utf-8", check=True).stdout
    table = torch.tensor([float(number) for number in out.split()]).view(1001, 64)
    return 8 * tokens(4, 64) + table[AT]


def mlx_lm(folder: Path) -> Tensor:
    """Llama 3.1's, on mlx for processors."""
    sys.path.insert(0, str(folder.parent / "mlx"))
    import mlx.core as mx  # type: ignore[import-not-found]
    import mlx.nn  # type: ignore[import-not-found]

    code = defined(next(folder.rglob("models/rope_utils.py")), "Llama3RoPE", mx=mx, nn=mlx.nn)
    scaling = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    rope, x = code.Llama3RoPE(64, base=500000.0, scaling_config=scaling), tokens(4, 64).numpy()
    rows = [np.array(rope(mx.array(row[None, None, None]), offset=at))[0, 0] for row, at in zip(x, AT, strict=True)]
    return torch.from_numpy(np.concatenate(rows))


ROWS: dict[str, tuple[str, Callable[[Path], Tensor]]] = {
    "nanoGPT": ("nanoGPT", nano_gpt),
    "nanochat": ("nanochat", nanochat),
    "Llama's own code": ("llama_models", llama),
    "litgpt": ("litgpt", litgpt),
    "torchtune": ("torchtune", torchtune),
    "torchtitan": ("torchtitan", torchtitan),
    "nanotron": ("nanotron", nanotron),
    "x-transformers": ("x_transformers", x_transformers),
    "timm: a learned grid": ("timm", timm_grid),
    "timm: RoPE on a grid": (
        "timm",
        lambda folder: timm_rope(folder, "RotaryEmbeddingCat", False, in_pixels=False, feat_shape=None),
    ),
    "timm: DINOv3": ("timm", lambda folder: timm_rope(folder, "RotaryEmbeddingDinoV3", True)),
    "diffusers: FLUX": ("diffusers", flux),
    "diffusers: Wan": ("diffusers", wan),
    "fairseq": ("fairseq", fairseq),
    "Marian": ("marian", marian),
    "mlx-lm": ("mlx_lm", mlx_lm),
}


def main() -> None:
    (root,) = map(Path, sys.argv[1:])
    torch.manual_seed(0)
    made = {}
    for row, (folder, original) in ROWS.items():
        with torch.no_grad():
            out = original(root / folder)
        made[row] = {"from": FROM[folder], "out": [[float(f"{number:.9g}") for number in one] for one in out.tolist()]}
        print(f"{row}: {list(out.shape)}")
    lines = (f" {json.dumps(row, ensure_ascii=False)}: {json.dumps(held)}" for row, held in made.items())
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
