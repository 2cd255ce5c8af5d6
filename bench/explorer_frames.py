"""Frames and answers of the explorer in a real browser, as its users get them.

    python bench/explorer_frames.py [--seconds 5] [--json]

frames   the sweep over a 512 × 512 table at 100 rows a second: time from one frame to the next
answers  every slider and every drawing of every view: from the key to the frame that shows what it changed, with the
         numbers asked of the server on the way where they are needed

Needs Chromium and Playwright. Headless browsers draw sixty frames a second; without a graphics card everything is drawn
by the processor.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import statistics
from typing import Any

from playwright.sync_api import Page, sync_playwright

from posenc.explorer import views
from posenc.explorer.serving import serving

PRESSES = 8
FRAMES = """seconds => new Promise(done => {
  const times = [];
  const end = performance.now() + seconds * 1000;
  const frame = now => { times.push(now); now < end ? requestAnimationFrame(frame) : done(times); };
  requestAnimationFrame(frame);
})"""
LISTEN = """() => {
  window.answers = [];
  const stage = document.querySelector('.stage');
  document.addEventListener('keydown', event => {
    const start = event.timeStamp;
    const look = () => stage.hasAttribute('aria-busy') ? requestAnimationFrame(look)
      : requestAnimationFrame(now => window.answers.push(now - start));
    requestAnimationFrame(look);
  }, true);
}"""


def frames(page: Page, address: str, seconds: float) -> dict[str, float]:
    page.goto(f"{address}/#/table?length=512&d_model=512&p=0&speed=100")
    page.wait_for_selector("main[data-ready]")
    page.click("[data-role=play]")
    times = page.evaluate(FRAMES, min(seconds, 5.0))
    gaps = sorted(after - before for before, after in itertools.pairwise(times))
    return {
        "frames_per_second": 1000 * len(gaps) / sum(gaps),
        "median_ms": statistics.median(gaps),
        "p99_ms": gaps[int(0.99 * len(gaps))],
        "worst_ms": gaps[-1],
    }


def answers(page: Page, address: str, name: str) -> dict[str, Any]:
    """Of every slider, and of every drawing that takes keys."""
    page.goto(f"{address}/#/{name}")
    page.reload()
    page.wait_for_selector("main[data-ready]")
    page.evaluate(LISTEN)
    for place in page.locator(
        ".controls input[type=range]:visible, .stage [tabindex='0']:visible, .stage input[type=range]:visible"
    ).all():
        place.focus()
        for press in range(PRESSES):
            page.keyboard.press("ArrowRight" if press < PRESSES - 2 else "ArrowLeft")
            page.wait_for_timeout(60)
    page.wait_for_timeout(500)
    times = sorted(page.evaluate("window.answers"))
    if not times:
        return {"keys": 0}
    return {
        "keys": len(times),
        "median_ms": statistics.median(times),
        "p95_ms": times[int(0.95 * len(times))],
        "worst_ms": times[-1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the sweep is watched")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    path = os.environ.get("POSENC_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        parser.exit(1, "no Chromium was found; POSENC_CHROMIUM names one\n")
    with serving() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        found: dict[str, Any] = {"browser": browser.version, "frames": frames(page, address, asked.seconds)}
        found["answers"] = {name: answers(page, address, name) for name in views.NAMES if name != "story"}
        browser.close()
    if asked.json:
        print(json.dumps(found, indent=1))
        return
    print(
        f"Chromium {found['browser']}, 1280 × 900\n\nsweep of 512 × 512   "
        + "   ".join(f"{k} {v:.1f}" for k, v in found["frames"].items())
    )
    print("\nview            keys   median    95 %   worst, ms")
    for name, one in found["answers"].items():
        print(
            f"{name:15} {one['keys']:4}"
            + ("" if not one["keys"] else f"   {one['median_ms']:6.1f}  {one['p95_ms']:6.1f}  {one['worst_ms']:6.1f}")
        )


if __name__ == "__main__":
    main()
