"""`posenc lab submit` and `posenc lab board`: a contributed encoding, its signed record, and how changes are noticed."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import in_process
from posenc.lab.records.results import Folder

MINE = """
import posenc


class Mine(posenc.PositionalEncoding):
    pass
"""
BROKEN = """
import posenc


class Mine(posenc.PositionalEncoding):
    traits = {"norm_preserving"}

    def rotate(self, x, at, side, out=None):
        return 2 * x
"""
EXPERIMENT = """
name: tiny
about: {en: A tiny one., zh: 极小的实验。}
seeds: 1
size: {d_model: 16, n_heads: 2, n_layers: 1}
encodings: [nope]
tasks:
  - task: {name: copy, length: 4, lengths: [4, 8], held_out: 16}
    training: {steps: 2, rows: 4}
"""
SIGNED = "Noether, Emmy"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trials of posenc's NoPE, and of the same as a user's class."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "tiny.yaml").write_text(EXPERIMENT, "utf-8")
    (folder / "mine.py").write_text(MINE, "utf-8")
    out = folder / "out"
    added = in_process.posenc("lab", "run", folder / "tiny.yaml", "--out", out, "--workers", "1")
    assert added.returncode == 0, added.stderr
    added = in_process.posenc("lab", "add", f"{folder / 'mine.py'}:Mine", "--to", out, "--workers", "1")
    assert added.returncode == 0, added.stderr
    return out


@pytest.fixture(scope="module")
def submitted(results: Path) -> Path:
    out = results.parent / "submitted"
    given = ("--encoding", "mine.py:Mine", "--out", out, "--author", SIGNED)
    ended = in_process.posenc("lab", "submit", results, *given)
    assert ended.returncode == 0, ended.stderr
    return out


def board(*folders: Path, out: Path) -> str:
    ended = in_process.posenc("lab", "board", *folders, "--out", out)
    return "" if ended.returncode == 0 else ended.stderr


def test_the_folder_holds_the_file_its_laws_its_trials_and_a_record_of_all(submitted: Path) -> None:
    record = json.loads((submitted / "record.json").read_text("utf-8"))
    assert (record["encoding"], record["authors"]) == ("mine.py:Mine", [SIGNED])
    assert (submitted / "mine.py").read_text("utf-8") == MINE
    laws = json.loads((submitted / "laws.json").read_text("utf-8"))
    assert record["laws"] == {"held": len(laws), "tried": len(laws)}
    assert len(laws) > 10
    keys = {
        json.loads(pq.read_schema(path).metadata[b"posenc"])["trial"]["encoding"] for path in submitted.glob("trials/*")
    }
    assert keys == {"nope", "mine.py:Mine"}
    paths = {path for path in submitted.rglob("*") if path.is_file()} - {submitted / "record.json"}
    assert record["files"] == {
        path.relative_to(submitted).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    }
    assert {"torch", "fingerprint", "revision", "posenc", "processor"} & set(record["environment"])


def test_the_board_has_contributed_ones_and_ours_in_two_languages(submitted: Path, results: Path, tmp_path: Path) -> None:
    assert board(submitted, results, out=tmp_path / "board.md") == ""
    page, chinese = (tmp_path / "board.md").read_text("utf-8"), (tmp_path / "board.zh-CN.md").read_text("utf-8")
    (mine,) = (line for line in page.splitlines() if line.startswith("| **mine.py:Mine**"))
    assert SIGNED in mine
    (path,) = submitted.glob("trials/*mine*")
    kept = [key for key in Folder(submitted).keys() if path.stem.endswith(key[:16])]  # noqa: SIM118
    record = Folder(submitted).get(kept[0])
    assert record is not None
    assert record.about["trial"]["encoding"] == "mine.py:Mine"
    for length in (4, 8):
        right = [row["value"] for row in record.rows.to_pylist() if row["kind"] == "exact" and row["length"] == length]
        assert f"{length}: " in mine
        assert f"{100 * sum(right) / len(right):.1f}" in mine
    assert page.count("| nope |") == 2
    assert "A tiny one." in page
    assert "极小的实验。" in chinese
    assert chinese.startswith("# 编码榜")


@pytest.mark.parametrize("name", ["mine.py", "laws.json", "data.parquet", "trials"])
def test_a_changed_file_is_found(name: str, submitted: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(submitted, copy)
    path = copy / name if name != "trials" else next(iter(sorted(copy.glob("trials/*mine*"))))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    said = board(copy, out=tmp_path / "board.md")
    assert f"{path.relative_to(copy).as_posix()} was changed since it was signed" in " ".join(said.split())
    assert not (tmp_path / "board.md").exists()


def test_a_lost_and_an_added_file_are_found(submitted: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(submitted, copy)
    (copy / "more.txt").write_text("more")
    assert "more.txt was added since" in board(copy, out=tmp_path / "board.md")
    (copy / "more.txt").unlink()
    (copy / "laws.json").unlink()
    assert "laws.json was lost since" in board(copy, out=tmp_path / "board.md")
    (copy / "record.json").write_text('{"format": 2}')
    assert "expected a record of posenc lab submit" in board(copy, out=tmp_path / "board.md")


@pytest.mark.parametrize(
    "change",
    [
        {"authors": "Noether"},
        {"authors": ["a | b"]},
        {"date": "<script>"},
        {"laws": {"held": "all"}},
        {"files": []},
        {"more": 1},
    ],
)
def test_a_record_that_is_none_is_refused(change: dict[str, object], submitted: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(submitted, copy)
    record = json.loads((copy / "record.json").read_text("utf-8"))
    (copy / "record.json").write_text(json.dumps(record | change), "utf-8")
    assert "expected a record of posenc lab submit" in " ".join(board(copy, out=tmp_path / "board.md").split())


def test_an_encoding_that_is_not_there_or_breaks_a_law_is_not_submitted(results: Path, tmp_path: Path) -> None:
    given = ("--out", tmp_path / "out", "--author", SIGNED)
    ended = in_process.posenc("lab", "submit", results, "--encoding", "nope", *given)
    assert ended.returncode != 0
    assert "has no encoding 'nope' of yours; it has mine.py:Mine" in " ".join(ended.stderr.replace("│", " ").split())
    broken = tmp_path / "broken"
    shutil.copytree(results, broken)
    manifest = json.loads((broken / "experiment.json").read_text("utf-8"))
    manifest["experiment"]["sources"]["mine.py:Mine"] = BROKEN
    (broken / "experiment.json").write_text(json.dumps(manifest), "utf-8")
    ended = in_process.posenc("lab", "submit", broken, "--encoding", "mine.py:Mine", *given)
    assert ended.returncode == 1
    assert "mine.py:Mine breaks" in ended.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.acceptance
def test_a_file_that_is_no_board_is_not_replaced(results: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.md"
    mine.write_text("# My notes")
    assert "mine.md: exists, and is no board of posenc's" in board(results, out=mine)
    assert mine.read_text() == "# My notes"
    assert board(results, out=tmp_path / "board.md") == ""
    assert board(results, out=tmp_path / "board.md") == ""  # its own page is replaced


def test_the_board_of_the_documentation_is_that_of_our_results(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    ours = [root / "results" / name for name in ("chains", "study", "compare")]
    assert board(*ours, out=tmp_path / "board.md") == ""
    for name in ("board.md", "board.zh-CN.md"):
        title, _, rest = (tmp_path / name).read_text("utf-8").partition("\n\n")
        page = (root / "docs" / name).read_text("utf-8")
        assert page.startswith(f"{title}\n\n")
        assert page.endswith(rest)


def test_a_folder_without_an_experiment_is_named_with_what_makes_one(tmp_path: Path) -> None:
    ended = in_process.posenc("lab", "board", tmp_path)
    assert ended.returncode == 1
    assert f"FOLDER: {tmp_path} holds no experiment of posenc lab; expected one that posenc lab run" in ended.stderr
