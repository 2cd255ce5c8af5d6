"""The reader's own table: every planted table is recognised, files come by button and by drop, refusals are sentences."""

from __future__ import annotations

import base64
import io
import math
import re

import numpy as np
import pytest
import torch
from widths import fits

from posenc.explorer import views
from posenc.explorer.data import pack
from posenc.explorer.views import audit

# sample: layout, base, denominator, offset, arithmetic, dtype; None: not recognised
WANTED = {
    "interleaved": ("interleaved", 10000, "d/2", 0, "exact", "float32"),
    "sin_cos": ("sin_cos", 500, "d/2", 0, "exact", "float32"),
    "tensor2tensor": ("sin_cos", 10000, "d/2-1", 0, "exact", "float32"),
    "offset": ("interleaved", 10000, "d/2", 2, "exact", "float32"),
    "odd_zero": ("sin_cos", 10000, "d/2", 0, "exact", "float32"),
    "normalised": ("interleaved", 10000, "d/2", 0, "exact", "float64"),
    "transposed": ("interleaved", 100, "d/2", 0, "exact", "float32"),
    "rope_cache": ("rope_cos_half", 500000, "d/2", 0, "power", "float32"),
    "bfloat16_positions": ("interleaved", 10000, "d/2", 0, "bfloat16_positions", "float32"),
    "bfloat16_table": ("interleaved", 10000, "d/2", 0, "exact", "bfloat16"),
    "textbook": ("interleaved", 10000, "d/2", 0, "exp_log", "float32"),
    "per_channel": ("per_channel", 10000, "d/2", 0, "exact", "float32"),
    "one_cell": ("interleaved", 10000, "d/2", 0, "exact", "float32"),
    "learned": None,
    "random": None,
}


@pytest.mark.acceptance
def test_every_planted_table_is_tried():
    assert list(WANTED) == list(audit.SAMPLES)
    assert {one.sample for one in audit.EXPORTED} == set(WANTED)
    assert sum(len(pack(audit.data(one))) for one in audit.EXPORTED) < 420_000


@pytest.mark.parametrize("sample", WANTED)
def test_planted_tables_are_recognised_and_remade(sample):
    data = views.data("audit", {"sample": sample})
    namespace: dict[str, object] = {}
    exec(data.python, namespace)
    for name, values in data.arrays.items():
        np.testing.assert_allclose(namespace[name].double(), values, atol=1e-15)
    facts = data.facts
    assert all(found["en"] and found["zh"] for found in facts["findings"])
    if WANTED[sample] is None:
        assert facts["formula"] is None
        assert "recognised" not in data.arrays
        return
    formula = facts["formula"]
    found = tuple(formula[name] for name in ("layout", "base", "denominator", "offset"))
    assert (*found, facts["arithmetic"], facts["dtype"]) == WANTED[sample]
    worst = np.abs(data.arrays["table"] - data.arrays["recognised"]).max() / formula["amplitude"]
    assert facts["residual"] == pytest.approx(worst)


def test_the_findings_name_the_mistake_first():
    data = views.data("audit", {"sample": "bfloat16_positions"})
    assert data.facts["findings"][0]["level"] == "wrong"
    assert "cast to bfloat16" in data.facts["findings"][0]["en"]
    table = data.arrays["table"]
    assert (table[257] == table[256]).all()
    assert np.abs(table - data.arrays["recognised"])[:257].max() == 0
    assert sum((table[p] == table[:p]).all(1).any() for p in range(257, 288)) == 288 - 273


