"""Waits for a page to fit its window; a page's own policy forbids `wait_for_function`, which evaluates a text."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page


def fits(page: Page, width: int | None = None) -> None:
    """Waits until the page is no wider than its window, or than `width`; drawings follow a new width a frame later."""
    for _ in range(100):
        if page.evaluate("document.documentElement.scrollWidth") <= (width or page.evaluate("innerWidth")):
            return
        page.wait_for_timeout(50)
    over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    pytest.fail(f"the page is {over} pixels wider than its window")
