"""Angles beyond the trained length, and the measured curves: formulas from the papers, numbers from the study."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from posenc.catalogue import measured
from posenc.explorer import views
from posenc.explorer.parameters import Refused
from posenc.lab import extract

RESULTS = Path(__file__).parent.parent.parent / "results"
FOLDERS = [RESULTS / name for name in ("study", "study-tasks", "chains")]
LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 2, "vocab_size": 100,
    "max_position_embeddings": 131072, "rope_theta": 500000.0,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192},
}  # fmt: skip


def plain(d, base):
    return [base ** (-2 * i / d) for i in range(d // 2)]


def scaled(d, base, trained, s):
    """The five methods, written independently."""
    omega = plain(d, base)
    low, high = (d * math.log(trained / (2 * math.pi * turns)) / (2 * math.log(base)) for turns in (32, 1))
    low, high = max(math.floor(low), 0), min(math.ceil(high), d - 1)
    yarn, llama = [], []
    for i, w in enumerate(omega):
        gamma = min(max((i - low) / (high - low), 0), 1)
        yarn.append((1 - gamma) * w + gamma * w / s)
        turns = trained * w / (2 * math.pi)
        llama.append(w / s if turns < 1 else w if turns > 4 else ((1 - (turns - 1) / 3) / s + (turns - 1) / 3) * w)
    return [omega, [w / s for w in omega], plain(d, base * s ** (d / (d - 2))), yarn, llama]


@pytest.mark.parametrize(("d", "base", "trained", "s"), [(128, 1e4, 4096, 4.0), (64, 5e5, 8192, 16.0), (8, 100.0, 40, 2.0)])
def test_every_method_is_its_formula(d, base, trained, s):
    data = views.data("extrapolation", {"d": d, "base": base, "trained": trained, "factor": s})
    wanted = np.array(scaled(d, base, trained, s))
    np.testing.assert_allclose(data.arrays["omega"], wanted, rtol=1e-12)
    for n in range(d // 2):
        turned = min(wanted[0, n] * trained, 2 * math.pi)
        for m in range(5):
            new = max(min(wanted[m, n] * trained * s, 2 * math.pi) - turned, 0)
            assert data.arrays["new"][m, n].item() == pytest.approx(new, abs=1e-9)
    assert data.facts["unfinished"] == sum(2 * math.pi / w > trained for w in wanted[0])


def test_the_figures_of_the_notes():
    """18 of 64 pairs never finish a turn; only unchanged and NTK-aware frequencies reach new angles."""
    data = views.data("extrapolation", {})
    assert data.facts["unfinished"] == 18
    assert (np.asarray(data.arrays["new"]) > 1e-9).sum(1).tolist() == [18, 0, 17, 0, 0]
    scales = {one["name"]: (one["cos_sin_scale"], one["softmax_scale"]) for one in data.facts["methods"]}
    assert scales.pop("yarn") == (pytest.approx(1 + 0.1 * math.log(4)), 1)
    assert set(scales.values()) == {(1, 1)}


def test_a_file_brings_its_own_frequencies_and_length():
    data = views.data("extrapolation", {"config": json.dumps(LLAMA), "factor": 8})
    assert (data.facts["trained"], data.facts["family"], data.facts["d"]) == (8192, "llama", 128)
    np.testing.assert_allclose(data.arrays["omega"][5], scaled(128, 5e5, 8192, 8.0)[4], rtol=1e-12)
    shorter = views.data("extrapolation", {"config": json.dumps(LLAMA), "factor": 2}).arrays
    assert (np.asarray(shorter["at_target"][5]) < np.asarray(shorter["in_training"])).any()
    assert np.asarray(shorter["new"]).min() == 0


@pytest.mark.parametrize(("config", "said"), [
    ("{", "config: not JSON"), ("[]", "config: expected a JSON object"), ("{}", "model_type"),
    ('{"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 1, "n_positions": 32}', "gpt2 has no rotary"),
    ("x" * 20001, "at most 20000"),
])  # fmt: skip
def test_what_is_no_such_file_is_refused_in_words(config, said):
    with pytest.raises(Refused, match=said) as refusal:
        views.data("extrapolation", {"config": config})
    assert "extend" not in str(refusal.value)


# Measured ---------------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance
def test_the_digest_is_what_the_results_say():
    assert extract.make_digest(*FOLDERS) == measured.digest()
    assert measured.FILE.stat().st_size < 65_000


def test_curves_are_those_of_the_report():
    """Every seed of every cell, from the reports' tables."""
    rows = []
    for folder in FOLDERS:
        with (folder / "report" / "cells.csv").open(encoding="utf-8", newline="") as file:
            rows += [row for row in csv.DictReader(file) if row["value"]]
    modes = {"same targets", "random positions"}  # the second is how arms with random positions are scored
    rows = [
        row
        for row in rows
        if row["mode"] in modes and (row["mode"] == "random positions") == row["encoding"].endswith("+randomized")
    ]
    kept = {(row["task"], row["encoding"], row["setting"], row["length"], row["seed"]): float(row["value"]) for row in rows}
    checked = 0
    for task in measured.digest()["tasks"]:
        for arms, curves in (
            (task["arms"], measured.curves(task["name"])),
            (task["after"], measured.changed(task["name"])),
        ):
            for a, n in np.argwhere(np.isfinite(curves.mean)):
                one, length = arms[a]["name"], str(task["lengths"][n])
                who = (one, "trained") if arms is task["arms"] else ("rope", {"none": "trained"}.get(one, one))
                seeds = [kept[key] for seed in range(5) if (key := (task["name"], *who, length, str(seed))) in kept]
                shown = curves.seeds[a, :, n]
                np.testing.assert_allclose(shown[np.isfinite(shown)], seeds, atol=1e-5)
                assert curves.mean[a, n] == pytest.approx(sum(seeds) / len(seeds), abs=1e-5)
                checked += 1
    assert checked > 300


