"""#S1 to #S21: each row of the founding notes opens whole, with its example, above the view that shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect
from typer.testing import CliRunner

import posenc
from posenc.cli import app
from posenc.explorer import links, views
from posenc.explorer.figures import FIGURES
from posenc.explorer.trained_words import load
from posenc.learn.ledger import CLAIMS, ROWS
from sampling import every_second, first_only, thinned

# The view of each row, and what of the notes is to be read on the first screen: example, figures. Written by hand.
SHOWN = {
    "S1": ("table", ["0.9093", "-0.4161", "0.1987", "0.9801", "0.0200", "0.9998"]),
    "S2": ("paths", ["BERT", "512", "GPT-2", "1,024", "position 512 is outside"]),
    "S3": ("rotary_pair", ["正在", "0.1500"]),
    "S4": ("bias", ["0.5", "0.003906", "0.7071"]),
    "S5": ("terms", ["猫 → 追", "老鼠 → 猫"]),
    "S6": ("paths", ["FLOATER", "4,896"]),
    "S7": ("order", ["我爱你 / 你爱我", "猫追老鼠 / 老鼠追猫", "猫吃鱼 / 鱼吃猫", "我喜欢猫 / 猫喜欢我"]),
    "S8": ("taylor", ["½", "ε = 0.001"]),
    "S9": ("table", ["30 × 20", "50 × 128", "100 × 512", "51 / 64"]),
    "S10": ("table", ["628.3", "0.01"]),
    "S11": ("shift", ["p = 10", "p = 1,000,000"]),
    "S12": ("wavelengths", ["6.28", "60,611"]),
    "S13": ("precision", ["6.03e-05", "710", "0.0444", "1885", "0.645", "63", "3.71", "769 / 4096"]),
    "S14": ("attention", ["猫 0", "1.1415", "0.1403", "0.6998", "1.0950", "0.7093", "0.2839", "0.5987", "0.4801"]),
    "S15": ("measured", ["ALiBi", "128 = 1×", "2048 = 16×"]),
    "S16": ("measured", ["★★★", {"en": "unlimited in theory", "zh": "理论无限"}, "ALiBi"]),
    "S17": ("heads", ["这部电影很无聊，但演员表演精彩", "红色的汽车停在建筑物外面。", "RoPE", "建筑物", "building 81 %"]),
    "S18": ("paths", ["2000"]),
    "S19": ("table", ["0.8415", "0.5403", "0.0998", "0.9950"]),
    "S20": ("order", ["RNN", "我爱你 / 你爱我"]),
    "S21": ("similarity", ["11 → 12", "18 → 19"]),
}


def on_the_first_screen(page, text: str) -> None:
    """A part of the card holds the text and is seen whole without scrolling."""
    inside = """(card, text) => {
        const parts = [...card.querySelectorAll('p, td, th')].filter((one) => one.textContent.includes(text));
        return parts.some((one) => {
            const { left, top, right, bottom } = one.getBoundingClientRect();
            return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight && right > left;
        });
    }"""
    assert page.locator(".row-card").evaluate(inside, text), text


@pytest.mark.parametrize(("name", "lang"), thinned(4, every_second(tuple(SHOWN), ("en", "zh"))))
def test_a_row_is_whole_on_the_first_screen(opened, name, lang):
    view, texts = SHOWN[name]
    page = opened("table?length=2", lang=lang, width=1440, height=900)
    page.evaluate(f"location.hash = '{name}'")
    card = page.locator(f".row-card[data-row={name}]")
    expect(card.locator("tbody tr").first).to_be_visible()
    expect(page.locator(f"main[data-ready] .view-{view}")).to_be_visible()
    expect(page.locator(".trouble:visible")).to_have_count(0)
    for text in texts:
        on_the_first_screen(page, text if isinstance(text, str) else text[lang])
    stage = page.locator(".stage").bounding_box()
    assert stage["y"] < 600, "the view's picture begins on the first screen"
    assert card.locator(".scroll").evaluate("one => one.scrollWidth - one.clientWidth") <= 1, "no figure is cut"
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_every_row_of_the_notes_is_here():
    assert list(SHOWN) == [f"S{n}" for n in range(1, 22)] == list(ROWS)
    for name, row in ROWS.items():
        assert row.view.split("?")[0] == SHOWN[name][0]


def test_row_15_draws_its_measured_curves(opened):
    text = Path(posenc.__file__).with_name("catalogue").joinpath("measured.json").read_text("utf-8")
    task = next(one for one in json.loads(text)["tasks"] if one["name"] == "language_model")
    names = {"nope", "sinusoidal", "learned", "rope", "alibi", "t5", "kerple", "rope+randomized"}
    arms = [arm for arm in task["arms"] if arm["name"] in names]
    assert len(arms) == 8
    page = opened("S15", width=1440, height=900)
    drawn = page.locator(".row-curves")
    expect(drawn.locator("polyline")).to_have_count(len(arms))
    assert drawn.bounding_box()["y"] + drawn.bounding_box()["height"] <= 900
    lines = [line.get_attribute("points").split() for line in drawn.locator("polyline").all()]
    bits = [[cell["mean"] for cell in arm["cells"] if "mean" in cell] for arm in arms]
    assert list(map(len, lines)) == list(map(len, bits))
    measured = [one for curve in bits for one in curve]
    heights = [float(point.split(",")[1]) for line in lines for point in line]
    slope, start = np.polyfit(measured, heights, 1)
    assert slope < 0, "more bits stand higher"
    np.testing.assert_allclose(heights, start + slope * np.array(measured), atol=0.1)  # drawn to a tenth of a pixel
    said = CliRunner().invoke(app, ["walk", "S15", "--lang", "en"]).stdout.splitlines()
    learned, alibi = (next(line for line in said if line.split()[:1] == [name]) for name in ("Learned", "ALiBi"))
    assert learned.count("·") == 35, "one value, five lengths without"
    assert len(set(alibi.split()[1])) == 1, "flat"


def test_row_17_says_which_english_word_each_chinese_word_looks_at():
    english = ["the", "red", "car", "is", "parked", "outside", "the", "building", "."]
    chinese = ["红色", "的", "汽车", "停", "在", "建筑物", "外面", "。"]
    below = FIGURES["S17"]().as_dict()["then"]
    assert [column["zh"] for column in below["columns"]] == chinese
    for row, name in zip(below["rows"], ("nope", "rope"), strict=True):
        weights = load("translation", name).read(tuple(english)).weights.numpy().max((0, 1))
        for n, cell in enumerate(row["cells"]):
            asks = weights[len(english) + n, : len(english)]  # the word before the one that is written
            assert cell["zh"] == f"{english[asks.argmax()]} {100 * asks.max():.0f} %"
    said = CliRunner().invoke(app, ["walk", "S17"])
    assert "building 81 %" in said.stdout


def test_rows_lead_to_one_another_and_the_card_goes_with_its_row(opened):
    page = opened("S7", width=1440)
    card = page.locator(".row-card")
    card.get_by_role("link", name="S8").click()
    expect(card).to_have_attribute("data-row", "S8")
    expect(card.locator("tbody tr").first).to_be_visible()
    page.get_by_label("random seed").last.fill("3")
    page.get_by_label("random seed").last.press("Enter")
    expect(card).to_have_attribute("data-row", "S8")
    page.go_back()
    page.evaluate("location.hash = '/taylor'")
    expect(card).to_have_count(0)


def test_the_page_says_in_row_19_how_far_its_own_sums_are_from_python_s(opened):
    page = opened("S19", width=1440)
    said = page.locator(".row-card b").last
    expect(said).to_contain_text("Largest difference")
    assert float(re.search(r": ([\d.e−-]+)", said.inner_text())[1].replace("−", "-")) < 1e-12


def test_a_row_fits_a_telephone(opened):
    page = opened("S17", width=390, lang="zh", dark=True)
    expect(page.locator(".row-card tbody tr").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


# The statements of the notes, and the addresses that views had before


def test_each_statement_of_the_notes_stands_beside_one_row_with_its_verdict():
    told = {claim["id"]: claim for name in ROWS for claim in views.data("row", {"name": name}).facts["claims"]}
    assert set(told) == set(CLAIMS)
    assert len(CLAIMS) == 37
    for name, claim in CLAIMS.items():
        evidence = claim.check()
        assert told[name]["words"] == claim.words.as_dict()
        assert told[name]["verdict"] == evidence.verdict.words.as_dict()
        assert told[name]["value"] == evidence.value.as_dict()


@pytest.mark.parametrize(
    ("address", "row", "claim", "lang"),
    [
        ("true_or_false", "S1", "denominators", "en"),
        ("true_or_false?claim=never-repeats&answers=tf", "S13", "never-repeats", "zh"),
    ],
)
def test_an_old_address_of_a_statement_opens_its_row(opened, address, row, claim, lang):
    page = opened(address, lang=lang, width=1440)
    card = page.locator(f".row-card[data-row={row}]")
    card.locator(".claims summary").click()
    evidence = CLAIMS[claim].check()
    expect(card.locator(f"[data-claim={claim}]")).to_contain_text(CLAIMS[claim].words.in_language(lang))
    expect(card.locator(f"[data-claim={claim}] b")).to_have_text(evidence.verdict.words.in_language(lang))
    expect(card.locator(f"[data-claim={claim}] + dd")).to_have_text(evidence.value.in_language(lang))
    assert links.address(address) == row


@pytest.mark.parametrize(("lang", "said"), first_only([("zh", "请用命令"), ("en", "is checked by the command")]))
def test_the_old_address_of_ones_own_table_names_the_command(opened, lang, said):
    page = opened("audit?sample=one_cell", lang=lang)
    expect(page.locator(".gone")).to_contain_text(said)
    expect(page.locator(".gone")).to_contain_text("posenc check TABLE")
    with pytest.raises(views.Refused, match="posenc check TABLE"):
        links.address("audit")
