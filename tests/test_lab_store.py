"""A folder of results: whole or absent, never another's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from posenc.lab import store
from posenc.lab.store import Store

SETTINGS = {"encodings": ["rope"], "budget": 300.0, "text": "a" * 64}


def test_what_was_put_is_got_under_the_same_inputs_only(tmp_path: Path) -> None:
    with Store(tmp_path / "out", SETTINGS) as kept:
        assert kept.get("trial", {"seed": 0}) is None
        assert kept.put("trial", {"seed": 0}, {"bits": (1, 2)}) == {"bits": [1, 2]}
        assert kept.get("trial", {"seed": 0}) == {"bits": [1, 2]}
        assert kept.get("trial", {"seed": 1}) is None
        assert kept.get("trial", {"seed": 0, "code": "new"}) is None
    with Store(tmp_path / "out", SETTINGS) as kept:
        assert kept.get("trial", {"seed": 0}) == {"bits": [1, 2]}


def test_a_part_under_another_name_is_not_taken(tmp_path: Path) -> None:
    with Store(tmp_path, SETTINGS) as kept:
        kept.put("trial", {"seed": 0}, "first")
        kept.put("trial", {"seed": 1}, "second")
        first, second = (kept._path("trial", {"seed": seed}) for seed in (0, 1))
        first.replace(second)
        assert kept.get("trial", {"seed": 1}) is None


def test_a_write_that_is_cut_short_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    store.write(path, "old")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fails)
        with pytest.raises(OSError, match="No space"):
            store.write(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_leftovers_of_a_killed_write_do_not_stand_in_the_way(tmp_path: Path) -> None:
    for name in (".comparison.json.1.tmp", "parts/.trial-1.json.2.tmp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"key": "half')
    with Store(tmp_path, SETTINGS):
        assert sorted(path.name for path in tmp_path.rglob("*.tmp")) == []


def test_other_peoples_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(ValueError, match="holds files that posenc compare did not write"), Store(tmp_path, SETTINGS):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    (tmp_path / store.MARKER).write_text('{"somebody": "else"}')
    with pytest.raises(ValueError, match="is not from posenc compare"), Store(tmp_path, SETTINGS):
        pass


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"budget": 60.0}, "budget 300.0 instead of 60.0"),
        ({"text": "b" * 64}, "another text"),
        ({"encodings": ["rope", "alibi"]}, r"encodings \['rope'\] instead of \['rope', 'alibi'\]"),
    ],
)
def test_other_settings_are_refused_by_name(tmp_path: Path, changed: dict[str, object], message: str) -> None:
    with Store(tmp_path, SETTINGS) as kept:
        kept.put("trial", {}, 1)
    with pytest.raises(ValueError, match=message) as caught, Store(tmp_path, SETTINGS | changed):
        pass
    assert "\n" not in str(caught.value)
    assert json.loads((tmp_path / store.MARKER).read_text())["settings"] == SETTINGS


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("text")
    with pytest.raises(ValueError, match="is a file"), Store(tmp_path / "out", SETTINGS):
        pass


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    opened = f"Store(Path({str(tmp_path)!r}), {SETTINGS}).__enter__()"
    code = f"from posenc.lab.store import Store; from pathlib import Path; {opened}"
    with Store(tmp_path, SETTINGS):
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "another posenc compare is writing" in other.stderr
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
