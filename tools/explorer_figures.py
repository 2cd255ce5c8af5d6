"""Figures of every view of the explorer in both languages, as Lighthouse measures them; exit code 1 if one is too large.

    python tools/explorer_figures.py [NAME …]

accessibility   violations that axe-core finds (WCAG 2.2 A and AA, and its best practices): none
layout shift    the sum of all shifts, as in Core Web Vitals: at most 0.1
first drawing   seconds from the navigation to the frame with the drawing, from a running server: less than 0.5
frame           milliseconds between two frames while the view is moved at every frame, 95th percentile: at most 20
export          bytes of `posenc explore --export`: less than 6 MB

Needs Chromium, Playwright and axe-core (npm --prefix web ci). Two cores are enough. Times are the shortest of three, or
of up to nine while the first drawing takes too long, because other programs can only add to them.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

from playwright.sync_api import Browser, sync_playwright

from posenc.explorer import views
from posenc.explorer.export import encoded, exported
from posenc.explorer.serving import serving

AXE = Path(__file__).parents[1] / "web/node_modules/axe-core/axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]
NAMES = ["start", *views.PAGES, "encoding"]
MOST_SHIFT, MOST_SECONDS, MOST_FRAME, MOST_BYTES = 0.1, 0.5, 20.0, 6_000_000
TRIES, MOST_TRIES = 3, 9

# Runs before the page: adds up the shifts, and notes the time of the frame after the drawing is there.
WATCH = """
window.figures = { shift: 0, drawn: null };
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) figures.shift += one.value;
}).observe({ type: "layout-shift", buffered: true });
const waiting = new MutationObserver(() => {
  if (!document.querySelector("main[data-ready]")) return;
  waiting.disconnect();
  requestAnimationFrame(() => setTimeout(() => (figures.drawn = performance.now() / 1000)));
});
waiting.observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-ready"] });
"""
# Moves the view's own slider, else its drawing, else a control, else presses its buttons; milliseconds of each frame.
FRAMES = """async () => {
  const one = (selector) => [...document.querySelectorAll(`main ${selector}`)].find((found) => found.checkVisibility());
  const slider = one(".stage input[type=range]:not(:disabled)") ?? one(".control-row input[type=range]:not(:disabled)");
  const drawing = one(".stage :is(canvas, .chart[tabindex], [role=application])");
  const buttons = [...document.querySelectorAll("main .stage :is(button, [data-arm])")];
  const move = (n) => {
    if (slider && (slider.closest(".stage") || !drawing)) {
      const [least, most] = [Number(slider.min), Number(slider.max)];
      slider.value = String(least + (most - least) * (0.5 + 0.5 * Math.sin(n / 8)));
      slider.dispatchEvent(new Event("input", { bubbles: true }));
    } else if (drawing) {
      const box = drawing.getBoundingClientRect();
      const at = { clientX: box.x + box.width * (0.5 + 0.4 * Math.sin(n / 8)), clientY: box.y + box.height * 0.5 };
      drawing.dispatchEvent(new PointerEvent(n ? "pointermove" : "pointerdown", { ...at, buttons: 1, bubbles: true }));
    } else if (buttons.length && n % 6 === 0) {
      buttons[(n / 6) % buttons.length].dispatchEvent(new MouseEvent("click", { bubbles: true }));
    }
  };
  const frame = () => new Promise(requestAnimationFrame);
  const times = [];
  let before = await frame();
  for (let n = 0; n < 120; n++) {
    move(n);
    const now = await frame();
    times.push(now - before);
    before = now;
  }
  return times;
}"""
VIOLATIONS = """async (tags) => {
  const { violations } = await axe.run(document, { runOnly: tags, resultTypes: ["violations"] });
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 120)}`);
}"""


class Figures(NamedTuple):
    violations: list[str]
    shift: float
    seconds: float
    frame: float

    def too_large(self) -> list[str]:
        return [
            *self.violations,
            *([f"layout shift {self.shift:.3f}"] if self.shift > MOST_SHIFT else []),
            *([f"first drawing after {self.seconds:.2f} s"] if self.seconds >= MOST_SECONDS else []),
            *([f"frames of {self.frame:.1f} ms"] if self.frame > MOST_FRAME else []),
        ]


def measured(browser: Browser, server: str, name: str, language: str) -> Figures:
    """One view in a browser context of its own, without a cache, several times."""
    seen: list[tuple[float, float, float]] = []
    violations: list[str] = []
    while len(seen) < TRIES or (min(seen)[0] >= MOST_SECONDS and len(seen) < MOST_TRIES):
        context = browser.new_context(
            viewport={"width": 1440, "height": 900}, locale="zh-CN" if language == "zh" else "en-GB"
        )
        page = context.new_page()
        page.add_init_script(WATCH)
        page.goto(f"{server}/#/{'' if name == 'start' else name}")
        page.wait_for_selector("main[data-ready]")
        page.wait_for_timeout(300)  # what moves later moves now
        found: dict[str, Any] = page.evaluate("figures")
        seen.append((found["drawn"], found["shift"], quantiles(page.evaluate(FRAMES), n=20)[-1]))
        if len(seen) == 1:
            page.evaluate(AXE.read_text("utf-8"))
            violations = page.evaluate(VIOLATIONS, TAGS)
        context.close()
    seconds, shifts, frames = zip(*seen, strict=True)
    return Figures(violations, max(shifts), min(seconds), min(frames))


def main() -> int:
    chosen = sys.argv[1:] or NAMES
    if unknown := set(chosen) - set(NAMES):
        sys.exit(f"no view {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    path = os.environ.get("POSENC_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("no Chromium was found; POSENC_CHROMIUM names one")
    if not AXE.is_file():
        sys.exit("axe-core is missing: npm --prefix web ci")
    faults = []
    print(f"{'view':16} {'':4} {'violations':>10} {'layout shift':>13} {'first drawing':>14} {'frame':>10}")
    with serving() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        for name in chosen:
            for language in ("en", "zh"):
                one = measured(browser, server, name, language)
                times = f"{one.seconds:12.2f} s {one.frame:7.1f} ms"
                print(f"{name:16} {language:4} {len(one.violations):10} {one.shift:13.3f} {times}", flush=True)
                faults += [f"{name} {language}: {fault}" for fault in one.too_large()]
        browser.close()
    size = len(encoded(exported()))
    print(f"export {size / 1e6:.2f} MB")
    if size >= MOST_BYTES:
        faults.append(f"export: {size} bytes")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
