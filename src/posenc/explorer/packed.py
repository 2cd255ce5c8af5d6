"""What an exported page holds beside its text, each in a script element of its name that nothing reads before it is needed.

    answers, arrays ─► bytes ─► gzip ─► 15 bits a character ─► <script type="text/plain" id=…>

The characters are U+3400 to U+B3FF, which UTF-16 writes in two bytes each: a twelfth more than the bytes themselves, where
base64 takes a third more. So the file is in UTF-16. LOADER reads an element again, and begins the page.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from posenc.explorer.data import Data, plain

FIRST = 0x3400
EXACT = 1000  # numbers; larger arrays are drawn as pictures, and float32 has seven digits

LOADER = """const whole = new Promise((done) => document.addEventListener("DOMContentLoaded", done));
globalThis.posencRecord = async (name) => {
  if (!document.getElementById(name)?.nextElementSibling) await whole; // the browser has not read it to its end
  const held = document.getElementById(name);
  if (!held) throw new Error(`this file has no ${name}`);
  const [text, bytes] = [held.textContent, new Uint8Array(Number(held.dataset.bytes))];
  for (let n = 0, at = 0, bits = 0, count = 0; n < text.length; n++) {
    bits = (bits << 15) | (text.charCodeAt(n) - 0x3400);
    for (count += 15; count >= 8; bits &= (1 << count) - 1) bytes[at++] = bits >> (count -= 8);
  }
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
};
(async () => {
  for (const [type, id, name] of [["application/json", "posenc-about", "about"], ["module", "", "page"]]) {
    const textContent = new TextDecoder().decode(await posencRecord(name));
    document.head.append(Object.assign(document.createElement("script"), { type, id, textContent }));
  }
})();"""


def element(name: str, content: bytes) -> str:
    """The script element that holds the bytes."""
    small = gzip.compress(content, mtime=0)
    bits = np.unpackbits(np.frombuffer(small, np.uint8))
    groups = np.packbits(np.pad(bits, (0, -len(bits) % 15)).reshape(-1, 15), axis=1)  # 15 bits and a zero, in two bytes
    text = ((groups.view(">u2") >> 1) + FIRST).astype("<u2").tobytes().decode("utf-16-le")
    return f'<script type="text/plain" id="{name}" data-bytes="{len(small)}">{text}</script>'


def together(answers: Iterable[Data]) -> bytes:
    """Answers of one view, each array stored once; large ones as float32.

        length of the header, uint32 | header, JSON | arrays, one after another, little-endian

    header   {"answers": [{"facts", "python", "arrays": {name: number}}, …], "arrays": [[dtype, shape], …]}
    """
    numbers: dict[tuple[str, tuple[int, ...], bytes], int] = {}
    about = []
    for data in answers:
        named = {name: _small(plain(values)) for name, values in data.arrays.items()}
        at = {
            name: numbers.setdefault((array.dtype.name, array.shape, array.tobytes()), len(numbers))
            for name, array in named.items()
        }
        about.append({"facts": data.facts, "python": data.python, "arrays": at})
    arrays = [(dtype, shape) for dtype, shape, _ in numbers]
    header = json.dumps({"answers": about, "arrays": arrays}, ensure_ascii=False, allow_nan=False).encode()
    return b"".join([struct.pack("<I", len(header)), header, *(body for *_, body in numbers)])


def _small(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype("<f4") if array.dtype.kind == "f" and array.size > EXACT else array