def test_what_is_gained_beyond_the_trained_length_is_that_of_the_report():
    """The share of what the optimum gains, as the report's table of numbers has it."""
    with (RESULTS / "chains" / "report" / "gained.csv").open(encoding="utf-8", newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["length"] == "1024"]
    shares = {line["encoding"] if line["setting"] == "trained" else line["setting"]: line for line in lines}
    gained = measured.gained("chains")
    assert gained.keys() == shares.keys()
    for name, found in gained.items():
        assert found["share"] == pytest.approx(float(shares[name]["share"]), abs=1e-5), name
        low, high = (float(shares[name][end]) for end in ("share_low", "share_high"))
        assert found["share_interval"] == pytest.approx([low, high], abs=1e-5), name


def test_what_has_no_number_has_words():
    arms = {arm["name"]: arm for arm in measured.task("recall")["arms"]}
    assert arms["nope"]["why"]["en"] == "not learnt at this budget"
    assert {arm["name"]: arm for arm in measured.task("language_model")["arms"]}["learned"]["cells"][1]["why"]["en"] == (
        "cannot: table ends at 128"
    )
    for task in measured.digest()["tasks"]:
        mean = measured.curves(task["name"]).mean
        for a, arm in enumerate(task["arms"]):
            assert [math.isnan(x) for x in mean[a]] == ["why" in cell for cell in arm["cells"]]


def test_intervals_of_bits_need_five_seeds_and_those_of_shares_know_that_seeds_differ():
    found = measured.curves("language_model")
    five = np.isfinite(found.seeds).sum(1) == 5
    assert 0 < five.sum() < five.size
    assert (np.isfinite(found.low) == five).all()
    low, high = (np.asarray(part) for part in measured.curves("copy")[2:])
    z, n = 1.959964, 5 * 256
    arm = [one["name"] for one in measured.task("copy")["arms"]].index("alibi")
    share = measured.curves("copy").mean[arm, 2]
    centre, half = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    wanted = [(centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)]
    seeds = measured.curves("copy").seeds[arm, :, 2]
    assert low[arm, 2] < wanted[0] - 0.1  # Wilson's interval, of all rows together
    assert high[arm, 2] > wanted[1] + 0.1
    assert seeds.min() < low[arm, 2] < share < high[arm, 2] < seeds.max()


# The page ---------------------------------------------------------------------------------------------------------------


