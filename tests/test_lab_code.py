"""Which sources a result belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from posenc.lab.records import code


def test_the_code_counts_and_its_presentation_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("__init__.py", "encodings/rope.py", "lab/page.py", "lab/training.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(code.posenc, "__file__", str(tmp_path / "__init__.py"))
    first = code.code_hash()
    (tmp_path / "lab/page.py").write_text("another heading")
    assert code.code_hash() == first
    (tmp_path / "encodings/rope.py").write_text("another sign")
    second = code.code_hash()
    (tmp_path / "encodings/new.py").write_text("")
    assert len({first, second, code.code_hash()}) == 3


def test_presentation_is_named_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A renamed file would silently change from presentation to substance, or the other way round."""
    root = Path(code.posenc.__file__).parent
    for name in code.APART:
        if name.startswith("lab/"):
            assert (root / name).exists(), name
    for name in (
        "lab/training.py",
        "lab/model.py",
        "lab/corpus.py",
        "lab/arm.py",
        "lab/exact.py",
        "lab/cost.py",
        "attention.py",
    ):
        assert not name.startswith(code.APART)
        assert (root / name).exists(), name
