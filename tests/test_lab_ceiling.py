"""What a match model gains from longer windows: against a naive one with dictionaries, and where the report shows it."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lab_sweeps import experiment, made_up_sweep
from posenc.lab.findings.assemble import findings
from posenc.lab.records.results import Folder
from posenc.lab.report.markdown import markdown
from posenc.lab.report.page import page
from posenc.lab.text.match_model import Near, bits_by_window, divided

LONGEST, SHORTEST = 32, 4


def naive_near(documents: list[bytes], context: bytes, byte: int) -> float:
    """Witten and Bell 1991, by looking for the context in every document."""
    found = 1 / 256
    for length in range(len(context) + 1):
        end = context[len(context) - length :]
        after = Counter(
            document[n + length]
            for document in documents
            for n in range(len(document) - length)
            if document[n:].startswith(end)
        )
        if after:
            found = (after[byte] + len(after) * found) / (after.total() + len(after))
    return found


def naive_match(before: bytes) -> tuple[int, int | None]:
    """The longest end that occurs earlier, by trying every place, the last one first."""
    for length in range(min(LONGEST, len(before) - 1), SHORTEST - 1, -1):
        for start in range(len(before) - length - 1, -1, -1):
            if before[start : start + length] == before[-length:]:
                return length, before[start + length]
    return 0, None


def naive_bits(counted: list[bytes], fit: list[bytes], scored: list[bytes], targets: int, width: int) -> float:
    order = 2

    def seen(windows: list[bytes]) -> list[tuple[int, bool, float]]:
        found = []
        for window in (window[-width - 1 :] for window in windows):
            for place in range(len(window) - targets, len(window)):
                length, byte = naive_match(window[:place])
                near = naive_near(counted, window[place - order : place], window[place])
                found.append((length, byte == window[place], near))
        return found

    weights = {}
    fitted = seen(fit)
    for length in {length for length, _, _ in fitted} - {0}:
        weight = 0.5
        for _ in range(30):
            of = [weight / (weight + (1 - weight) * near) if hit else 0.0 for at, hit, near in fitted if at == length]
            weight = sum(of) / len(of)
        weights[length] = min(weight, len(of) / (len(of) + 1))  # a match that was right each time may still fail
    bits = []
    for length, hit, near in seen(scored):
        weight = weights.get(length, 0.0)
        bits.append(-math.log2(weight * hit + (1 - weight) * near))
    return sum(bits) / len(bits)


def test_the_bits_are_those_of_a_naive_match_model() -> None:
    random = np.random.default_rng(3)
    phrases = [bytes(random.choice(list(b"abcd"), 7)) for _ in range(4)]
    texts = [b"".join(phrases[n] for n in random.integers(0, 4, 40)) for _ in range(6)]
    fit, scored = ([text[:41] for text in texts[at : at + 2]] for at in (2, 4))
    as_rows = [np.array([list(window) for window in windows]) for windows in (fit, scored)]
    found = bits_by_window(Near(texts[:2], order=2), *as_rows, 6, (12, 24, 40))
    for width, bits in found.items():
        assert bits == pytest.approx(naive_bits(texts[:2], fit, scored, 6, width), abs=1e-9)
    assert found[40] < found[12]


def test_what_is_counted_and_what_the_weights_are_fitted_to_do_not_overlap() -> None:
    assert divided([b"0123456789", b"abcdefghij"]) == ([b"0123456789", b"abcdefgh"], [b"ij"])
    assert divided([b"0123456789"]) == ([b"012345678"], [b"9"])


def test_a_sweep_on_text_measures_it_once_and_its_report_shows_it(tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    for n in range(12):
        (tmp_path / "text" / f"{n}.txt").write_text(f"line {n} says {n * n}; the same words again and again\n" * 60)
    plan = {"task": {"name": "language_model", "length": 16, "lengths": (16, 32), "targets": 8}, "training": {"steps": 4}}
    given = {"experiment": experiment(tasks=(plan,), encodings=("nope",)), "text": tmp_path / "text"}
    folder = tmp_path / "out"
    made_up_sweep(folder, **given)
    (path,) = folder.glob("measurements/context-*.json")
    before = path.read_bytes()
    made_up_sweep(folder, **given)
    assert path.read_bytes() == before
    found = findings(folder)
    near, far = found["context"]["16"], found["context"]["32"]
    assert 0 < far < near < 8
    for shown in (markdown(found, "en"), page(found)):
        assert "match model, no Transformer" in shown
        assert f"{near - far:+.3f}" in shown
    assert "匹配模型" in markdown(found, "zh")
    assert Folder(folder).damage() is None
    path.write_text("{}")
    assert path.name in str(Folder(folder).damage())
