"""Paths of positions: the record matches its settings, FLOATER's path solves its equation, and the page shows both."""

from __future__ import annotations

import itertools
import json
import math
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from posenc.explorer import trained, views
from posenc.lab.experiment import Size
from posenc.lab.text import corpus
from posenc.lab.trial.training import new_model


def arrays(**asked):
    return {
        name: np.asarray(values) for name, values in views.data("paths", {"encoding": "learned"} | asked).arrays.items()
    }


# The record -------------------------------------------------------------------------------------------------------------


def test_the_record_is_of_its_settings():
    """The settings and the arrays agree, and the file is small."""
    about, record = trained.about(), trained.record()
    assert trained.FILE.stat().st_size < 300_000
    assert about["settings"] == json.loads(json.dumps(trained.SETTINGS))
    assert tuple(about["steps"]) == trained.STEPS
    assert about["settings"]["training"]["steps"] == trained.STEPS[-1]
    assert re.fullmatch("[0-9a-f]{64}", about["code"])
    assert re.fullmatch("[0-9a-f]{64}", about["text"]["sha256"])
    n, size = len(trained.STEPS), Size(**trained.SETTINGS["size"])
    assert record["learned"].shape == (n, trained.LENGTH, size.d_model)
    for encoding in trained.ENCODINGS:
        attention = record[f"{encoding}.attention"]
        assert attention.shape == (n, size.n_layers, size.n_heads, trained.LENGTH)
        assert ((attention >= 0) & (attention <= 1)).all()
        assert record[f"{encoding}.first"].shape == attention.shape[:3]
        assert np.isnan(record[f"{encoding}.bits"]).tolist() == [True] + [False] * (n - 1)
        assert record[f"{encoding}.bits"][-1] < record[f"{encoding}.bits"][1]


def test_step_0_is_what_the_seed_gives():
    learned = new_model(trained.trial("learned")).encoding(0)
    np.testing.assert_array_equal(trained.record()["learned"][0], learned.table.detach().numpy())
    ours, theirs = trained.floater(0).state_dict(), new_model(trained.trial("floater")).encoding(0).state_dict()
    assert ours.keys() == theirs.keys()
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name], rtol=0, atol=0)


@pytest.mark.acceptance
def test_the_first_snapshots_come_out_again():
    text = corpus.read_corpus(None, trained.LENGTH + 1)
    if text.sha256 != trained.about()["text"]["sha256"]:
        pytest.skip("another Python's standard library: the record was made on other text")
    before, after = itertools.islice(trained.snapshots("learned", text), 2)
    for n, again in enumerate((before, after)):
        np.testing.assert_allclose(again[""], trained.record()["learned"][n], atol=1e-4)
        for name in ("attention", "first", "bits"):
            np.testing.assert_allclose(again[name], trained.record()[f"learned.{name}"][n], atol=1e-3)
    assert not np.array_equal(before[""], after[""])


# The numbers ------------------------------------------------------------------------------------------------------------


def runge_kutta(snapshot, until, every=16):
    """FLOATER's first path by the classical Runge-Kutta method with fixed steps, without posenc."""
    one = {
        name: trained.record()[f"floater.{name}"][snapshot].astype(float)
        for name in ("start", "inner.weight", "inner.bias", "outer.weight", "outer.bias")
    }

    def velocity(time, x):
        hidden = np.tanh(one["inner.weight"] @ np.append(x, time) + one["inner.bias"])
        return one["outer.weight"] @ np.append(hidden, time) + one["outer.bias"]

    x, path, h = one["start"][0], [one["start"][0]], 0.01 / every
    for step in range((until - 1) * every):
        t = step * h
        a = velocity(t, x)
        b = velocity(t + h / 2, x + h / 2 * a)
        c = velocity(t + h / 2, x + h / 2 * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + velocity(t + h, x + h * c))
        if (step + 1) % every == 0:
            path.append(x)
    return np.array(path)


@pytest.mark.parametrize("snapshot", [0, 10])
def test_floater_path_solves_its_equation(snapshot):
    path = runge_kutta(snapshot, 2 * trained.LENGTH)
    data = arrays(encoding="floater")
    np.testing.assert_allclose(data["moved"][snapshot], np.linalg.norm(np.diff(path, axis=0), axis=1), atol=1e-4)
    rows = path[: trained.LENGTH]
    unit = rows / np.linalg.norm(rows, axis=1)[:, None]
    np.testing.assert_allclose(data["similarity"][snapshot], unit @ unit.T, atol=1e-4)


