"""llama.cpp's own converter and its own arithmetic, for tests: a GGUF file of a folder, and the logits that it gives.

The converter is in the sources of llama-cpp-python, which pip downloads; llama_cpp is that package, built.
"""

from __future__ import annotations

import importlib
import logging
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from posenc.configs.report.runtimes import servers

RELEASE = servers()["llama.cpp"]["version"].replace(" ", "==")
NONE, LINEAR, YARN = 0, 1, 2  # enum llama_rope_scaling_type, include/llama.h
F32 = 0  # enum ggml_type


def sources(folder: Path) -> Path:
    """vendor/llama.cpp of the release that servers.json names."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(folder)]
    subprocess.run([*pip, RELEASE], check=True)
    (archive,) = folder.glob("*.tar.gz")
    subprocess.run(["tar", "xzf", archive, "-C", folder], check=True)
    (found,) = folder.glob("*/vendor/llama.cpp")
    return found


def use(llama_cpp: Path) -> None:
    """Lets this process import the converter and the package gguf that belongs to it."""
    assert "gguf" not in sys.modules
    sys.path[:0] = [str(llama_cpp), str(llama_cpp / "gguf-py")]
    logging.getLogger("hf-to-gguf").setLevel(logging.CRITICAL)


def converted(folder: Path, architecture: str, vocabulary: int) -> Path:
    """The file that convert_hf_to_gguf.py makes of a folder with weights, in float32, without the words of a tokenizer."""
    gguf = importlib.import_module("gguf")
    made = importlib.import_module("conversion").get_model_class(architecture)(
        folder, gguf.LlamaFileType.ALL_F32, folder / "model.gguf"
    )
    made = getattr(made, "impl", made)
    writer = made.gguf_writer

    def no_words() -> None:
        writer.add_tokenizer_model("none")
        if not any(name.endswith(".vocab_size") for shard in writer.kv_data for name in shard):
            writer.add_vocab_size(vocabulary)

    made.set_vocab = no_words
    made.write()
    return folder / "model.gguf"


def settings(words: Sequence[str]) -> dict[str, Any]:
    """The options of a llama-server command as arguments of llama_cpp.Llama: common/arg.cpp."""
    assert words[0] == "llama-server"
    pairs = list(zip(words[1::2], words[2::2], strict=True))
    given = {name: value for name, value in pairs if name not in ("-m", "--override-kv")}
    kinds = {"int": int, "float": float, "str": str}
    told = [re.fullmatch(r"(.*)=(int|float|str):(.*)", value) for name, value in pairs if name == "--override-kv"]
    overrides = {one[1]: kinds[one[2]](one[3]) for one in told if one}
    assert len(overrides) == len(told)
    found: dict[str, Any] = {"n_ctx": int(given.pop("-c")), "kv_overrides": overrides}
    if scaling := given.pop("--rope-scaling", None):
        found["rope_scaling_type"] = {"none": NONE, "linear": LINEAR, "yarn": YARN}[scaling]
    if scale := given.pop("--rope-scale", None):
        found["rope_freq_scale"] = 1 / float(scale)
    for option, name, kind in (
        ("--rope-freq-base", "rope_freq_base", float),
        ("--yarn-orig-ctx", "yarn_orig_ctx", int),
        ("--yarn-beta-fast", "yarn_beta_fast", float),
        ("--yarn-beta-slow", "yarn_beta_slow", float),
    ):
        if option in given:
            found[name] = kind(given.pop(option))
    assert not given, given
    return found


def logits(path: Path, tokens: Sequence[int], at: Iterable[int], **options: Any) -> torch.Tensor:
    """The logits at some of the positions, one token at a time there, in float32."""
    import llama_cpp

    model = llama_cpp.Llama(str(path), n_threads=1, n_threads_batch=1, type_k=F32, type_v=F32, verbose=False, **options)
    found, read = [], 0
    for position in at:
        if position > read:
            model.eval(tokens[read:position])
        model.eval(tokens[position : position + 1])
        read = position + 1
        row = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(model.ctx, -1), shape=(model.n_vocab(),))
        found.append(torch.from_numpy(row.copy()))
    model.close()
    return torch.stack(found)
