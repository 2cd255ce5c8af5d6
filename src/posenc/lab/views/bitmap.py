"""Writes a small PNG with a palette: one byte for each pixel.

signature ─ IHDR size ─ PLTE colours ─ IDAT rows ─ IEND
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence


def png(shades: Sequence[Sequence[int]], palette: Sequence[str]) -> bytes:
    """The bytes of the file. `shades` are rows of 0 … 255, `palette` holds 256 colours "#rrggbb"."""
    size = struct.pack(">IIBBBBB", len(shades[0]), len(shades), 8, 3, 0, 0, 0)
    colours = b"".join(bytes.fromhex(colour[1:]) for colour in palette)
    rows = b"".join(b"\0" + bytes(row) for row in shades)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, content)
        for kind, content in ((b"IHDR", size), (b"PLTE", colours), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
