"""A link into the exported file draws the state that it names, computed or stored, or says that it is not there: no other.

What was drawn is read from the program that the page prints, which has every parameter; what it should be is computed here.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest
from live_page import FILE, live_page
from playwright.sync_api import Browser, Frame, Page, expect

from conftest import METHODS
from posenc.catalogue.lookup import BY_NAME
from posenc.explorer import views
from posenc.explorer.links import address, view_of_link
from posenc.learn.ledger import ROWS
from sampling import one_in

LANGUAGES = ("en", "zh")
SITE = Path(__file__).parents[2] / "docs" / "site"
COMPUTED = {name for name in views.NAMES if not views.exported(name)} | {"wavelengths", "attention"}
HELD = (
    "shift?p=25&k=7",
    "shift?pairs=16&p=100",
    "shift?p=100&k=-5",
    "shift?pairs=16",
    "order?sentence=我爱你&encoding=rope&causal=true",
    "order?sentence=我爱你&layers=2&causal=true",
    "order?sentence=I+love+you&encoding=alibi",
    "table?length=512",
    "table?length=10&d_model=8&p=2",
    "similarity?kind=rope&d=64&k=20",
    "wavelengths?base=500000",
    "precision?position=2049",
    "binary?clocks=8&p=709",
    "rotary_pair?word=3&m=9&n=4",
    "bias?method=shaw&k=4",
    "terms?shift=10&stage=3",
    "taylor?projection=identity",
    "attention?encoding=rope",
    "compare?first=rope&second=alibi",
    "layouts?weights=interleaved&convert_q=true",
    "paths?encoding=floater&p=7",
    "heads?encoding=alibi",
    "stretch?length=256",
    "extrapolation?factor=8",
    "what_breaks?bug=layout",
    "measured?sorted=bits1",
    "table?length=777&d_model=20&p=7",
    "table?length=9&d_model=7&layout=cos_sin&dtype=bfloat16&base=50",
    "similarity?kind=rope&d=100",
    "similarity?kind=random&d=6&reach=20",
    "wavelengths?base=12345",
    "binary?clocks=12",
    "rotary_pair?asking=1",
    "rotary_pair?sentence=a+quick+brown+fox&base=777&m=9&n=4",
    "bias?method=t5&n_buckets=16",
    "terms?shift=11",
    "terms?sentence=the+dog+bites+the+man&seed=5",
    "taylor?sentence=a+b+c",
    "order?sentence=the+dog+bites+the+man",
    "order?sentence=don't+say+%22no%22+%24HOME&encoding=t5",
    "attention?sentence=my+own+six+words+for+it&encoding=shaw&n_heads=2",
    "heads?sentence=the+small+cat+is+hidden+behind+the+red+car",
    "stretch?prompt=once+upon&length=128",
    "extrapolation?factor=3&trained=777&task=chains",
)
SAME = {  # a setting that has no effect there
    "paths?encoding=floater&length=40": "paths?encoding=floater"
}
MISSING = {  # with what the sentence must name
    "order?sentence=don't+say+%22no%22+%24HOME&encoding=kerple": ('don\'t say "no" $HOME', "KERPLE"),
    "attention?sentence=屡战屡败&encoding=cope&causal=true": ("屡战屡败", "CoPE"),
    "extrapolation?config=%7B%7D": ("{}",),
    "precision?position=4": ("4",),
    "bias?method=sandwich&n_heads=3": ("Sandwich", "3"),
    "wavelengths?config=%7B%7D&base=500": ("500",),
    "compare?first=t5&second=xpos": ("T5", "XPos"),
    "layouts?base=500": ("500",),
    "paths?length=40": ("40",),
    "measured?also=fope": ("FoPE",),
}
IMPOSSIBLE = {
    "shift?p=abc": "p = abc",
    f"terms?sentence={'+'.join('a' * 101)}": "200",
    "shift?p=2000000": "p = 2000000",
    "shift?shift=3": "shift = 3",
    "table?lenght=30": "lenght = 30",
    "table?dtype=float8": "dtype = float8",
    "order?causal=yes": "causal = yes",
    "paths?encoding=rope": "encoding = rope",
    "what_breaks?bug=none": "bug = none",
}
LINKS = (*HELD, *SAME, *MISSING, *IMPOSSIBLE)
EACH = [(link, language) for link in LINKS for language in LANGUAGES]


@pytest.fixture(scope="module")
def page(browser, file) -> Iterator[Any]:
    """The exported file, in one browser that is offline."""
    context = browser.new_context(viewport={"width": 1100, "height": 900}, offline=True)
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.goto(f"{file.as_uri()}#/?lang=en")
    page.wait_for_selector("main[data-ready]")
    yield page
    context.close()


def go(page: Any, link: str, language: str) -> str:
    """Opens a link in a language. Returns what follows # then."""
    wanted = f"/{link}{'&' if '?' in link else '?'}lang={language}"
    page.goto(f"{page.url.split('#')[0]}#/?lang={language}")
    page.wait_for_selector("main[data-ready]:has(.view-story)")
    page.evaluate("(to) => (location.hash = to)", wanted)
    settled(page, link.split("?")[0])
    return wanted