def sinusoid(rows: int, width: int, base: float = 10000.0) -> np.ndarray:
    return np.array(
        [[(math.sin, math.cos)[c % 2](p * base ** (-2 * (c // 2) / width)) for c in range(width)] for p in range(rows)]
    )


def saved(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.acceptance
def test_a_large_file_is_checked_whole_and_shown_in_part():
    table = sinusoid(700, 520).astype(np.float32)
    table[690, 3] = 7
    data = audit.uploaded(saved(table))
    assert data.arrays["table"].shape == data.arrays["recognised"].shape == (512, 512)
    assert data.facts["shape"] == [700, 520]
    assert data.facts["at"] == (690, 3)
    assert len(pack(data)) < 5_000_000
    assert data.facts["uploaded"]


def test_numbers_that_are_none_reach_the_page():
    table = sinusoid(10, 8)
    table[2, 3] = math.nan
    data = audit.uploaded(saved(table))
    assert np.isnan(data.arrays["table"][2, 3])
    pack(data)


@pytest.mark.parametrize(
    "contents", [b"", b"\x80\x04.", b"PK\x03\x04", saved(np.ones((3, 3, 3))), b"1,2\n3,x\n", saved(np.ones((1, 4)))]
)
def test_what_is_no_table_is_refused(contents):
    with pytest.raises(ValueError, match=r"\w{3}"):
        audit.uploaded(contents)


# In the browser.


def test_a_planted_table_and_its_worst_cell(opened):
    page = opened("audit?sample=one_cell")
    assert "with 1 error" in page.inner_text("[data-role=verdict]")
    page.click("[data-role=worst]")
    page.wait_for_url(re.compile("row=20&column=7"))
    wanted = math.cos(20 * 10000 ** (-6 / 32))
    assert float(page.get_attribute("[data-role=should]", "data-value")) == pytest.approx(wanted, abs=1e-7)
    assert float(page.get_attribute("[data-role=value]", "data-value")) == pytest.approx(wanted + 0.5, abs=1e-6)
    assert float(page.get_attribute("[data-role=difference]", "data-value")) == pytest.approx(0.5, abs=1e-6)
    formula = page.inner_text(".formula").replace(" ", "")
    assert "cos(20·10000" in formula
    page.locator("canvas").nth(2).focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_url(re.compile("row=21&column=7"))
    assert float(page.get_attribute("[data-role=difference]", "data-value")) == 0


def test_a_file_by_the_button_and_back(opened):
    page = opened("audit")
    contents = saved(sinusoid(30, 12, 77.0))
    page.set_input_files("#audit-file", {"name": "mine.npy", "mimeType": "application/octet-stream", "buffer": contents})
    page.wait_for_selector("text=Base 77.")
    assert "no errors" in page.inner_text("[data-role=verdict]")
    assert "30 × 12, float64" in page.inner_text("[data-role=excerpt]")
    assert "sinusoidal_table(30, 12, 77.0" in page.inner_text(".code code")
    page.click("text=Back to the example table")
    page.wait_for_selector("text=cast to bfloat16 before")


def test_a_refused_file_says_why_and_leaves_the_rest(opened, tmp_path):
    """Refused for its size before it is sent; test_what_is_no_table_is_refused tests refusals by the server."""
    page = opened("audit", lang="zh")
    with (tmp_path / "a.npy").open("wb") as large:
        large.truncate(2**24 + 1)
    page.set_input_files("#audit-file", tmp_path / "a.npy")
    page.wait_for_selector(".stage .trouble:visible")
    said = page.inner_text(".stage .trouble")
    assert "a.npy" in said
    assert "最多读取 16 MB" in said
    assert page.locator("canvas").count() == 3


@pytest.mark.acceptance
def test_a_column_of_numbers_is_drawn(opened):
    page = opened("audit")
    page.set_input_files("#audit-file", {"name": "a.csv", "mimeType": "text/csv", "buffer": b"0.5\n0.25\n1\n"})
    page.wait_for_selector("text=3 × 1, bfloat16")
    assert float(page.get_attribute("[data-role=value]", "data-value")) in (0.5, 0.25, 1)


@pytest.mark.acceptance
def test_a_file_dropped_anywhere_is_read(opened):
    page = opened("audit")
    text = "\n".join(",".join(map(repr, row)) for row in sinusoid(12, 6, 50.0).tolist())
    page.evaluate(
        """(text) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([atob(text)], "mine.csv"));
            const about = { dataTransfer: transfer, bubbles: true, cancelable: true };
            document.querySelector("h1").dispatchEvent(new DragEvent("drop", about));
        }""",
        base64.b64encode(text.encode()).decode(),
    )
    page.wait_for_selector("text=Base 50.")


@pytest.mark.acceptance
def test_the_keyboard_reaches_the_file_and_narrow_windows_hold_it(opened):
    page = opened("audit?sample=random", lang="zh", width=390, dark=True)
    page.focus("[data-name=sample] select")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "audit-file":
            break
    assert page.evaluate("document.activeElement.id") == "audit-file"
    assert "没有识别出" in page.inner_text("[data-role=verdict]")
    assert page.locator("canvas:visible").count() == 1
    fits(page)


def test_tensors_and_arrays_alike():
    table = sinusoid(20, 8).astype(np.float32)
    assert audit.recognise(table).formula == audit.recognise(torch.from_numpy(table)).formula
