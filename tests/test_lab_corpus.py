"""Text to documents, split and windows: nothing crosses a document, nothing is trained on and scored."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest
import torch

from posenc.lab.text import corpus

WIDTH = 33


def write(folder: Path, documents: dict[str, bytes]) -> Path:
    for name, text in documents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text)
    return folder


def documents(count: int = 30, size: int = 400) -> dict[str, bytes]:
    """No two windows of them are alike."""
    source = random.Random(0)
    return {f"{n:02}.txt": bytes(source.choices(range(32, 127), k=size + n)) for n in range(count)}


def test_every_document_is_on_one_side_only(tmp_path: Path) -> None:
    texts = corpus.read_corpus(write(tmp_path, documents()), WIDTH)
    assert sorted(texts.train + texts.held_out) == sorted(documents().values())
    assert not set(texts.train) & set(texts.held_out)
    share = sum(map(len, texts.held_out)) / sum(map(len, documents().values()))
    assert 0.1 <= share <= 0.2


def test_names_and_places_change_nothing(tmp_path: Path) -> None:
    here = corpus.read_corpus(write(tmp_path / "here", documents()), WIDTH)
    renamed = {f"deeper/{99 - n}": text for n, text in enumerate(documents().values())}
    there = corpus.read_corpus(write(tmp_path / "there", renamed), WIDTH)
    assert (here.sha256, here.train, here.held_out) == (there.sha256, there.train, there.held_out)
    changed = documents() | {"00.txt": b"x" + documents()["00.txt"][1:]}
    assert corpus.read_corpus(write(tmp_path / "changed", changed), WIDTH).sha256 != here.sha256


def test_repeated_documents_count_once(tmp_path: Path) -> None:
    twice = documents() | {f"again-{name}": text for name, text in documents().items()}
    texts = corpus.read_corpus(write(tmp_path, twice), WIDTH)
    assert sorted(texts.train + texts.held_out) == sorted(documents().values())
    assert [note.en for note in texts.notes] == ["30 files that repeat another one were left out"]


def test_the_end_of_a_lone_file_is_held_out(tmp_path: Path) -> None:
    text = b"".join(documents().values())
    (tmp_path / "one.txt").write_bytes(text)
    texts = corpus.read_corpus(tmp_path / "one.txt", WIDTH)
    assert texts.train[0] + texts.held_out[0] == text
    assert len(texts.held_out[0]) == round(len(text) / 10)
    assert "end of the largest" in texts.notes[0].en


def test_windows_are_all_stretches_of_each_document_and_no_others() -> None:
    texts = [b"abcdef", b"xy", b"123", b"ABCD"]
    windows = corpus.Windows(texts, 3)
    expected = [text[n : n + 3] for text in texts for n in range(len(text) - 2)]
    assert [bytes(row.tolist()) for row in windows.take(torch.arange(windows.count))] == expected


def test_spread_windows_do_not_overlap() -> None:
    text = bytes(range(200))
    starts = corpus.Windows([text], 10).spread(7)[:, 0].tolist()
    assert len(starts) == 7
    assert min(b - a for a, b in itertools.pairwise(starts)) >= 10
    assert len(corpus.Windows([text], 10).spread(1000)) == 19  # as many as fit side by side


def test_the_standard_library_is_the_default() -> None:
    texts = corpus.read_corpus(None, 513)
    assert texts.source.startswith("Python 3.")
    assert sum(map(len, texts.train)) > 5_000_000
    assert any(b"class JSONEncoder" in text for text in texts.train + texts.held_out)
    assert not any(b"class TestJSON" in text for text in texts.train + texts.held_out)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "has no text"),
        ({"a.txt": b""}, "has no text"),
        ({"a.bin": b"a\0b" * 1000, "b.bin": b"\0" * 9}, "only 2 binary files"),
        ({".hidden": b"text" * 9999}, "has no text"),
        ({"a.txt": b"too short"}, "has 9 bytes of text; at least 2640 are needed"),
        ({f"{n}.txt": b"%04d" % n * 2 for n in range(999)}, "documents of .* hold 0 windows of 33 bytes"),
    ],
)
def test_folders_without_enough_text(tmp_path: Path, content: dict[str, bytes], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        corpus.read_corpus(write(tmp_path, content), WIDTH)


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "is empty"), (b"ab\0c", "binary, not text: byte 2 is zero"), (b"abc", "has 3 bytes")]
)
def test_files_without_enough_text(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        corpus.read_corpus(tmp_path / "file", WIDTH)
    assert "\n" not in str(caught.value)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="neither a file nor a folder"):
        corpus.read_corpus(tmp_path / "absent", WIDTH)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="neither a file nor a folder"):
        corpus.read_corpus(tmp_path / "pipe", WIDTH)
    with pytest.raises(ValueError, match="has no text"):  # a pipe inside a folder is passed by, not waited for
        corpus.read_corpus(tmp_path, WIDTH)


def test_links_and_binary_files_are_passed_by(tmp_path: Path) -> None:
    folder = write(tmp_path / "folder", documents() | {"picture": b"\x89PNG\0" * 100})
    (folder / "loop").symlink_to(folder)
    (folder / "elsewhere").symlink_to("/etc/hostname")
    texts = corpus.read_corpus(folder, WIDTH)
    assert sorted(texts.train + texts.held_out) == sorted(documents().values())
    assert [note.en for note in texts.notes] == ["1 binary files were left out"]


def test_no_more_is_read_than_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "MOST_BYTES", 5000)
    texts = corpus.read_corpus(write(tmp_path / "folder", documents()), WIDTH)
    assert sum(map(len, texts.train + texts.held_out)) <= 5000
    assert "files beyond 5000 bytes were left out" in texts.notes[-1].en
    (tmp_path / "file").write_bytes(b"".join(documents().values()))
    texts = corpus.read_corpus(tmp_path / "file", WIDTH)
    assert sum(map(len, texts.train + texts.held_out)) == 5000
    assert texts.notes[0].en == "only the first 5000 bytes were read"