def test_the_plane_is_that_of_the_largest_differences():
    """Of the last snapshot, by the eigenvectors of its covariance; up to their signs."""
    data, table = arrays(), trained.record()["learned"].astype(float)
    centred = table - table.mean(1, keepdims=True)
    share, vectors = np.linalg.eigh(centred[-1].T @ centred[-1])
    wanted = centred @ vectors[:, [-1, -2]]
    np.testing.assert_allclose(np.abs(data["paths"]), np.abs(wanted), atol=1e-6)
    assert data["shown"][-1] == pytest.approx(share[-2:].sum() / share.sum())


def test_likeness_of_a_sinusoidal_table_is_its_sum_of_cosines():
    similarity = arrays(encoding="sinusoidal", length=20, d_model=8, base=100.0)["similarity"][0]
    wanted = [[sum(math.cos((p - q) * 100 ** (-2 * i / 8)) for i in range(4)) / 4 for q in range(20)] for p in range(20)]
    np.testing.assert_allclose(similarity, wanted, atol=1e-12)


def test_what_the_page_says_of_training_is_in_the_record():
    """Neighbouring rows become similar, distant ones dissimilar; one head attends to the previous token."""
    learned, floater = arrays(), arrays(encoding="floater")
    table = trained.record()["learned"].astype(float)
    unit = table / np.linalg.norm(table, axis=2, keepdims=True)
    cosine = np.einsum("npc,nqc->npq", unit, unit)
    near = [np.mean([one[p, p + 1] for p in range(31)]) for one in cosine]
    far = [np.mean([one[p, q] for p in range(32) for q in range(p + 16, 32)]) for one in cosine]
    np.testing.assert_allclose(learned["near"], near, atol=1e-9)
    np.testing.assert_allclose(learned["far"], far, atol=1e-9)
    assert [round(near[0], 2), round(near[-1], 2), round(far[0], 2), round(far[-1], 2)] == [0.02, 0.17, -0.02, -0.10]
    assert learned["shown"][-1] < 0.25
    previous = learned["attention"][..., 1].reshape(-1, 8)
    assert previous[-1, 3] == pytest.approx(0.99, abs=0.005)
    assert (previous[-1] > 0.5).sum() == 1
    assert previous[[0, 9], 3].tolist() == pytest.approx([0.11, 0.99], abs=0.005)
    assert learned["attention"][-1, 0, 1, 2] == pytest.approx(0.56, abs=0.005)
    assert max(learned["first"][-1].max(), floater["first"][-1].max()) < 0.06
    assert floater["attention"][-1, 0, :, 1].min() == pytest.approx(0.36, abs=0.005)
    assert floater["attention"][-1].max() == pytest.approx(0.40, abs=0.005)


def test_even_attention_is_one_over_what_is_visible():
    data = arrays()
    assert data["even"][31] == pytest.approx(1 / 32)
    assert data["even"][1] == pytest.approx(np.mean([1 / (i + 1) for i in range(1, 32)]))
    assert data["even_first"][0] == pytest.approx(np.mean([1 / (i + 1) for i in range(8, 32)]))


def test_the_velocity_is_the_slope_of_the_path_and_turns_it():
    """By differences of the path itself, a hundredth of a position to either side."""
    found = arrays(encoding="floater")
    places, aside = torch.arange(1, 64, dtype=torch.float64), 0.01
    for n in (0, len(trained.STEPS) - 1):
        with torch.no_grad():
            after, before = (trained.floater(n).path(places + by, torch.float64)[:, 0] for by in (aside, -aside))
        slope = ((after - before) / (2 * aside)).norm(dim=-1).numpy()
        np.testing.assert_allclose(found["speed"][n, 1:], slope, rtol=1e-4)
        steps = np.diff(found["paths"][n], axis=0)
        np.testing.assert_allclose(steps, (found["velocity"][n, 1:] + found["velocity"][n, :-1]) / 2, atol=1e-3)
    assert set(arrays()) == set(found) - {"velocity", "speed"}