def settled(page: Any, view: str) -> None:
    page.wait_for_selector(f"main[data-ready] .view-{view}:not([aria-busy])", state="attached")


def here(page: Any) -> str:
    return unquote_plus(page.url.split("#")[1])


@functools.cache
def program(link: str, language: str) -> str:
    """What Python prints for the state that a link names, where a page of this language opens with the rest."""
    view, asked = view_of_link(link)
    english = {name: one["in_english"] for name, one in views.schemas()[view].items() if "in_english" in one}
    return views.data(view, {**(english if language == "en" else {}), **asked}).python


def draws(page: Any, link: str, language: str) -> None:
    """The page draws this state, which its language opens with where the link does not say."""
    settled(page, link.split("?")[0])
    expect(page.locator(".code code")).to_contain_text(program(link, language).strip(), use_inner_text=False)
    expect(page.locator(".stage")).to_be_visible()
    expect(page.locator("[data-role=missing]")).to_have_count(0)


def draws_nothing(page: Any) -> None:
    for part in (".stage", ".code", ".formula-card"):
        expect(page.locator(part)).to_be_hidden() if page.locator(part).count() else None
    expect(page.locator("[data-role=missing]")).to_have_count(1)


@pytest.mark.parametrize(("link", "language"), one_in(11, EACH))
def test_a_link_draws_what_it_names_or_the_page_says_why_not(page, link, language):
    wanted = go(page, link, language)
    if link in HELD or link in SAME:
        draws(page, SAME.get(link, link), language)
    else:
        draws_nothing(page)
        says(page, link, language)
    assert here(page) == unquote_plus(wanted)
    assert page.locator(".posenc").get_attribute("lang") == {"en": "en", "zh": "zh-CN"}[language]


# Through every door: the file, the page of the site that has the file in a frame, and the server


DOORS = ("file", "site", "server")
REFUSED = dict.fromkeys([link for link in MISSING if "config=" in link], "model_type: missing")  # by Python, too
SHARES = [
    pytest.param(door, share, marks=() if DOORS[share] == door else pytest.mark.acceptance)
    for door, share in itertools.product(DOORS, range(len(DOORS)))
]


def opened_page(browser: Browser, folder: Path, file: Path, server: str, door: str) -> tuple[Page, Frame]:
    """One page of a door, and the frame in it that shows the explorer."""
    page = browser.new_page(viewport={"width": 1100, "height": 900}, locale="en-GB")
    page.set_default_timeout(30_000)
    if door == "site":  # with what the page of the site has: its frame, and the script that gives it the address
        (frame,) = re.findall("<iframe.*</iframe>", live_page("en"))
        frame = frame.replace(FILE, "explorer.html").replace(">", ' style="width: 1080px; height: 860px">', 1)
        (folder / "live.html").write_text(f'<html lang="en">{frame}<script src="explorer.js"></script>')
        shutil.copyfile(SITE / "theme" / "explorer.js", folder / "explorer.js")
        shutil.copyfile(file, folder / "explorer.html")
        page.goto((folder / "live.html").as_uri())
        return page, page.frames[1]
    page.goto(f"{server}/" if door == "server" else file.as_uri())
    return page, page.main_frame


@pytest.mark.parametrize(("door", "share"), SHARES)
def test_every_link_draws_its_state_through_every_door(browser, tmp_path, file, server, door, share):
    page, shown = opened_page(browser, tmp_path, file, server, door)
    shown.wait_for_selector("main[data-ready]")
    for link in LINKS[share :: len(DOORS)]:
        page.evaluate("(to) => void (location.hash = to)", f"/{link}")
        settled(shown, link.split("?")[0])
        if link in IMPOSSIBLE:
            expect(shown.locator("[data-role=missing-asked]")).to_contain_text(IMPOSSIBLE[link])
            draws_nothing(shown)
        elif link in MISSING and door != "server":
            expect(shown.locator("[data-role=missing-asked]")).to_contain_text(MISSING[link][0])
            draws_nothing(shown)
        elif link in REFUSED:
            expect(shown.locator(".trouble:visible")).to_contain_text(REFUSED[link])
        else:
            draws(shown, SAME.get(link, link), "en")
    page.close()


