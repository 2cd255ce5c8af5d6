"""Wavelengths: by the formula, and from a model's configuration."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from posenc.explorer import views
from posenc.explorer.parameters import Refused
from posenc.explorer.views.wavelengths import EXAMPLES, EXPORTED, Parameters

LLAMA, YARN, GEMMA = EXAMPLES.values()


def asked(**parameters):
    return views.data("wavelengths", parameters)


def shown(page, role):
    return float(page.get_attribute(f"[data-role={role}]", "data-value"))


@pytest.mark.parametrize(("d", "base"), [(2, 10000.0), (7, 50.0), (128, 10000.0), (1024, 1e6)])
def test_wavelengths_are_the_formula(d, base):
    data = asked(d_model=d, base=base, length=100)
    wanted = [2 * math.pi * base ** (2 * i / d) for i in range((d + 1) // 2)]
    np.testing.assert_allclose(data.arrays["wavelength"], wanted, rtol=1e-13)
    np.testing.assert_allclose(data.arrays["sine_at_end"], [math.sin(200 * math.pi / one) for one in wanted], atol=1e-12)
    assert data.facts["unfinished"] == sum(one > 100 for one in wanted)


def test_the_notes_figures():
    """S12 and the ledger: 6.28 to 60 611 = 0.965 · 20000π at d = 512; 18 of 64 pairs at 4096."""
    slowest = asked(d_model=512).arrays["wavelength"]
    assert slowest[0] == pytest.approx(6.283, abs=1e-3)
    assert slowest[-1] == pytest.approx(60_611, abs=1)
    assert slowest[-1] / (20_000 * math.pi) == pytest.approx(0.965, abs=1e-3)
    assert asked().facts["unfinished"] == 18
    assert asked(base=500000.0).facts["unfinished"] == 32


def test_llama_3_1_leaves_fast_pairs_alone_and_slows_the_slow_ones():
    data = asked(config=LLAMA)
    wavelength = data.arrays["wavelength"].tolist()
    for i, got in enumerate(wavelength):
        plain = 2 * math.pi * 500000.0 ** (2 * i / 128)
        if plain < 8192 / 4:
            assert got == pytest.approx(plain, rel=1e-12)
        elif plain > 8192:
            assert got == pytest.approx(8 * plain, rel=1e-12)
        else:
            smooth = (8192 / plain - 1) / (4 - 1)
            assert got == pytest.approx(plain / ((1 - smooth) / 8 + smooth), rel=1e-12)
    assert data.facts["length"] == 131072
    assert data.facts["unfinished"] == sum(one > 131072 for one in wavelength)
    assert data.facts["model"]["base"] == 500000
    assert "llama3(factor=8" in data.facts["model"]["values_from"]


def test_gemma_3_has_two_kinds_of_layers():
    local, whole = asked(config=GEMMA), asked(config=GEMMA, layer=5)
    assert (local.facts["model"]["base"], local.facts["model"]["window"]) == (10000, 1024)
    assert (whole.facts["model"]["base"], whole.facts["model"]["window"]) == (1e6, None)
    assert "original" not in local.arrays
    assert (whole.arrays["original"] / whole.arrays["omega"]).tolist() == pytest.approx([8] * 128)


def test_a_text_model_inside_another_is_found():
    config = json.dumps({"model_type": "gemma3", "text_config": json.loads(GEMMA)})
    assert asked(config=config).facts["model"]["part"] == "text_config"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "expected a JSON object"),
        ('{"model_type": 3}', "model_type"),
        ('{"model_type": "nobody"}', "nobody"),
        ('{"model_type": "gpt2"}', "no rotary frequencies"),
        (json.dumps(json.loads(LLAMA) | {"rope_theta": "fast"}), "rope_theta"),
        (json.dumps(json.loads(LLAMA) | {"rope_theta": 1e-320}), "cannot be read"),
        (json.dumps(json.loads(LLAMA) | {"num_attention_heads": 0}), "num_attention_heads"),
        (json.dumps(json.loads(LLAMA) | {"head_dim": 2**20}), "1048576 channels"),
        (json.dumps(json.loads(LLAMA) | {"rope_scaling": {"rope_type": "yarn", "factor": -1}}), "factor"),
        ('{"a":' * 2000 + "1" + "}" * 2000, "nested"),
        ('{"model_type": "llama", "x": NaN}', "NaN"),
        ("x" * 20_000, "16384"),
    ],
)
def test_what_cannot_be_shown_is_said(config, said):
    with pytest.raises(Refused, match=said):
        asked(config=config)


def test_a_layer_that_there_is_not_is_said():
    with pytest.raises(Refused, match="layers 0 … 31, got 32"):
        asked(config=LLAMA, layer=32)


@pytest.mark.parametrize("request_", [Parameters(), *EXPORTED], ids=lambda one: one.config[20:26] or "formula")
def test_the_python_gives_the_same_numbers(request_):
    data = views.data("wavelengths", request_.model_dump())
    namespace: dict[str, object] = {}
    exec(data.python, namespace)
    for name, values in data.arrays.items():
        np.testing.assert_array_equal(np.asarray(namespace[name]), np.asarray(values), err_msg=name)


@pytest.mark.acceptance
def test_click_and_keys_choose_a_pair(opened):
    page = opened("wavelengths?pair=10")
    assert shown(page, "unfinished") == 18
    assert shown(page, "wavelength") == pytest.approx(2 * math.pi * 10000 ** (20 / 128), rel=1e-12)
    box = page.locator("[role=application] svg").bounding_box()
    left, right = 54, 12
    x = box["x"] + left + (box["width"] - left - right) * 50.5 / 64
    page.mouse.click(x, box["y"] + 100)
    page.wait_for_url(re.compile("pair=50"))
    assert shown(page, "turns") == pytest.approx(4096 / (2 * math.pi * 10000 ** (100 / 128)), rel=1e-12)
    for key in ("End", "ArrowLeft", "PageUp", "ArrowRight"):
        page.keyboard.press(key)
    page.wait_for_url(re.compile("pair=53"))
    assert shown(page, "wavelength") == pytest.approx(2 * math.pi * 10000 ** (106 / 128), rel=1e-12)
    assert "pair 53" in page.inner_text("[data-role=live]")
    assert f"wavelength[53]  # {shown(page, 'wavelength')}" in page.inner_text(".code code")
    assert float(page.get_attribute("[data-role=check]", "data-value")) < 1e-11


@pytest.mark.acceptance
def test_a_model_of_ours(opened):
    page = opened("wavelengths?pair=60")
    page.click("[data-config='Llama 3.1 8B']")
    page.wait_for_selector("[data-role=values-from]")
    assert shown(page, "base") == 500000
    assert shown(page, "slower") == pytest.approx(8)
    assert shown(page, "wavelength") == pytest.approx(8 * 2 * math.pi * 500000 ** (120 / 128), rel=1e-12)
    assert "L = 131072" in page.inner_text("[role=application]")
    page.click("[data-config='the formula']")
    page.wait_for_selector("[data-role=values-from]", state="hidden")
    assert shown(page, "unfinished") == 18


def test_a_pasted_configuration_is_read_or_refused_in_words(browser, server):
    page = browser.new_page()  # a refusal is printed to the console by the browser itself
    page.goto(f"{server}/#/wavelengths?lang=en")
    page.click("summary:has-text('paste')")
    page.fill("[data-role=config]", '{"model_type": "gpt2"}')
    page.click("[data-role=read]")
    page.wait_for_selector("[role=alert]:visible")
    assert "no rotary frequencies" in page.inner_text("[role=alert]")
    page.fill("[data-role=config]", YARN)
    page.click("[data-role=read]")
    page.wait_for_selector("[data-role=base][data-value='1000000']")
    assert page.is_hidden("[role=alert]")
    page.close()


def test_a_prediction_shows_its_base_and_a_link_restores_it(opened):
    page = opened("wavelengths?d_model=512&length=100&lang=zh")
    assert shown(page, "longest") == pytest.approx(60_611, abs=1)
    page.click("text=更多：32 个")
    page.wait_for_selector("[data-role=unfinished][data-value='32']")
    page.wait_for_url(re.compile("base=500000"))
    assert "64 个通道对中有 32 个" in page.inner_text("[data-role=live]")
    page = opened(page.url.split("#/")[1])
    assert shown(page, "unfinished") == 32


@pytest.mark.acceptance
def test_the_wave_follows_the_window(opened):
    page = opened("wavelengths")
    before = page.locator(".wave svg").bounding_box()["width"]
    page.set_viewport_size({"width": 800, "height": 900})
    expect(page.locator(".wave svg")).not_to_have_attribute("width", str(round(before)))
    assert (
        page.evaluate(
            "(() => { const one = document.querySelector('.wave'); return one.scrollWidth - one.clientWidth; })()"
        )
        <= 0
    )
    page.set_viewport_size({"width": 1100, "height": 900})
    expect(page.locator(".wave svg")).to_have_attribute("width", str(round(before)))
