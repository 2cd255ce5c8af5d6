"""Stretch a trained model: the numbers by a forward pass of this file's own, the page, and the exported file."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import torch
from playwright.sync_api import expect

import posenc
from posenc.explorer import stretch, train_stretch, views
from posenc.explorer.export import encoded, exported
from sampling import first_only

ROOT = Path(__file__).parents[2]
FILE = ROOT / "src/posenc/explorer/stretch.npz"
TRIALS = ROOT / "results/study/trials"
EN, ZH = stretch.PROMPTS["en"], stretch.PROMPTS["zh"]
HEADS, D_HEAD, TRAINED = 4, 32, 128


# The models again, from their weights alone -----------------------------------------------------------------------------


@cache
def weights(encoding: str) -> dict[str, np.ndarray]:
    with np.load(FILE) as found:
        return {
            name.split(".", 1)[1]: found[name].astype(np.float64) for name in found.files if name.startswith(f"{encoding}.")
        }


def normed(x: np.ndarray, gain: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + np.finfo(np.float64).eps) * gain


def frequencies(factor: float) -> tuple[np.ndarray, float]:
    """RoPE's, or by YaRN's paper, sections 3.2 to 3.4, for texts `factor` times as long; and the scale of cos and sin."""
    omega = np.array([10000.0 ** (-2 * n / D_HEAD) for n in range(D_HEAD // 2)])
    if factor == 1:
        return omega, 1.0
    pair = [D_HEAD * math.log(TRAINED / (turns * 2 * math.pi)) / (2 * math.log(10000)) for turns in (32, 1)]
    low, high = max(math.floor(pair[0]), 0), min(math.ceil(pair[1]), D_HEAD - 1)
    gamma = np.clip((np.arange(D_HEAD // 2) - low) / (high - low), 0, 1)
    return omega * (1 - gamma) + omega / factor * gamma, 0.1 * math.log(factor) + 1


def turned(x: np.ndarray, omega: np.ndarray, times: float) -> np.ndarray:
    """Neighbouring channels are a pair: (a, b) at position p is turned by p·ω."""
    angle = np.arange(x.shape[-2])[:, None] * omega
    a, b, out = x[..., 0::2], x[..., 1::2], np.empty_like(x)
    out[..., 0::2] = times * (a * np.cos(angle) - b * np.sin(angle))
    out[..., 1::2] = times * (a * np.sin(angle) + b * np.cos(angle))
    return out


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + torch.erf(torch.from_numpy(x / math.sqrt(2))).numpy())


def logits(model: str, text: bytes, factor: float) -> np.ndarray:
    w = weights("alibi" if model == "alibi" else "rope")
    t = len(text)
    distance = np.arange(t)[:, None] - np.arange(t)
    x = w["embedding.weight"][list(text)]
    for n in range(4):
        own = {name.removeprefix(f"layers.{n}."): one for name, one in w.items() if name.startswith(f"layers.{n}.")}
        qkv = normed(x, own["before_attention.gain"]) @ own["qkv.weight"].T
        q, k, v = (part.reshape(t, HEADS, D_HEAD).swapaxes(0, 1) for part in np.split(qkv, 3, axis=-1))
        if model != "alibi":
            turn = frequencies(factor if model == "yarn" else 1)
            q, k = turned(q, *turn), turned(k, *turn)
        score = q @ k.swapaxes(1, 2) / math.sqrt(D_HEAD)
        if model == "alibi":
            score -= np.array([2.0 ** (-2 * (h + 1)) for h in range(HEADS)])[:, None, None] * distance
        score = np.where(distance >= 0, score, -np.inf)
        share = np.exp(score - score.max(-1, keepdims=True))
        seen = (share / share.sum(-1, keepdims=True)) @ v
        x = x + seen.swapaxes(0, 1).reshape(t, -1) @ own["out.weight"].T
        x = x + gelu(normed(x, own["before_mlp.gain"]) @ own["up.weight"].T) @ own["down.weight"].T
    return normed(x, w["last_norm.gain"]) @ w["head.weight"].T


def own_numbers(model: str, prompt: bytes, written: bytes, factor: float) -> tuple[np.ndarray, bytes]:
    """Bits of the prompt's bytes; and after every beginning of what is written, the most probable byte."""
    said = logits(model, prompt + written, factor)
    top = said.max(-1)
    log = said - top[:, None] - np.log(np.exp(said - top[:, None]).sum(-1, keepdims=True))
    bits = [-log[n, byte] / math.log(2) for n, byte in enumerate(prompt[1:])]
    return np.array(bits), bytes(said[len(prompt) - 1 : -1].argmax(-1).tolist())


