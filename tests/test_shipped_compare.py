"""The comparison that is shipped, and that README shows: complete, and README's table is what its findings say."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from posenc.lab.findings.assemble import findings
from posenc.lab.records.results import Folder
from posenc.lab.report import shortcuts
from posenc.lab.report.document import Table

ROOT = Path(__file__).parent.parent
COMPARE = ROOT / "results" / "compare"
LANGUAGES = {"README.md": "en", "README.zh-CN.md": "zh"}


@pytest.mark.parametrize("page", LANGUAGES)
def test_the_readme_shows_the_stored_answer(page: str) -> None:
    answer = findings(COMPARE)["answer"]
    table = [line for line in (ROOT / page).read_text("utf-8").splitlines() if " % |" in line]
    assert len(table) == len(answer["rows"])
    for line, row in zip(table, answer["rows"], strict=True):
        name, first, last, interval, in_any_order, word = (cell.strip() for cell in line.strip("| ").split("|"))
        assert (name, word) == (row["name"][LANGUAGES[page]], row["word"][LANGUAGES[page]])
        assert first == f"{100 * row['means'][0]:.1f} %"
        if row["interval"] is None:
            assert (last, interval, in_any_order) == ("–", "–", "–")
        else:
            assert last == f"{100 * row['means'][-1]:.1f} %"
            assert in_any_order == f"{100 * row['retrieved']:.1f} %"
            assert interval == " – ".join(f"{100 * end:.1f}" for end in row["interval"])


def test_all_trials_are_there() -> None:
    manifest = Folder(COMPARE).experiment()
    assert manifest is not None
    assert set(manifest["keys"]) == set(Folder(COMPARE).keys())
    assert not manifest["failures"]
    content = b"".join(path.read_bytes() for path in COMPARE.rglob("*") if path.is_file())
    assert not any(place in content for place in (b"/tmp/", b"/home/", b"/root/", b"/work/"))


def test_the_report_shows_what_was_found_in_any_order_beside_the_shortcuts() -> None:
    """The last column of every model, from the files of its trials alone."""
    _, table = shortcuts.blocks(findings(COMPARE))
    assert isinstance(table, Table)
    shown = {row[0].words.en: row[-1].words.en for row in table.rows}
    for name, title in (("rope", "RoPE"), ("kerple", "KERPLE"), ("t5", "T5")):
        files = sorted((COMPARE / "trials").glob(f"passkey-{name}-s*.parquet"))
        assert len(files) == 5
        of_name = [row for path in files for row in pq.read_table(path).to_pylist()]
        for change, ending in (("", ""), ("yarn", " + YaRN")):
            far = [r["value"] for r in of_name if (r["kind"], r["length"], r["change"]) == ("retrieved", 512, change)]
            assert len(far) == (5 * 256 if not change or name == "rope" else 0)
            if far:
                assert shown[title + ending] == f"{100 * sum(far) / len(far):.0f}%"
    assert shown["Learned"] == "–"