def says(page: Any, link: str, language: str) -> None:
    said = page.inner_text("[data-role=missing-asked]")
    command = page.locator("[data-role=missing-command]")
    if link in IMPOSSIBLE:
        assert IMPOSSIBLE[link] in said
        assert {"en": "cannot show", "zh": "无法显示"}[language] in said
        assert command.count() == 0
    else:
        assert all(one in said for one in MISSING[link]), said
        assert {"en": "This file does not hold", "zh": "此文件不含"}[language] in said
        posenc, explore, shown = shlex.split(command.inner_text())
        assert (posenc, explore) == ("posenc", "explore")
        (view, asked), (named, also) = view_of_link(link), view_of_link(address(shown))
        assert named == view
        assert asked.items() <= also.items()  # and the sentence that the language opens with
    nearest = page.locator("[data-role=missing-nearest]")
    to = nearest.get_attribute("href").removeprefix("#/")
    assert f"lang={language}" in to
    nearest.click()
    draws(page, to, language)
    page.go_back()
    draws_nothing(page)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_control_that_leaves_the_states_of_the_file_says_so(page, language):
    go(page, "order?sentence=我爱你", language)
    page.fill("[data-name=sentence] input", "屡战屡败")
    page.press("[data-name=sentence] input", "Enter")
    draws(page, "order?sentence=屡战屡败", language)
    kerple = getattr(BY_NAME["kerple"].label, language)
    expect(page.locator("[data-name=encoding] optgroup option", has_text=kerple)).to_have_count(1)
    page.select_option("[data-name=encoding] select", label=kerple)
    draws_nothing(page)
    expect(page.locator("[data-role=missing-asked]")).to_contain_text("KERPLE")
    page.wait_for_url("**encoding=kerple**")
    assert here(page) == f"/order?sentence=屡战屡败&encoding=kerple&lang={language}"
    page.click("[data-role=missing-nearest]")
    draws(page, "order?sentence=屡战屡败", language)


def test_the_other_language_keeps_the_address_and_the_sentence(page):
    go(page, "precision?position=4&d_model=64", "en")
    page.click("[data-language=zh]")
    draws_nothing(page)
    expect(page.locator("[data-role=missing-asked]")).to_contain_text("此文件不含这个状态：")
    expect(page.locator("[data-role=missing-asked]")).to_contain_text(" = 64")
    page.wait_for_url("**lang=zh")
    assert here(page) == "/precision?position=4&d_model=64&lang=zh"


def test_a_value_that_is_not_in_the_list_of_a_control_stands_in_it(page):
    go(page, "layouts?d_head=12", "en")
    chosen = page.locator("[data-name=d_head] select option:checked")
    expect(chosen).to_have_text("12")
    page.click("[data-role=missing-nearest]")
    expect(chosen).to_have_text("8")
    expect(page.locator("[data-name=d_head] select option")).to_have_count(3)


@pytest.mark.parametrize("language", LANGUAGES)
def test_sliders_of_a_computed_view_move_freely(page, language):
    go(page, "shift", language)
    for name, value in (("p", "25"), ("k", "7"), ("pairs", "3")):
        page.locator(f"[data-name={name}] input[type=number]").evaluate(
            "(one, value) => { one.value = value; one.dispatchEvent(new Event('change')); }", value
        )
    draws(page, "shift?p=25&k=7&pairs=3", language)
    page.wait_for_url("**pairs=3**")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_that_is_refused_is_said_at_its_field(page, language):
    go(page, "rotary_pair?sentence=x", language)
    said = {"en": "expected 2 to 24 words, got 1;", "zh": "应有 2 到 24 个词，现有 1 个；"}[language]
    expect(page.locator("[data-name=sentence] + .trouble")).to_contain_text(said)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_no_view_is_named(page, language):
    page.evaluate("(to) => (location.hash = to)", f"/tabel?length=3&lang={language}")
    expect(page.locator("main .trouble")).to_contain_text("tabel")
    expect(page.locator(".stage")).to_have_count(0)
    page.evaluate("(to) => (location.hash = to)", f"/encoding?nam=alibi&lang={language}")
    expect(page.locator("main .trouble")).to_contain_text("nam")
    expect(page.locator(".code")).to_have_count(0)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_file_holds_what_the_rows_show(language):
    for name, row in ROWS.items():
        view, asked = view_of_link(name)
        parameters = views.view(view).Parameters
        english = {key: one["in_english"] for key, one in views.schemas()[view].items() if "in_english" in one}
        state = parameters(**{**(english if language == "en" else {}), **asked})
        assert computed(view, asked) or state in views.exported(view), (name, row.view)


def computed(view: str, asked: dict[str, Any]) -> bool:
    return view in COMPUTED and asked.get("encoding", "nope") in {*METHODS} and not asked.get("config")


def test_a_server_names_an_impossible_value_of_an_address(opened):
    page = opened("shift?p=abc&k=7")
    draws_nothing(page)
    expect(page.locator("[data-role=missing-asked]")).to_contain_text("p = abc (a whole number from 1 to 1000000)")
    expect(page.locator("[data-role=missing-command]")).to_have_count(0)
    page.click("[data-role=missing-nearest]")
    draws(page, "shift?k=7", "en")


def test_the_links_are_sixty_and_of_every_view():
    assert len({*LINKS}) >= 60
    assert {link.split("?")[0] for link in LINKS} == {*views.PAGES}
    assert {json.dumps(view_of_link(one)) for one in HELD}.isdisjoint(json.dumps(view_of_link(one)) for one in MISSING)