@pytest.mark.parametrize(("text", "length"), first_only([(ZH, 128), (EN, 512)]))
def test_loss_and_text_are_those_of_the_shipped_weights(text, length):
    found = views.data("stretch", {"prompt": text, "length": length})
    prompt = stretch.prompt(text, length - 64)
    assert (len(prompt), prompt[-20:]) == (length - 64, text.encode()[-20:])
    for m, model in enumerate(("alibi", "rope", "yarn")):
        written = bytes(found.arrays["written"][m].tolist())
        bits, best = own_numbers(model, prompt, written, length / 128)
        np.testing.assert_allclose(found.arrays["bits"][m], bits, rtol=0, atol=1e-9)
        means = [bits[n : n + 32].mean() for n in range(len(bits) - 31)]
        np.testing.assert_allclose(found.arrays["loss"][m], means, rtol=0, atol=1e-9)
        assert best == written, model


def test_your_own_words_are_continued_byte_by_byte():
    """Nothing of them is in the record. They follow the tale's sentences, cut to the length."""
    found = views.data("stretch", {"prompt": "A cat 🐈 ", "length": 128})
    prompt = stretch.prompt("A cat 🐈 ", 64)
    assert prompt.endswith("windy. A cat 🐈 ".encode())
    assert found.facts["prompt"].endswith("A cat 🐈 ")
    for m, model in enumerate(("alibi", "rope")):
        written = bytes(found.arrays["written"][m].tolist())
        assert own_numbers(model, prompt, written, 1)[1] == written
    np.testing.assert_array_equal(found.arrays["written"][1], found.arrays["written"][2])  # factor 1 changes nothing
    assert "银杏城" in stretch.readable(stretch.prompt("我喜欢猫和狗", 192))


@pytest.mark.parametrize(("text", "length"), first_only([("A cat 🐈 ", 256), ("鲸鱼在海里唱歌。" * 4, 128)]))
def test_what_the_length_adds_is_told_apart_from_how_unusual_the_words_are(text, length):
    """The bits of the words alone, and the same model's at the trained length, each from the weights."""
    found = views.data("stretch", {"prompt": text, "length": length})
    count = min(len(text.encode()), 63)
    for m, model in enumerate(("alibi", "rope", "yarn")):
        long, short = (
            own_numbers(model, stretch.prompt(text, total - 64), b"", total / 128)[0][-count:].mean()
            for total in (length, 128)
        )
        assert found.arrays["words"][m] == pytest.approx(long, abs=1e-9)
        assert found.arrays["added"][m] == pytest.approx(long - short, abs=1e-9)
    if length == 128:
        assert found.arrays["added"].tolist() == pytest.approx([0, 0, 0], abs=1e-12)


def test_length_adds_nothing_to_alibi_and_much_to_rope():
    added = views.data("stretch", {"prompt": EN, "length": 512}).arrays["added"]
    assert abs(added[0]) < 0.05
    assert added[1] > 5 > 1 > added[2]
    at_once = views.data("stretch", {"prompt": "", "length": 128}).arrays["added"]
    assert at_once.tolist() == pytest.approx([0, 0, 0], abs=1e-12)


@pytest.mark.parametrize("given", [{"length": 64}, {"length": 1088}, {"length": 130}, {"prompt": "a" * 201}])
def test_other_lengths_and_longer_words_are_refused(given):
    with pytest.raises(views.Refused, match=next(iter(given))):
        views.data("stretch", given)


def test_characters_cut_at_the_ends_are_left_out():
    text = "银杏 a".encode()
    assert stretch.readable(text[1:]) == "杏 a"
    assert stretch.readable(text[:-3]) == "银"
    assert stretch.readable(b"a\xffb") == "a�b"


SAID = {"alibi": (0.82, 0.82, 0.82, 0.82), "rope": (0.82, 4.86, 8.03, 8.57), "yarn": (0.82, 0.89, 1.14, 1.58)}


def scored(rows: list[dict[str, Any]], change: str | None) -> list[float]:
    """Mean bits a byte over held-out texts at 1, 2, 4 and 8 times the trained length; at 1 nothing is changed."""
    found = []
    for times in (1, 2, 4, 8):
        wanted = ("bits", "same targets", times * TRAINED, (change if times > 1 else None) or "")
        values = [row["value"] for row in rows if (row["kind"], row["mode"], row["length"], row["change"] or "") == wanted]
        found.append(float(np.mean(values)))
    return found


def test_the_models_are_those_of_the_study():
    """Their names are those of the study's records, and their loss in training is what these say."""
    with np.load(FILE) as found:
        about = json.loads(str(found["about"]))
    for encoding, key in about["keys"].items():
        table = pyarrow.parquet.read_table(TRIALS / f"language_model-{encoding}-s0-{key[:16]}.parquet")
        record = json.loads(table.schema.metadata[b"posenc"])
        assert record["trial"]["training"] == about["training"]
        assert record["trial"]["size"] == about["size"]
        rows = table.to_pylist()
        for change, name in ((None, encoding), ("yarn", "yarn")):
            if not (name == "yarn" and encoding == "alibi"):
                assert scored(rows, change) == pytest.approx(SAID[name], abs=0.005)
        curve = [row["value"] for row in rows if row["kind"] == "curve"]
        ours = about["training_loss"][encoding]
        assert np.mean(ours) == pytest.approx(np.mean(curve), abs=0.02)
        assert ours[-1] == pytest.approx(curve[-1], abs=0.02)


