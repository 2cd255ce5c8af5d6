"""Runs posenc.check on positional encodings of other libraries and writes the table law × library.

    python bench/check/field.py              writes field.md beside this file
    python bench/check/field.py NAME …       prints the reports of some

Needs the packages of the extra `field`; an implementation whose package is missing is left out and named.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")

import torch

import posenc
from posenc.checking import Report
from posenc.checking.adapters import Buckets, ByLengths, ByOffset, CosSin, HuggingFaceRotary, Slopes, offset_of

PAGE = Path(__file__).with_name("field.md")
Made = tuple[str, Any, dict[str, Any]]  # the seam, the adapter, the options of check


# transformers ---------------------------------------------------------------------------------------------------------


def _transformers(family: str, rotary: str, config: str, **settings: Any) -> Made:
    import transformers

    modeling = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    sizes = {"hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 2048}
    made = getattr(transformers, config)(**sizes | settings)
    return "rotate", HuggingFaceRotary(getattr(modeling, rotary)(made), modeling.apply_rotary_pos_emb), {"width": 64}


def llama() -> Made:
    return _transformers("llama", "LlamaRotaryEmbedding", "LlamaConfig")


def llama3() -> Made:
    scaling = {
        "rope_type": "llama3",
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
        "rope_theta": 500000.0,
    }
    return _transformers("llama", "LlamaRotaryEmbedding", "LlamaConfig", rope_parameters=scaling)


def llama_yarn() -> Made:
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048, "rope_theta": 10000.0}
    return _transformers("llama", "LlamaRotaryEmbedding", "LlamaConfig", rope_parameters=scaling)


def llama_linear() -> Made:
    scaling = {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}
    return _transformers("llama", "LlamaRotaryEmbedding", "LlamaConfig", rope_parameters=scaling)


def llama_dynamic() -> Made:
    scaling = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
    return _transformers("llama", "LlamaRotaryEmbedding", "LlamaConfig", rope_parameters=scaling)


def mistral() -> Made:
    return _transformers("mistral", "MistralRotaryEmbedding", "MistralConfig", head_dim=64)


def qwen3() -> Made:
    return _transformers("qwen3", "Qwen3RotaryEmbedding", "Qwen3Config", head_dim=64)


def gemma() -> Made:
    return _transformers("gemma", "GemmaRotaryEmbedding", "GemmaConfig", head_dim=64)


def cohere() -> Made:
    return _transformers("cohere", "CohereRotaryEmbedding", "CohereConfig")


def gpt_neox() -> Made:
    return _transformers("gpt_neox", "GPTNeoXRotaryEmbedding", "GPTNeoXConfig")


def t5_buckets() -> Made:
    from transformers.models.t5.modeling_t5 import T5Attention

    return "bias", Buckets(T5Attention._relative_position_bucket), {}


def bloom_alibi() -> Made:
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    def bias(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        offset_of(k)
        made = build_alibi_tensor(torch.ones(len(k), int(k[0, -1]) + 1, dtype=torch.long), 6, torch.float32)
        return made.unflatten(0, (len(k), 6))[..., k[0]].expand(-1, -1, q.shape[1], -1)

    return "bias", bias, {}


# Other libraries ------------------------------------------------------------------------------------------------------


def rotary_embedding_torch() -> Made:
    from rotary_embedding_torch import RotaryEmbedding

    return "rotate", ByOffset(RotaryEmbedding(dim=64)), {"width": 64}


def rotary_embedding_torch_by_positions() -> Made:
    from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

    class Rotary(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rope = RotaryEmbedding(dim=64)

        def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
            return apply_rotary_emb(self.rope(positions)[:, None], x)

    return "rotate", Rotary(), {"width": 64}


def x_transformers_rotary() -> Made:
    from x_transformers.x_transformers import RotaryEmbedding, apply_rotary_pos_emb

    class Rotary(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rope = RotaryEmbedding(64)

        def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
            freqs, scale = self.rope(positions)
            return apply_rotary_pos_emb(x, freqs, scale)

    return "rotate", Rotary(), {"width": 64}


def x_transformers_alibi() -> Made:
    from x_transformers.x_transformers import AlibiPositionalBias

    class Alibi(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.alibi = AlibiPositionalBias(6)

        def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
            return self.alibi.forward_custom_pos(q, k)

    return "bias", Alibi(), {}


def x_transformers_alibi_by_lengths() -> Made:
    from x_transformers.x_transformers import AlibiPositionalBias

    return "bias", ByLengths(AlibiPositionalBias(6)), {}


def x_transformers_t5() -> Made:
    from x_transformers.x_transformers import RelativePositionBias

    return "bias", Buckets(RelativePositionBias._relative_position_bucket, causal=False), {}


def x_transformers_sinusoid() -> Made:
    from x_transformers.x_transformers import ScaledSinusoidalEmbedding

    class Sinusoid(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = ScaledSinusoidalEmbedding(64)

        def forward(self, positions: torch.Tensor) -> torch.Tensor:
            return torch.stack([self.table(row[None, :, None], pos=row) for row in positions])

    return "table", Sinusoid(), {}


def torchtune_rope() -> Made:
    from torchtune.modules import RotaryPositionalEmbeddings

    class Rotary(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rope = RotaryPositionalEmbeddings(64, max_seq_len=4096)

        def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
            return self.rope(x.transpose(1, 2), input_pos=positions).transpose(1, 2)

        def reset_parameters(self) -> None:
            self.rope.rope_init()

    return "rotate", Rotary(), {"width": 64}


def positional_encodings_1d() -> Made:
    from positional_encodings.torch_encodings import PositionalEncoding1D

    class Table(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = PositionalEncoding1D(64)

        def forward(self, positions: torch.Tensor) -> torch.Tensor:
            last = offset_of(positions) + positions.shape[1]
            return self.table(torch.zeros(len(positions), last, 64))[:, -positions.shape[1] :]

    return "table", Table(), {}


def keras_hub_rotary() -> Made:
    from keras_hub.layers import RotaryEmbedding

    layer = RotaryEmbedding(sequence_axis=2, feature_axis=-1)

    def rotate(x: torch.Tensor, positions: torch.Tensor) -> Any:
        return layer(x, positions=positions)

    return "rotate", rotate, {"width": 64}


def keras_hub_rotary_by_offset() -> Made:
    from keras_hub.layers import RotaryEmbedding

    layer = RotaryEmbedding(sequence_axis=2, feature_axis=-1)

    def rotate(x: torch.Tensor, positions: torch.Tensor) -> Any:
        return layer(x, start_index=offset_of(positions))

    return "rotate", rotate, {"width": 64}


def keras_hub_sinusoid() -> Made:
    from keras_hub.layers import SinePositionEncoding

    layer = SinePositionEncoding()

    def table(positions: torch.Tensor) -> Any:
        return layer(torch.zeros(*positions.shape, 64), positions=positions)

    return "table", table, {}


def keras_hub_alibi() -> Made:
    from keras_hub.layers import AlibiBias

    layer = AlibiBias()

    def bias(q: torch.Tensor, k: torch.Tensor) -> Any:
        if offset_of(k):
            raise NotImplementedError("it takes no key positions")
        return layer(torch.zeros(len(q), 6, q.shape[1], k.shape[1]))

    return "bias", bias, {}


def timm_rotary() -> Made:
    from timm.layers.pos_embed_sincos import apply_rot_embed_cat, freq_bands

    def table(positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        angles = positions[..., None] * freq_bands(32, temperature=10000.0, step=1)
        return angles.sin().repeat_interleave(2, -1), angles.cos().repeat_interleave(2, -1)

    def rotate(q: torch.Tensor, k: torch.Tensor, sin: torch.Tensor, cos: torch.Tensor) -> torch.Tensor:
        return apply_rot_embed_cat(q, torch.cat([sin, cos], -1)[:, None])

    return "rotate", CosSin(rotate, table), {"width": 64}


def diffusers_rotary() -> Made:
    from diffusers.models.embeddings import apply_rotary_emb, get_1d_rotary_pos_embed

    def rotate(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        tables = [get_1d_rotary_pos_embed(64, row, use_real=True) for row in positions]
        return torch.cat([apply_rotary_emb(x[n : n + 1], table) for n, table in enumerate(tables)])

    return "rotate", rotate, {"width": 64}


def diffusers_sincos() -> Made:
    from diffusers.models.embeddings import get_1d_sincos_pos_embed_from_grid

    def table(positions: torch.Tensor) -> torch.Tensor:
        return get_1d_sincos_pos_embed_from_grid(64, positions).unflatten(0, positions.shape)

    return "table", table, {}


def diffusers_sinusoid() -> Made:
    from diffusers.models.embeddings import SinusoidalPositionalEmbedding

    class Sinusoid(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = SinusoidalPositionalEmbedding(64, max_seq_length=4096)

        def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
            if offset_of(positions):
                raise NotImplementedError("it counts from 0")
            return self.embed(x)

    return "embed", Sinusoid(), {"width": 64}


def mpt_slopes() -> Made:
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

    def slopes(n: int) -> torch.Tensor:
        made = build_mpt_alibi_tensor(n, 2)
        return (made[..., -1] - made[..., -2]).flatten()

    return "bias", Slopes(slopes, 6), {}


FIELD: dict[str, tuple[str, Callable[[], Made]]] = {
    "Llama": ("transformers", llama),
    "Llama, llama3 scaling": ("transformers", llama3),
    "Llama, YaRN": ("transformers", llama_yarn),
    "Llama, linear": ("transformers", llama_linear),
    "Llama, dynamic NTK": ("transformers", llama_dynamic),
    "Mistral": ("transformers", mistral),
    "Qwen 3": ("transformers", qwen3),
    "Gemma": ("transformers", gemma),
    "Cohere": ("transformers", cohere),
    "GPT-NeoX": ("transformers", gpt_neox),
    "T5 buckets": ("transformers", t5_buckets),
    "BLOOM ALiBi": ("transformers", bloom_alibi),
    "MPT slopes": ("transformers", mpt_slopes),
    "RotaryEmbedding(offset)": ("rotary-embedding-torch", rotary_embedding_torch),
    "RotaryEmbedding(positions)": ("rotary-embedding-torch", rotary_embedding_torch_by_positions),
    "RotaryEmbedding ": ("x-transformers", x_transformers_rotary),
    "AlibiPositionalBias(positions)": ("x-transformers", x_transformers_alibi),
    "AlibiPositionalBias(i, j)": ("x-transformers", x_transformers_alibi_by_lengths),
    "RelativePositionBias": ("x-transformers", x_transformers_t5),
    "ScaledSinusoidalEmbedding": ("x-transformers", x_transformers_sinusoid),
    "RotaryPositionalEmbeddings": ("torchtune", torchtune_rope),
    "PositionalEncoding1D": ("positional-encodings", positional_encodings_1d),
    "RotaryEmbedding(positions) ": ("keras-hub", keras_hub_rotary),
    "RotaryEmbedding(start_index)": ("keras-hub", keras_hub_rotary_by_offset),
    "SinePositionEncoding": ("keras-hub", keras_hub_sinusoid),
    "AlibiBias": ("keras-hub", keras_hub_alibi),
    "apply_rot_embed_cat": ("timm", timm_rotary),
    "get_1d_rotary_pos_embed": ("diffusers", diffusers_rotary),
    "get_1d_sincos_pos_embed": ("diffusers", diffusers_sincos),
    "SinusoidalPositionalEmbedding": ("diffusers", diffusers_sinusoid),
}


def report(name: str) -> Report:
    """The report of one implementation. Raises ModuleNotFoundError where its package is missing."""
    package, make = FIELD[name]
    seam, adapter, options = make()
    version = importlib.metadata.version(package)
    return posenc.check(**{seam: adapter}, name=f"{package} {version}: {name.strip()}", **options)


HEAD = """# The laws on other libraries

