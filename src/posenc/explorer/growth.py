"""How the two models of `stretch` read and continue a held-out tale as it grows to eight times the trained length.

    python -m posenc.explorer.growth    reads and writes for some minutes, and writes growth.json

    {"trained": bytes, "longest": bytes, "near": bytes, "models": names,
     LANGUAGE: {"text": the tale, "stops": [{"bytes", "chars", "near": [m], "written": [m] or none}]}}

    near       bits a byte of each model, the mean over the last 32 bytes
    written    the 64 bytes that each model writes after the stop; of about every fourth stop

Legend: m models: ALiBi, RoPE, and RoPE with YaRN of the factor that the text and what is written need.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

import posenc
from posenc.explorer import recorded, stretch
from posenc.explorer.stretch import WRITTEN, Model

FILE = Path(__file__).parent / "growth.json"
MODELS = ("alibi", "rope", "yarn")
TRAINED, LONGEST, NEAR = 128, 1024, 32  # bytes
FIRST, STEP, WRITES = 64, 16, 64


def record() -> dict[str, Any]:
    """The record. Do not change it in place."""
    return recorded.document(FILE)


def models(read: int) -> tuple[Model, Model, Model]:
    """The three models for a text of so many bytes."""
    alibi, rope, yarn = stretch.load("alibi"), stretch.load("rope"), stretch.load("rope")
    factor = max(1.0, (read + WRITTEN) / TRAINED)
    scaled = posenc.create("yarn", d_head=32, factor=factor, trained_length=TRAINED, layout="interleaved")
    posenc.replace_encoding(yarn, scaled)
    return alibi, rope, yarn


def stops(tale: bytes, language: str) -> list[int]:
    """Lengths to stop at: the end of a word in English, of a character in Chinese, about every 16 bytes."""
    found: list[int] = []
    for n in range(FIRST, LONGEST + 1, STEP):
        while tale[n] & 0xC0 == 0x80 if language == "zh" else tale[n : n + 1] not in (b" ", b"\n", b"."):
            n -= 1
        if not found or n > found[-1]:
            found.append(n)
    return found


def stop(tale: bytes, read: int, writes: bool) -> dict[str, Any]:
    """What the models do with the first bytes of the tale."""
    about: dict[str, Any] = {"bytes": read, "chars": len(tale[:read].decode())}
    about["near"] = [round(float(model.bits(tale[:read])[-NEAR:].mean()), 6) for model in models(read)]
    if writes:
        about["written"] = [stretch.readable(model.read(tale[:read]).written) for model in models(read)]
    return about


def grown(language: str) -> dict[str, Any]:
    tale = recorded.arrays(stretch.FILE)[f"tale.{language}"].tobytes()
    lengths = stops(tale, language)
    wanted = {min(lengths, key=lambda one: abs(one - n)) for n in range(FIRST, LONGEST + 1, WRITES)}
    text = tale[: lengths[-1]].decode()
    return {"text": text, "stops": [stop(tale, read, read in wanted) for read in lengths]}


def main() -> None:
    torch.set_num_threads(1)
    about = {"trained": TRAINED, "longest": LONGEST, "near": NEAR, "models": MODELS}
    tales = {language: grown(language) for language in stretch.PROMPTS}
    FILE.write_text(json.dumps(about | tales, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
