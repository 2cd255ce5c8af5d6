"""Every view on a telephone, a tablet and a desktop, light and dark, in both languages, moving and still.

A picture of each is kept in build/screens, to be looked at; `pytest tests/explorer/test_devices.py` takes all 276.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from PIL import Image
from widths import fits

from posenc.explorer import views

FOLDER = Path(__file__).parents[2] / "build" / "screens"
DEVICES = {"phone": (390, 844), "tablet": (820, 1180), "desktop": (1440, 900)}
SAMPLE = {("", "tablet", "en", True), ("paths", "phone", "zh", True), ("measured", "tablet", "zh", False)}
EACH = [
    pytest.param(*one, marks=() if one in SAMPLE else pytest.mark.acceptance, id="-".join(map(str, one)))
    for one in itertools.product(("", *views.PAGES), DEVICES, ("en", "zh"), (False, True))
]


@pytest.mark.parametrize(("name", "device", "lang", "dark"), EACH)
def test_a_view_fits_a_device_and_its_picture_begins_on_the_first_screen(opened, name, device, lang, dark):
    width, height = DEVICES[device]
    page = opened(name, lang=lang, width=width, height=height, dark=dark, still=dark)
    FOLDER.mkdir(parents=True, exist_ok=True)
    picture = FOLDER / f"{name or 'start'}-{device}-{lang}-{'dark' if dark else 'light'}.png"
    page.screenshot(path=picture)
    fits(page)
    drawn = page.locator("main :is(svg, canvas, table)").evaluate_all(
        "all => all.filter((one) => one.checkVisibility()).map((one) => one.getBoundingClientRect().top)"
    )
    assert min(drawn) < 0.75 * height
    corner = Image.open(picture).convert("L").getpixel((4, height // 2))
    assert corner < 90 if dark else corner > 200
