"""The order of words: outputs and weights agree with attention computed here; words can be moved."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect
from widths import fits

from posenc.catalogue.lookup import create
from posenc.explorer import views
from posenc.explorer.parameters import Refused
from posenc.pictures import measures
from posenc.pictures.measures.layers import Layers, seeded
from posenc.pictures.measures.order import word_vectors
from sampling import only

ROUNDING = 1e-13


def arrays(**asked):
    return {name: np.asarray(values) for name, values in views.data("order", asked).arrays.items()}


def number(page, role: str) -> float:
    return float(page.get_attribute(f"[data-role={role}]", "data-value"))


def numbers(page, selector: str) -> list[float]:
    return page.evaluate(f"[...document.querySelectorAll('{selector}')].map(one => Number(one.dataset.value))")


def read(page) -> str:
    """The words of the lower row, from left to right."""
    chips = page.locator(".moving [data-word]").all()
    return "".join(chip.locator("b").inner_text() for chip in sorted(chips, key=lambda chip: chip.bounding_box()["x"]))


def reads(page, words: str) -> None:
    """Waits until the lower row has these words: they move to their places."""
    for _ in range(100):
        if read(page) == words:
            return
        page.wait_for_timeout(50)
    assert read(page) == words


def written_out(x: np.ndarray, weights, causal: bool, slopes=(0, 0, 0, 0)) -> tuple[np.ndarray, np.ndarray]:
    """Four heads of attention on 16 channels with a bias of −slope·|i − j|: outputs and weights."""
    query, key, value, out = (np.asarray(one) for one in weights)
    t = len(x)
    heads, probs = [], []
    for h, slope in enumerate(slopes):
        own = slice(4 * h, 4 * h + 4)
        q, k, v = x @ query.T[:, own], x @ key.T[:, own], x @ value.T[:, own]
        logits = q @ k.T / math.sqrt(4) - slope * np.abs(np.arange(t)[:, None] - np.arange(t))
        if causal:
            logits[np.triu_indices(t, 1)] = -np.inf
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
        probs.append(e / e.sum(axis=1, keepdims=True))
        heads.append(probs[-1] @ v)
    return np.concatenate(heads, axis=1) @ out.T, np.stack(probs)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("encoding", ["nope", "sinusoidal", "alibi"])
def test_outputs_and_weights_are_attention_written_out(encoding, causal):
    found = arrays(encoding=encoding, causal=causal)
    weights = Layers.draw(16, 4, None, 1, seeded(1)).weights[0]
    x = np.asarray(word_vectors(("我", "爱", "你"), 16))
    added = np.zeros((3, 16))
    if encoding == "sinusoidal":
        added = np.array(
            [[(math.sin, math.cos)[c % 2](p * 1e4 ** (-2 * (c // 2) / 16)) for c in range(16)] for p in range(3)]
        )
    slopes = (1 / 4, 1 / 16, 1 / 64, 1 / 256) if encoding == "alibi" else (0, 0, 0, 0)
    before, seen = written_out(x + added, weights, causal, slopes)
    np.testing.assert_allclose(found["before"], before, atol=ROUNDING)
    np.testing.assert_allclose(found["weights_before"], seen, atol=ROUNDING)
    assert found["orders"].tolist() == [list(one) for one in itertools.permutations(range(3))]
    for r, order in enumerate(found["orders"]):
        after, seen = written_out(x[order] + added, weights, causal, slopes)
        np.testing.assert_allclose(found["after"][r], after, atol=ROUNDING)
        np.testing.assert_allclose(found["weights_after"][r], seen, atol=ROUNDING)
        assert found["distance"][r] == pytest.approx(np.abs(after - before[order]).max(), abs=ROUNDING)


def test_equivariant_without_positions_and_not_with_them():
    for sentence in ("我爱你", "猫 追 老鼠", "the cat chases the mouse", "屡战屡败"):
        assert arrays(sentence=sentence)["distance"].max() < ROUNDING
    for encoding in ("sinusoidal", "learned", "shaw", "transformer_xl", "t5", "rope"):
        for causal, layers in itertools.product((False, True), (1, 2)):
            found = arrays(encoding=encoding, causal=causal, layers=layers)
            assert found["distance"][0] < ROUNDING
            assert found["distance"][1:].min() > 0.1
            assert found["together"].max() < ROUNDING


def test_numbers_are_those_of_the_measures():
    for pair in measures.SENTENCE_PAIRS:
        found = arrays(sentence=" ".join(pair.before), encoding="rope", causal=True)
        mirrored = found["orders"].tolist().index([2, 1, 0])
        rope = create("rope", d_model=16, n_heads=4)
        assert found["distance"][mirrored] == measures.sentence_sensitivity(rope, pair, d_model=16, n_heads=4, causal=True)
        assert tuple(found["rnn"][mirrored]) == measures.rnn_sensitivity(pair)


def test_a_mask_alone_breaks_it_and_one_layer_leaves_the_last_word_blind():
    one, two = arrays(causal=True), arrays(causal=True, layers=2)
    prefix = one["orders"].tolist().index([1, 0, 2])
    assert one["distance"][1:].min() > 0.1
    assert np.abs(one["after"][prefix][2] - one["before"][2]).max() < ROUNDING
    assert np.abs(two["after"][prefix][2] - two["before"][2]).max() > 0.01


def test_distances_alone_cannot_tell_a_mirror_image():
    found = arrays(encoding="alibi")
    assert found["distance"][found["orders"].tolist().index([2, 1, 0])] < ROUNDING
    assert sorted(found["distance"])[2] > 0.1


def test_words_that_repeat_count_and_are_not_told_apart():
    found = arrays(sentence="屡战屡败", encoding="rope")
    assert len(found["orders"]) == math.factorial(4) // 2
    assert all(list(order).index(0) < list(order).index(2) for order in found["orders"])
    words = word_vectors(("屡", "战", "屡", "败"), 16)
    assert torch.equal(words[0], words[2])


def test_rnn_by_hand():
    random = seeded(0)
    w, u = (np.asarray(torch.randn(16, 16, generator=random, dtype=torch.float64)) / 4 for _ in range(2))
    states = []
    for sentence in ("我爱你", "你爱我"):
        state = np.zeros(16)
        for word in np.asarray(word_vectors(tuple(sentence), 16)):
            state = np.tanh(w @ word + u @ state)
        states.append(state)
    found = arrays()["rnn"][-1]
    assert found[0] == pytest.approx(np.abs(states[0] - states[1]).max(), abs=ROUNDING)
    assert found[0] > 0.1 > ROUNDING > found[1]


@pytest.mark.parametrize(
    "asked",
    [{"sentence": "我"}, {"sentence": " ".join(25 * "a")}, {"encoding": "xpos"}, {"layers": 3}, {"causal": "perhaps"}],
)
def test_what_is_unknown_is_refused(asked):
    with pytest.raises(Refused, match=next(iter(asked))):
        views.data("order", asked)


@pytest.mark.acceptance
def test_the_reader_guesses_then_sees_the_rows_move_with_the_words(opened):
    page = opened("order?sentence=我爱你")
    assert read(page) == "我爱你"
    assert page.locator("[data-role=distance]").count() == 0
    page.click(".choice >> nth=1")
    page.wait_for_url(re.compile("revealed=true"))
    reads(page, "你爱我")
    found = arrays()
    assert number(page, "distance") == found["distance"][-1] < ROUNDING
    assert number(page, "weights-apart") < ROUNDING
    assert "max | A(PX + p) − P·A(X + p) |" in page.inner_text(".formula")
    assert "A(PX + p)[2, " in page.inner_text(".formula")
    assert max(numbers(page, "[data-role=word-difference]")) == found["distance"][-1]
    assert (number(page, "rnn"), number(page, "pooled")) == tuple(found["rnn"][-1])
    np.testing.assert_array_equal(
        numbers(page, "[data-role=weights-after] td[data-value]"), found["weights_after"][-1][0].ravel()
    )
    page.check(".controls input[type=checkbox]")
    page.wait_for_url(re.compile("causal=true"))
    masked = arrays(causal=True)
    page.wait_for_selector(f"[data-role=distance][data-value='{masked['distance'][-1]}']")
    namespace: dict[str, object] = {}
    exec(page.inner_text(".code code"), namespace)
    np.testing.assert_allclose(namespace["distance"], masked["distance"], atol=1e-14)


@pytest.mark.acceptance
def test_dragging_and_keys_move_a_word_alike(opened):
    page = opened("order?sentence=我爱你&encoding=rope&order=0,1,2")
    found = arrays(encoding="rope")
    row = {tuple(order): r for r, order in enumerate(found["orders"])}
    first, last = (page.locator(f".moving [data-word='{word}']") for word in (0, 2))
    first.scroll_into_view_if_needed()
    (start, end) = (one.bounding_box() for one in (first, last))
    middle = page.locator(".moving [data-word='1']").bounding_box()
    page.mouse.move(start["x"] + 20, start["y"] + 20)
    page.mouse.down()
    page.mouse.move(middle["x"] + middle["width"] / 2, middle["y"] + 20, steps=3)
    page.wait_for_url(re.compile("order=1%2C0%2C2"))
    page.mouse.move(end["x"] + 30, end["y"] + 25, steps=6)
    page.mouse.up()
    page.wait_for_url(re.compile("order=1%2C2%2C0"))
    assert number(page, "distance") == found["distance"][row[1, 2, 0]]
    first.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile("order=1%2C0%2C2"))
    assert first.evaluate("one => one === document.activeElement")
    assert number(page, "distance") == found["distance"][row[1, 0, 2]]
    assert number(page, "last") == pytest.approx(np.abs(found["after"][row[1, 0, 2]][2] - found["before"][2]).max())
    assert "爱 我 你" in page.inner_text("[data-role=live]")
    reads(page, "爱我你")
    page.click("[data-role=reverse]")
    page.wait_for_url(re.compile("order=2%2C1%2C0"))
    assert number(page, "distance") == found["distance"][row[2, 1, 0]]


def test_an_encoding_whose_parameter_is_one_number_is_drawn():
    """The scale of this sinusoidal table is a tensor without axes."""
    found = arrays(encoding="scaled_sinusoidal")
    assert found["distance"][1:].min() > 0.01
    assert found["together"].max() < ROUNDING


@pytest.mark.acceptance
def test_one_layer_under_a_mask_is_blind_to_its_prefix(opened):
    page = opened("order?causal=true&word=2", lang="zh", width=390, dark=True)
    page.click("[data-role=prefix]")
    page.wait_for_url(re.compile("order=1%2C0%2C2"))
    assert number(page, "last") < ROUNDING < 0.1 < number(page, "distance")
    assert number(page, "of-word") == number(page, "last")
    fits(page)
    page.click("details.more summary")
    slider = page.locator("[data-name=layers] input[type=range]")
    slider.press("End")
    page.wait_for_url(re.compile("layers=2"))
    page.wait_for_selector(f"[data-role=distance][data-value='{arrays(causal=True, layers=2)['distance'][2]}']")
    assert number(page, "last") > 0.01


@pytest.mark.parametrize("lang", only(("en", "zh"), "en"))
def test_it_starts_as_written_and_every_button_shows_the_outputs(opened, lang):
    """Each button in the first state: the order that it names, with the outputs that the text below promises."""
    words = {"en": "I love you", "zh": "我 爱 你"}[lang].split()
    found = arrays(sentence=" ".join(words))
    for role, order in (("reverse", (2, 1, 0)), ("prefix", (1, 0, 2)), ("restore", (0, 1, 2))):
        page = opened("order", lang=lang, still=True)
        assert read(page) == "".join(words)
        expect(page.locator("[data-role=distance]")).to_have_count(0)
        page.click(f"[data-role={role}]")
        distance = found["distance"][found["orders"].tolist().index(list(order))]
        expect(page.locator("[data-role=distance]")).to_have_attribute("data-value", str(distance))
        expect(page.locator(".stage > .hint")).to_be_hidden()
        assert read(page) == "".join(words[i] for i in order)


@pytest.mark.parametrize("asked", ["order=2,1,0", "revealed=true"])
def test_an_old_address_draws_the_reversed_order_with_its_outputs(opened, asked):
    page = opened(f"order?sentence=我爱你&{asked}")
    assert read(page) == "你爱我"
    assert number(page, "distance") == arrays()["distance"][-1]


@pytest.mark.parametrize(("order", "stands"), [("2,3,0,1", "屡败屡战"), ("0,0,1,2", "屡战屡败"), ("x", "屡战屡败")])
def test_a_link_restores_any_order_and_what_is_none_is_as_written(opened, order, stands):
    page = opened(f"order?sentence=屡战屡败&encoding=alibi&order={order}")
    assert read(page) == stands
    assert "×2" in page.inner_html(".picture")


# Typed sentences --------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance
def test_a_page_opens_with_a_sentence_of_its_language_and_takes_a_typed_one(opened):
    page = opened("order")
    field = page.locator("[data-name=sentence] input")
    expect(field).to_have_value("I love you")
    expect(page.locator(".still b")).to_have_text(["I", "love", "you"])
    field.fill("the dog bit the man!")
    field.press("Enter")
    expect(page.locator(".still b")).to_have_text(["the", "dog", "bit", "the", "man"])
    found = arrays(sentence="the dog bit the man")
    assert len(found["orders"]) == math.factorial(5) // 2  # "the" twice
    expect(page.locator("[data-role=weights-before] td[data-value]")).to_have_count(25)
    np.testing.assert_array_equal(
        numbers(page, "[data-role=weights-before] td[data-value]"), found["weights_before"][0].ravel()
    )
    page.wait_for_url(re.compile(r"sentence=the\+dog\+bit\+the\+man"))
    page = opened("order", lang="zh", width=390)
    expect(page.locator(".still b")).to_have_text(["我", "爱", "你"])
    expect(page.locator(".rule")).to_contain_text("每个汉字算一个词")