@pytest.mark.acceptance
@pytest.mark.parametrize("times", [1, 4])
def test_the_shipped_weights_score_as_the_records_say(times):
    """On the study's 128 held-out texts, the last 64 bytes of each."""
    batch = train_stretch.trial("rope").task.scored(times * TRAINED, train_stretch.text())
    for name, wanted in SAID.items():
        model = stretch.load("alibi" if name == "alibi" else "rope")
        if name == "yarn":
            sizes = {"d_head": D_HEAD, "factor": float(times), "trained_length": TRAINED}
            posenc.replace_encoding(model, posenc.create("yarn", **sizes, layout="interleaved"))
        bits = []
        for tokens, targets in zip(batch.tokens.split(8), batch.targets.split(8), strict=True):
            with torch.no_grad():
                said, _ = model.float()(tokens, posenc.Positions.arange(1, times * TRAINED))
            chances = said[:, -64:].log_softmax(-1).gather(-1, targets[:, -64:, None])
            bits.append(-float(chances.mean()) / math.log(2))
        assert np.mean(bits) == pytest.approx(wanted[(1, 2, 4, 8).index(times)], abs=0.006), name


# The page ---------------------------------------------------------------------------------------------------------------


def written_on(page) -> list[str]:
    return page.locator(".written mark").all_text_contents()


@pytest.mark.parametrize(("lang", "said"), first_only([("zh", "有多陌生"), ("en", "how unusual the words are")]))
def test_the_page_says_what_the_number_of_own_words_measures(opened, lang, said):
    page = opened(f"stretch?prompt={EN}&length=512", lang=lang, still=True)
    found = views.data("stretch", {"prompt": EN, "length": 512}).arrays
    page.wait_for_selector(".stage:not([aria-busy])", state="attached")
    for name in ("words", "added"):
        shown = page.locator(f"[data-role={name}]").evaluate_all("all => all.map((one) => Number(one.dataset.value))")
        assert shown == pytest.approx(found[name].tolist(), abs=1e-9)
    expect(page.locator(".of-words")).to_contain_text(said)
    assert "+" in page.locator("[data-role=added]").nth(1).inner_text()


@pytest.mark.parametrize(("lang", "width", "prompt"), first_only([("en", 1100, EN), ("zh", 390, ZH)]))
def test_the_slider_changes_what_is_written_and_the_curves(opened, lang, width, prompt):
    page = opened("stretch?length=128", lang=lang, width=width, still=True)
    expect(page.locator("[data-name=prompt] input")).to_have_value(prompt)
    page.wait_for_selector(".stage:not([aria-busy])", state="attached")
    lines, html = page.locator(".lost path.line"), "all => all.map((one) => one.outerHTML)"
    before, curves = written_on(page), lines.evaluate_all(html)
    assert before[1] == before[2], "at the trained length YaRN changes nothing"
    page.locator("[data-role=stretch]").press("ArrowRight")
    expect(page.locator("[data-role=length]")).to_have_attribute("data-value", "256")
    page.locator(".predict button").nth(1).click()
    expect(page.locator("[data-role=length]")).to_have_attribute("data-value", "1024")
    page.wait_for_url(re.compile("length=1024"))
    page.wait_for_selector(".stage:not([aria-busy])", state="attached")
    found = views.data("stretch", {"prompt": prompt, "length": 1024})
    assert written_on(page) == found.facts["texts"]
    assert written_on(page)[1] != before[1]
    for m in range(3):
        shown = float(page.locator(".lost .legend [data-value]").nth(m).get_attribute("data-value"))
        assert shown == pytest.approx(float(found.arrays["loss"][m][-1]), abs=1e-9)
    assert all(one != other for one, other in zip(curves, lines.evaluate_all(html), strict=True))


def test_the_file_writes_after_your_own_words_without_a_server(browser, tmp_path, monkeypatch):
    """Of this view alone, in a worker; a newer length ends what is being written, and texts appear while they are."""
    monkeypatch.setattr(views, "NAMES", ("stretch",))
    file = tmp_path / "stretch.html"
    file.write_bytes(encoded(exported()))
    page = browser.new_page(offline=True, locale="en-GB")
    said, workers = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("worker", lambda one: workers.append(one))
    page.goto(f"{file.as_uri()}#/stretch?prompt=A+cat")
    page.wait_for_selector("main[data-ready] .stage[aria-busy] .written mark", state="attached")  # before the end
    page.locator("[data-role=stretch]").press("ArrowRight")
    page.locator("[data-role=stretch]").press("ArrowLeft")
    page.wait_for_selector(".stage:not([aria-busy])", state="attached")
    expect(page.locator("[data-role=length]")).to_have_attribute("data-value", "512")
    assert written_on(page) == views.data("stretch", {"prompt": "A cat", "length": 512}).facts["texts"]
    assert (len(workers), said) == (1, [])
    page.close()
