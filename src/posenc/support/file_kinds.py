"""What a file is that stands in the place of another, by how it begins: a pointer, a web page, an archive, nothing.

    mistaken(first, "JSON")    "it is …; what to do", or "" where its beginning says nothing

A reader that cannot read a file as what it expected says this.
"""

from __future__ import annotations

import re

ENOUGH = 512  # bytes from the beginning of a file
SHOWN = 30  # bytes of a text
PACKED = {
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a zip archive (a checkpoint of torch.save is one)",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ\x00": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstandard archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
}
OTHERS = {
    b"GGUF": "a GGUF file",
    b"%PDF": "a PDF file",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"\x93NUMPY": "a NumPy array",
    b"\x89HDF": "an HDF5 file",
    b"\xff\xfe": "a text in UTF-16; save it in UTF-8",
    b"\xfe\xff": "a text in UTF-16; save it in UTF-8",
}
LFS = re.compile(rb"version https?://[\w.-]+/spec/v\d")
ANNEX = re.compile(rb"(?:\.\./)*(?:\.git)?/annex/objects/")
PAGE = re.compile(rb"(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body|script|title|div)\b", re.IGNORECASE | re.DOTALL)
SAFETENSORS = re.compile(rb".{5}\x00\x00\x00\{", re.DOTALL)  # the length of its header, then JSON
PICKLE = re.compile(rb"\x80[\x02-\x05]")


def mistaken(first: bytes, expected: str) -> str:
    """What begins with these bytes, and what to do. `expected` is what it should be, which is no answer."""
    text = first.removeprefix(b"\xef\xbb\xbf").strip()
    if not first:
        return "it is empty; download or save it again"
    if not first.strip(b"\x00"):
        return "it begins with zeros, as a download that broke off; download it again"
    if LFS.match(text):
        return "it is a pointer of Git LFS, which keeps the file elsewhere; run git lfs pull in its repository"
    if ANNEX.match(text):
        return "it is a pointer of git-annex, which keeps the file elsewhere; run git annex get in its repository"
    if PAGE.match(text):
        return "it is a web page (HTML): download the file itself, by the link to its raw content"
    if text.startswith(b"<?xml"):
        return "it is XML, perhaps a server's message; download the file itself"
    for start, name in PACKED.items():
        if first.startswith(start):
            return f"it is {name}; unpack it first"
    if PICKLE.match(first):
        return "it is a pickle"
    name = next((name for start, name in OTHERS.items() if first.startswith(start)), "")
    name = "a safetensors file" if SAFETENSORS.match(first) else name
    if name:
        return "" if expected in name else f"it is {name}"
    if expected != "JSON" and text[:SHOWN].isascii() and text[:SHOWN].decode().isprintable():
        return f"it is a text that begins with {text[:SHOWN].decode()!r}"
    return ""