def test_a_point_flows_along_the_path(opened):
    page = opened("paths?encoding=floater&p=12", still=True)
    speed = views.data("paths", {"encoding": "floater"}).arrays["speed"][-1, 12]
    assert float(page.get_attribute("[data-role=velocity]", "data-value")) == pytest.approx(float(speed), rel=1e-12)
    page.click("[data-role=flow]")
    at = page.locator("[data-role=flowing]").evaluate("one => [one.cx.baseVal.value, one.cy.baseVal.value]")
    end = page.locator(".plane circle:not([class])").last.evaluate("one => [one.cx.baseVal.value, one.cy.baseVal.value]")
    assert at == pytest.approx(end, abs=0.01)
    page.select_option("[data-name=encoding] select", index=1)
    expect(page.locator("[data-role=flow]")).to_be_hidden()


# The page ---------------------------------------------------------------------------------------------------------------


def role(page, name: str) -> float:
    return float(page.get_attribute(f"[data-role={name}]", "data-value"))


@pytest.mark.acceptance
def test_the_scrubber_moves_through_training(opened):
    page = opened("paths?encoding=learned&snapshot=3&p=4&q=9")
    similarity = arrays()["similarity"]
    assert role(page, "value") == pytest.approx(similarity[3, 4, 9])
    page.focus("[data-role=scrub]")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("snapshot=4"))
    assert role(page, "value") == pytest.approx(similarity[4, 4, 9])
    expect(page.locator("[data-role=when] b")).to_have_attribute("data-value", str(trained.STEPS[4]))
    page.click("[data-role=step]")
    page.wait_for_url(re.compile("snapshot=5"))
    page.locator("[data-role=speed]").select_option("20/s")
    page.click("[data-role=play]")
    expect(page.locator("[data-role=when] b")).to_have_attribute("data-value", "2000")
    assert role(page, "share") == pytest.approx(arrays()["shown"][10])


@pytest.mark.acceptance
def test_path_and_map_share_a_cursor(opened):
    page = opened("paths?encoding=learned&p=4&q=9&snapshot=6")
    box = page.locator("canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 20.5 / 32, box["y"] + box["height"] * 14.5 / 32)
    page.wait_for_url(re.compile("p=14&q=20"))
    assert page.text_content(".plane text.here") == "14"
    page.focus(".plane")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("p=15&q=20"))
    assert role(page, "value") == pytest.approx(arrays()["similarity"][6, 15, 20])
    spot = page.locator(".plane circle").nth(25).bounding_box()
    page.mouse.click(spot["x"] + 4, spot["y"] + 4)
    page.wait_for_url(re.compile("p=25&q=20"))
    assert f"similarity[6, 25, 20]  # {arrays()['similarity'][6, 25, 20]}"[:36] in page.inner_text(".code code")


@pytest.mark.acceptance
def test_floater_says_what_the_integral_adds(opened):
    page = opened("paths?encoding=floater&snapshot=10&p=7", lang="zh")
    assert role(page, "moved") == pytest.approx(arrays(encoding="floater")["moved"][10, 7])
    text = page.inner_text(".formula-card")
    assert "0.07" in text
    assert "0.08" in text


@pytest.mark.acceptance
def test_heads_are_counted_after_a_guess(opened):
    page = opened("paths?encoding=learned")
    assert not page.is_visible("[data-role=heads]")
    page.click("button.choice:has-text('one')")
    assert (role(page, "previous"), role(page, "first")) == (1, 0)
    page.wait_for_url(re.compile("seen=true"))
    values = page.eval_on_selector_all(".heads .legend b", "all => all.map(one => +one.dataset.value)")
    assert values[:8] == pytest.approx(arrays()["attention"][-1, :, :, 1].flatten().tolist())


def test_a_link_restores_a_sinusoidal_path(opened):
    page = opened("paths?encoding=sinusoidal&length=40&d_model=8&base=100&p=3&q=30")
    assert role(page, "value") == pytest.approx(sum(math.cos(27 * 100 ** (-2 * i / 8)) for i in range(4)) / 4)
    assert page.locator(".plane circle").count() == 42
    assert role(page, "chord") == role(page, "value")
    boxes = [one.bounding_box() for one in page.locator(".plane text").all()]
    assert len(boxes) == 5  # both ends, both chosen positions, and their cosine
    for n, one in enumerate(boxes):
        for other in boxes[:n]:
            beside = one["x"] >= other["x"] + other["width"] or other["x"] >= one["x"] + one["width"]
            assert beside or one["y"] >= other["y"] + other["height"] or other["y"] >= one["y"] + one["height"]
    assert not page.is_visible(".training")
