"""Attention in eight frames: every matrix, the step of every method, and the page that shows them."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from playwright.sync_api import expect
from widths import fits

import posenc
from posenc.catalogue.lookup import FOUNDATION
from posenc.explorer import views

METHODS = FOUNDATION
CASES = ("猫 吃 鱼", "I like cats", "我 爱 你", "人工 智能 正在 快速 发展", "my own words, typed")
CAUSAL_ONLY = ("xpos", "cope")
SITES = {
    "nope": [],
    "sinusoidal": ["EMBED"],
    "learned": ["EMBED"],
    "floater": ["EMBED"],
    "rope": ["ROTATE"],
    "xpos": ["ROTATE"],
    "alibi": ["BIAS"],
    "t5": ["BIAS"],
    "shaw": ["BIAS", "VALUE"],
    "transformer_xl": ["BIAS"],
    "cope": ["CONTEXT"],
}


def asked(**given):
    return views.data("attention", given)


def arrays(**given) -> dict[str, np.ndarray]:
    return {name: np.asarray(array) for name, array in asked(**given).arrays.items()}


def value(page, role: str = "value") -> float:
    return float(page.get_attribute(f"[data-role={role}]", "data-value"))


@pytest.mark.parametrize("encoding", METHODS)
@pytest.mark.parametrize("causal", [False, True])
def test_every_frame_follows_from_the_one_before(encoding, causal):
    """Computed in numpy: projections, products, mask, softmax, output; what a method adds comes from the library."""
    data = asked(sentence="人工 智能 正在 快速 发展", encoding=encoding, n_heads=2, causal=causal)
    a = {name: np.asarray(array) for name, array in data.arrays.items()}
    assert data.facts["sites"] == SITES.get(encoding, data.facts["sites"])
    assert data.facts["causal"] == (causal or encoding in CAUSAL_ONLY)
    x = a["x"] + a.get("position", 0)
    for name in "qkv":
        np.testing.assert_allclose(a[name], np.einsum("tm,hmd->htd", x, a[f"w_{name}"]), atol=1e-12)
    q, k = a.get("q_hat", a["q"]), a.get("k_hat", a["k"])
    logits = np.einsum("hid,hjd->hij", q, k) / 2
    np.testing.assert_allclose(a["products"], logits, atol=1e-12)
    logits = logits + a.get("added", 0)
    allowed = np.tri(5, dtype=bool) if data.facts["causal"] else np.ones((5, 5), dtype=bool)
    power = np.exp(logits) * allowed
    weights = power / power.sum(-1, keepdims=True)
    np.testing.assert_allclose(a["weights"], weights, atol=1e-12)
    out = np.einsum("hij,hjd->hid", weights, a["v"]) + a.get("value_added", 0)
    np.testing.assert_allclose(a["out"], out.transpose(1, 0, 2).reshape(5, 8), atol=1e-12)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("encoding", METHODS)
def test_the_output_is_that_of_attend(case, encoding):
    if case == "I like cats" and encoding == "xpos":
        with pytest.raises(views.Refused, match=r"pairs.*通道"):
            asked(sentence=case, encoding=encoding)
        return
    data = asked(sentence=case, encoding=encoding, n_heads=2)
    assert data.facts["difference"] < 1e-12
    assert ("position" in data.arrays or "q_hat" in data.arrays or "added" in data.arrays) == (encoding != "nope")


def test_what_each_method_brings_is_its_formula():
    """ALiBi's line, RoPE's and xPos's rotation, Shaw's vectors, T5's buckets, CoPE's count, by their formulas."""
    distance = np.arange(3)[:, None] - np.arange(3)
    np.testing.assert_allclose(arrays(encoding="alibi")["added"][0], -np.abs(distance) * 2.0**-8, atol=1e-15)
    for encoding in ("rope", "xpos"):
        a = arrays(encoding=encoding)
        for p in range(3):
            for i, omega in enumerate((1.0, 0.1)):
                (x, y), c, s = a["q"][0, p, 2 * i : 2 * i + 2], math.cos(p * omega), math.sin(p * omega)
                fade = ((2 * i / 4 + 0.4) / 1.4) ** (p / 512) if encoding == "xpos" else 1
                np.testing.assert_allclose(
                    a["q_hat"][0, p, 2 * i : 2 * i + 2], [(x * c - y * s) * fade, (x * s + y * c) * fade], atol=1e-12
                )
    a = arrays(encoding="shaw", sentence="人工 智能 正在 快速 发展")
    rows = np.clip(np.arange(5) - np.arange(5)[:, None], -2, 2) + 2
    np.testing.assert_allclose(a["added"][0], np.einsum("id,ijd->ij", a["q"][0], a["key_vectors"][rows]) / 2, atol=1e-12)
    np.testing.assert_allclose(
        a["value_added"][0], np.einsum("ij,ijd->id", a["weights"][0], a["value_vectors"][rows]), atol=1e-12
    )
    a = arrays(encoding="t5")
    np.testing.assert_allclose(a["added"][0], a["table"][a["bucket"], 0])
    assert a["bucket"].tolist() == [[0, 5, 6], [1, 0, 5], [2, 1, 0]]
    a = arrays(encoding="cope")
    gates = 1 / (1 + np.exp(-a["products"][0]))
    assert a["counts"][0, 2, 1] == pytest.approx(gates[2, 1] + gates[2, 2])
    for i, j in ((0, 0), (2, 0), (2, 1)):
        wanted = np.interp(a["counts"][0, i, j], range(4), a["count_scores"][0, i])
        assert a["added"][0, i, j] == pytest.approx(wanted, abs=1e-12)


def test_the_notes_own_sums_stand_in_the_frames():
    sums = [[0.5, 1.2, -0.1, 1.3], [1.1415, 0.1403, 0.6998, 1.0950], [0.7093, 0.2839, 0.5987, 0.4801]]
    np.testing.assert_allclose(arrays()["embedded"], sums, atol=5e-5)
    a = arrays(sentence="I like cats", encoding="nope")
    np.testing.assert_allclose(a["q"][0], [[0.30, 0.36, 0.42], [0.66, 0.81, 0.96], [1.02, 1.26, 1.50]], atol=1e-12)
    weights = [[0.2435, 0.3244, 0.4321], [0.1525, 0.2913, 0.5562], [0.0890, 0.2437, 0.6672]]
    np.testing.assert_allclose(a["weights"][0], weights, atol=5e-5)
    printed = asked(sentence="I like cats", encoding="nope").facts["printed"]["q"]
    assert [verdict for row in printed for _, verdict in row] == ["same"] + 8 * ["different"]
    steps = {step.formula: step.matrix for step in posenc.learn.ledger.EXAMPLES["rope"].steps()}
    a = arrays(sentence="人工 智能 正在 快速 发展", encoding="rope")
    np.testing.assert_allclose(a["products"][0, 2:3], steps["q̂_2·k̂_j/√4"], atol=1e-12)
    np.testing.assert_allclose(a["out"][2:3, :2], steps["o_2 = Σ_j α_2j·v_j"], atol=1e-12)


def test_frames_before_the_mark_are_the_same_for_all_methods():
    nope, rope, sinusoidal = (arrays(encoding=name) for name in ("nope", "rope", "sinusoidal"))
    for name in "qkv":
        assert (nope[name] == rope[name]).all()
        assert (nope[name] != sinusoidal[name]).any()
    np.testing.assert_allclose(rope["changed"], rope["out"] - nope["out"], atol=1e-12)


@pytest.mark.acceptance
def test_the_mark_moves_with_the_method(opened):
    page = opened("attention")
    marks = {
        "nope": [],
        "learned": ["2"],
        "rope": ["3"],
        "xpos": ["3", "5"],
        "alibi": ["4"],
        "t5": ["4"],
        "shaw": ["4", "7"],
        "transformer_xl": ["4"],
        "cope": ["4", "5"],
    }
    for method, wanted in marks.items():
        page.select_option("[data-name=encoding] select", index=METHODS.index(method))
        expect(page.locator(".pipeline [data-site] small")).to_have_text(wanted)
        expect(page.locator(".pipeline [data-site]").first if wanted else page.locator(".pipeline")).to_be_visible()
    assert value(page, "difference") < 1e-12
    assert value(page, "check") < 1e-12


@pytest.mark.acceptance
def test_words_that_are_turned_are_no_sum(opened):
    page = opened("attention?frame=2&encoding=complex_order&part=embedded&row=1&column=0")
    expect(page.locator(".pipeline [data-site]")).to_have_text("2Vectorsturned")
    expect(page.locator(".frame [data-part]")).to_have_count(2)
    a = arrays(encoding="complex_order", sentence="cat eats fish")
    assert "position" not in a
    assert value(page) == pytest.approx(a["embedded"][1, 0], abs=1e-15)
    assert value(page, "check") < 1e-12
    lengths = (a[name][..., :2] ** 2 + a[name][..., 2:] ** 2 for name in ("x", "embedded"))
    np.testing.assert_allclose(*lengths, atol=1e-12)


@pytest.mark.acceptance
def test_steps_by_button_key_and_player(opened):
    page = opened("attention")
    page.click("[data-frame='4']")
    expect(page.locator(".frame h2")).to_have_text("4 · Scores")
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-frame='5']")).to_be_focused()
    page.click("[data-role=step]")
    page.click("[data-role=step]")
    expect(page.locator(".frame h2")).to_have_text("7 · Weights · v")
    page.select_option("[data-role=speed]", "2")
    page.click("[data-role=play]")
    expect(page.locator(".frame h2")).to_have_text("8 · Output")
    page.wait_for_url(re.compile("frame=8"))


def test_a_cell_gives_its_sum_value_and_python(opened):
    page = opened("attention?frame=4&sentence=人工 智能 正在 快速 发展&encoding=rope")
    a = arrays(sentence="人工 智能 正在 快速 发展", encoding="rope")
    page.click("[data-part=products] td[data-row='2'][data-column='1']")
    page.wait_for_url(re.compile("part=products"))
    assert value(page) == pytest.approx(a["products"][0, 2, 1], abs=1e-15)
    numbers = [
        float(n.replace("−", "-")) for n in re.findall(r"−?\d+\.?\d*", page.inner_text(".formula-line:nth-child(2)"))
    ]
    pairs, last = numbers[:8], numbers[-1]
    assert sum(x * y for x, y in zip(pairs[::2], pairs[1::2], strict=True)) / 2 == pytest.approx(last, abs=1e-3)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    assert value(page) == pytest.approx(a["products"][0, 1, 2], abs=1e-15)
    expect(page.locator("[data-part=products] td[aria-selected=true]")).to_be_focused()
    assert f"{a['products'][0, 1, 2]:.4f}".replace("-", "−") in page.inner_text("[data-role=live]")
    assert "products[0, 1, 2]  # " in page.inner_text(".code code")


def test_a_link_restores_the_second_head_and_the_note_is_named(opened):
    page = opened(
        "attention?frame=7&sentence=我 爱 你&encoding=shaw&n_heads=2&head=1&causal=true&part=attended&row=2&column=3"
    )
    a = arrays(sentence="我 爱 你", encoding="shaw", n_heads=2, causal=True)
    assert value(page) == pytest.approx(a["attended"][1, 2, 3], abs=1e-15)
    page = opened("attention?frame=3&sentence=I like cats&encoding=nope&part=q&row=0&column=1")
    assert page.inner_text("[data-role=printed]") == "The notes from which posenc began print 0.38: wrong."
    assert value(page) == pytest.approx(0.36)


@pytest.mark.acceptance
def test_prediction_shows_rope_where_it_turns(opened):
    page = opened("attention", lang="zh", width=390)
    page.click(".choice >> nth=1")
    expect(page.locator(".answer")).to_contain_text("正确。")
    expect(page.locator(".frame h2")).to_have_text("3 · q、k、v")
    expect(page.locator(".entering")).to_have_count(2)
    fits(page)


@pytest.mark.acceptance
def test_typed_sentences_have_random_words_and_translations_the_notes_numbers(opened):
    """The same word has the same vector; 猫 吃 鱼 and cat eats fish share the note's."""
    x = arrays(sentence="the cat sees the dog")["x"]
    np.testing.assert_array_equal(x[0], x[3])
    assert (x[0] != x[1]).any()
    np.testing.assert_array_equal(x * 10, np.round(x * 10))  # one decimal
    for name, array in arrays(sentence="cat eats fish").items():
        np.testing.assert_array_equal(array, arrays()[name])
    page = opened("attention?frame=1")
    expect(page.locator(".sentence button")).to_have_text([re.compile("^cat"), re.compile("^eats"), re.compile("^fish")])
    field = page.locator("[data-name=sentence] input")
    field.fill("你好 世界 hello")
    field.press("Enter")
    expect(page.locator(".sentence button")).to_have_text([re.compile("^你好"), re.compile("^世界"), re.compile("^hello")])