def role(page, name: str) -> float:
    return float(page.get_attribute(f"[data-role={name}]", "data-value"))


def test_a_bar_gives_its_circle_and_formula(opened):
    page = opened("extrapolation")
    assert role(page, "unfinished") == 18
    counts = page.eval_on_selector_all(
        "[data-role=new-pairs]", "all => all.map(one => [one.dataset.method, +one.dataset.value])"
    )
    assert counts == [["none", 18], ["linear", 0], ["ntk", 17], ["yarn", 0], ["llama3", 0]]
    bar = page.locator("path.new").nth(2).bounding_box()  # NTK-aware
    box = page.locator(".strips svg").bounding_box()
    page.mouse.click(box["x"] + 10 + (box["width"] - 20) * 55.5 / 64, bar["y"] + bar["height"] - 1)
    page.wait_for_url(re.compile("pair=55&method=ntk"))
    omega = scaled(128, 1e4, 4096, 4.0)[2][55]
    assert role(page, "angle") == pytest.approx(omega * 16384)
    assert role(page, "turns-target") == pytest.approx(omega * 16384 / (2 * math.pi))
    assert f"{1e4 * 4 ** (128 / 126):.1f}" in page.inner_text(".formula-card")


@pytest.mark.acceptance
def test_keys_move_over_pairs_and_methods(opened):
    page = opened("extrapolation?pair=40")
    page.focus(".strips")
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowLeft", "PageUp"):
        page.keyboard.press(key)
    page.wait_for_url(re.compile("pair=30&method=yarn"))
    assert role(page, "angle") == pytest.approx(scaled(128, 1e4, 4096, 4.0)[3][30] * 16384)
    assert "YaRN" in page.inner_text("[data-role=live]")


@pytest.mark.acceptance
def test_a_pasted_file_is_read(opened):
    page = opened("extrapolation?factor=8")
    page.click("summary:has-text('config.json')")
    page.fill(".stage textarea", json.dumps(LLAMA))
    page.keyboard.press("Tab")
    expect(page.locator("[data-role=unfinished]")).to_have_attribute("data-value", "29")
    expect(page.locator("[data-role=new-pairs]")).to_have_count(6)


@pytest.mark.acceptance
def test_the_measured_curves_wait_for_a_guess(opened):
    page = opened("extrapolation?task=language_model")
    assert not page.is_visible(".answers")
    page.click("button.choice:has-text('ALiBi')")
    expect(page.locator(".predict .answer")).to_contain_text("Yes")
    shown = measured.task("language_model")["arms"]
    legend = "all => all.map(one => [one.innerText.split(' ')[0], +one.querySelector('b')?.dataset.value])"
    values = dict(page.eval_on_selector_all(".answers .charted:not([hidden]) .legend li", legend))
    wanted = {
        arm["title"]["en"]: arm["cells"][5]["mean"] for arm in shown if arm["name"] in ("rope", "alibi", "t5", "sinusoidal")
    }
    assert {name: values[name] for name in wanted} == wanted
    assert "cannot: table ends at 128" in page.inner_text(".unjudged [data-arm=learned]")
    page.click("[data-arm=cope][aria-pressed=false]")
    expect(page.locator("button[data-arm=cope]")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".answers .legend:visible")).to_contain_text("CoPE")


def test_a_link_restores_task_and_comparison(opened):
    page = opened("extrapolation?seen=true&curves=changed&at=4")
    cells = page.eval_on_selector_all(".answers .legend:visible b", "all => all.map(one => +one.dataset.value)")
    assert cells == pytest.approx([arm["cells"][4]["mean"] for arm in measured.task("language_model")["after"]], abs=1e-9)
    page.locator(".answers select").first.select_option(label="copy")
    page.wait_for_url(re.compile("task=copy"))
    expect(page.locator(".unjudged")).to_contain_text(
        "RoPE + random positions 92.5 % at 8, from 10 on: not learnt at this budget"
    )
    page.locator(".answers select").first.select_option(label="word order")
    expect(page.locator(".unjudged")).to_contain_text("NoPE 50.0 % at 12, from 16 on: not learnt at this budget")
