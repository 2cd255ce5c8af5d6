"""Every sentence of the ledger is a card; the verdict appears after the guess."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from posenc.explorer import views
from posenc.learn.claims import LEDGER


def test_the_cards_are_the_ledger():
    for name, claim in LEDGER.items():
        found = views.data("true_or_false", {"claim": name})
        evidence = claim.check()
        assert found.facts["claim"]["verdict"] == evidence.verdict
        assert found.facts["claim"]["value"] == evidence.value.as_dict()
        assert list(found.arrays["numbers"]) == evidence.flat() or any(number != number for number in evidence.flat())


def test_a_guess_reveals_the_verdict_and_is_kept_in_the_link(opened):
    page = opened("true_or_false")
    stamp, value = page.locator(".stamp"), page.locator(".claim .value")
    expect(stamp).to_have_text("")
    expect(value).to_have_text("")
    page.click("[data-guess=f]")
    expect(stamp).to_have_text("Not right. The verdict: true")
    page.click("[data-guess=t]")
    expect(stamp).to_have_text("Right. The verdict: true")
    expect(value).to_have_text(LEDGER["denominators"].check().value.en)
    page.wait_for_url(re.compile("answers=t"))
    page.click("[data-role=next]")
    second = list(LEDGER)[1]
    page.wait_for_url(re.compile(f"claim={second}"))
    expect(page.locator("blockquote")).to_have_text(f"“{LEDGER[second].words.en}”")
    expect(stamp).to_have_text("")
    expect(page.locator("[data-claim=denominators]")).to_have_class("right")
    page.reload()
    expect(page.locator(".small").last).to_have_text(f"1 of {len(LEDGER)} answered")
