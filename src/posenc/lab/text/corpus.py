"""Text to bytes: documents, a split into training and held-out ones, and a hash of the whole text.

    file or folder ──► documents (bytes, no two alike) ──► training | held out, document by document ──► windows

A window never crosses a document. The same documents give the same hash, split and windows in any folder.
Legend: n windows, w bytes of a window.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sysconfig
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.lab.say import say
from posenc.lab.text import prose
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Int

HELD_OUT = 0.1  # of the bytes
LEAST_WINDOWS = 8  # least number of non-overlapping held-out windows
MOST_BYTES = 64 * 2**20
LIBRARY_NOTE = say("without its test folders and installed packages")
NOT_THE_LIBRARY = {"test", "tests", "idle_test", "site-packages", "dist-packages"}


@dataclass(frozen=True)
class Corpus:
    """Documents to train on and documents to score. `notes` say what was left out and how a single document was cut."""

    source: str
    sha256: str
    train: tuple[bytes, ...]
    held_out: tuple[bytes, ...]
    notes: tuple[Words, ...] = ()

    def about(self) -> dict[str, object]:
        return {
            "source": self.source,
            "sha256": self.sha256,
            "train": {"documents": len(self.train), "bytes": sum(map(len, self.train))},
            "held_out": {"documents": len(self.held_out), "bytes": sum(map(len, self.held_out))},
            "notes": [note.as_dict() for note in self.notes],
        }


class Windows:
    """Every window of `width` bytes inside one document, by number 0 … count-1."""

    def __init__(self, documents: Sequence[bytes], width: int) -> None:
        long_enough = [document for document in documents if len(document) >= width]
        starts = [len(document) - width + 1 for document in long_enough]
        self.width, self.count = width, sum(starts)
        self._bytes = torch.frombuffer(bytearray(b"".join(long_enough) or b"\0"), dtype=torch.uint8)
        self._ends = torch.tensor(list(accumulate(starts)))
        self._skipped = torch.arange(len(starts)) * (width - 1)  # no window starts in the last width-1 bytes of a document

    def take(self, number: Int[Tensor, "n"]) -> Int[Tensor, "n w"]:
        start = number + self._skipped[torch.searchsorted(self._ends, number, right=True)]
        return self._bytes[start[:, None] + torch.arange(self.width)].long()

    def side_by_side(self) -> int:
        """Approximately how many fit without overlap."""
        return self.count // self.width

    def spread(self, most: int) -> Int[Tensor, "n w"]:
        """Up to `most` windows, evenly spread, as many as fit side by side."""
        n = max(1, min(most, self.side_by_side()))
        return self.take((torch.arange(n) * self.count + self.count // 2) // n)


def read_corpus(path: Path | None, width: int, name: str = "library") -> Corpus:
    """The text under `path`, a file or a folder. Where it is None: Python's own standard library, or generated prose if
    `name` is "prose" or "prose_6000".

    Raises ValueError for no text, binary text, and text too short to hold out windows of `width` bytes; OSError for what
    cannot be read.
    """
    if path is not None:
        source, documents_read, notes = _user_text(path)
    else:
        source, documents_read, notes = prose.documents(name) if name in prose.TALES else _standard_library()
    unlike = sorted({hashlib.sha256(text).digest(): text for text in documents_read}.items())
    if len(unlike) < len(documents_read):
        repeated = len(documents_read) - len(unlike)
        notes.append(say("{repeated} files that repeat another one were left out", repeated=repeated))
    documents = [text for _, text in unlike]
    needed, size = round(LEAST_WINDOWS * width / HELD_OUT), sum(map(len, documents))
    if size < needed:
        raise ValueError(
            f"--text: {source} has {size} bytes of text; at least {needed} are needed, to hold out "
            f"{LEAST_WINDOWS} windows of {width} bytes"
        )
    train, held_out = _split(documents, notes)
    for part, texts in (("training", train), ("held-out", held_out)):
        if (fit := Windows(texts, width).side_by_side()) < LEAST_WINDOWS // 2:
            raise ValueError(
                f"--text: the {part} documents of {source} hold {fit} windows of {width} bytes, "
                f"{LEAST_WINDOWS // 2} are needed; join the files into longer ones"
            )
    digest = hashlib.sha256(b"".join(name for name, _ in unlike)).hexdigest()
    return Corpus(source, digest, tuple(train), tuple(held_out), tuple(notes))


def _split(documents: list[bytes], notes: list[Words]) -> tuple[list[bytes], list[bytes]]:
    """Holds out documents in the order of their hashes: about a tenth of the bytes, always less than a fifth.

    If no document is small enough, the end of the largest one is held out instead.
    """
    total, held, train, held_out = sum(map(len, documents)), 0, list[bytes](), list[bytes]()
    for text in documents:
        wanted = held < HELD_OUT * total and held + len(text) <= 2 * HELD_OUT * total
        (held_out if wanted else train).append(text)
        held += len(text) if wanted else 0
    if held >= HELD_OUT * total / 2:
        return train, held_out
    train, held_out = list(documents), []
    largest = max(train, key=len)
    cut = len(largest) - round(min(HELD_OUT * total, len(largest) / 2))
    train[train.index(largest)] = largest[:cut]
    notes.append(say("too few documents to hold out whole ones: the end of the largest is held out instead"))
    return train, [largest[cut:]]


def _standard_library() -> tuple[str, list[bytes], list[Words]]:
    root = Path(sysconfig.get_paths()["stdlib"])
    files = [path for path in _files(root, NOT_THE_LIBRARY) if path.suffix == ".py"]
    texts = [text for path in files if (text := path.read_bytes())]
    if not texts:
        raise ValueError("--text: this Python has no sources of its standard library; name a file or a folder")
    return (f"Python {platform.python_version()} standard library", texts, [LIBRARY_NOTE])


def _user_text(path: Path) -> tuple[str, list[bytes], list[Words]]:
    name = path.resolve().name
    if path.is_file():
        text = _read(path, MOST_BYTES + 1)
        if not text:
            raise ValueError(f"--text: {name} is empty")
        if b"\0" in text:
            raise ValueError(f"--text: {name} is binary, not text: byte {text.index(0)} is zero")
        first = say("only the first {most_bytes} bytes were read", most_bytes=MOST_BYTES)
        notes = [first] if len(text) > MOST_BYTES else []
        return name, [text[:MOST_BYTES]], notes
    if not path.is_dir():
        raise ValueError(f"--text: {path} is neither a file nor a folder")
    texts, notes, left, binary, unread = list[bytes](), list[Words](), MOST_BYTES, 0, 0
    for file in _files(path):
        text = _read(file, left + 1)
        binary += b"\0" in text
        if len(text) > left:
            unread += 1
        elif text and b"\0" not in text:
            texts.append(text)
            left -= len(text)
    if binary:
        notes.append(say("{binary} binary files were left out", binary=binary))
    if unread:
        notes.append(say("{unread} files beyond {most_bytes} bytes were left out", unread=unread, most_bytes=MOST_BYTES))
    if not texts:
        raise ValueError(f"--text: the folder {name} has no text" + (f", only {binary} binary files" if binary else ""))
    return name, texts, notes


def _read(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most)


def _files(root: Path, without: Collection[str] = ()) -> Iterator[Path]:
    """Every regular file under `root`, in the order of names; hidden files, links and the folders `without` are skipped."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in without)
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path