Generated by `python bench/check/field.py`, with torch {torch} and the packages of the extra `field`. ✓ passed, ✗ failed,
· not applicable or not declared: the implementation has no argument for such input, or refuses it. Each failure is
confirmed without posenc by a script in [reproductions](reproductions), named in the last table.
"""
SEAMS = ("rotate", "embed", "table", "bias")


def written(reports: list[Report], missing: list[str]) -> str:
    """The page: one table for each seam, and every failure with its figure and its reproduction."""
    lines = [HEAD.format(torch=torch.__version__.split("+")[0])]
    if missing:
        lines.append(f"Not installed, and left out: {', '.join(missing)}.\n")
    for seam in SEAMS:
        of_seam = [one for one in reports if one.seam == seam]
        laws = [result.law for result in of_seam[0].results[:-1]] if of_seam else []
        marks = {"passed": "✓", "failed": "✗", "not applicable": "·", "not declared": "·"}
        lines += [f"## {seam}\n", "| | " + " | ".join(map(str, range(1, len(of_seam) + 1))) + " |"]
        lines.append("|---|" + ":-:|" * len(of_seam))
        lines += [f"| {law} | " + " | ".join(marks[one[law].verdict] for one in of_seam) + " |" for law in laws]
        lines += ["", *(f"{n}. {one.subject}: {one.identity.sentence}" for n, one in enumerate(of_seam, 1)), ""]
    lines += ["## Failures\n", "| implementation | law | smallest input | differs by | allowed | reproduction |"]
    lines.append("|---|---|---|---|---|---|")
    for one in reports:
        for failure in one.failures:
            inputs = ", ".join(f"{name} {value}" for name, value in failure.example.items())
            figure = "an error" if failure.figure == float("inf") else f"{failure.figure:.2g}"
            script = reproduction(one.subject, failure.law)
            lines.append(
                f"| {one.subject} | {failure.law} | {inputs} | {figure} | {failure.allowed:.2g} | "
                f"[{script}](reproductions/{script}) |"
            )
    return "\n".join(lines) + "\n"


def reproduction(subject: str, law: str) -> str:
    """The script that shows the failure without posenc."""
    package = subject.split()[0].replace("-", "_")
    kind = {
        "casting_a_module_does_not_round_its_angles": "cast",
        "tables_survive_to_empty": "to_empty",
        "calls_at_once_do_not_matter": "threads",
        "tokens_of_16_bits_lose_16_bits_only": "16_bits",
    }.get(law, "dynamic")
    return f"{package}_{kind}.py"


def main(names: list[str]) -> None:
    reports, missing = [], []
    for name in names or FIELD:
        try:
            reports.append(report(name))
        except ModuleNotFoundError as error:
            missing.append(f"{name.strip()} ({error.name})")
            continue
        print(reports[-1] if names else f"{reports[-1].subject}: {len(reports[-1].failures)} failed", flush=True)
    if not names:
        PAGE.write_text(written(reports, missing), encoding="utf-8")
        scripts = {reproduction(one.subject, failure.law) for one in reports for failure in one.failures}
        print(*sorted(scripts), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
