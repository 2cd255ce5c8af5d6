"""However often a view is asked for, it is drawn at most once a frame: by counting, not by the clock."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import Opened
from sampling import one_in

BURSTS, MOVES = 8, 6
#: Whatever is tried in a view, each with how a move of it is made.
MOVED: dict[str, tuple[str, str]] = {
    "binary": (".controls input[type=range]", "slide"),
    "table": (".stage canvas", "drag"),
    "rotary_pair": (".stage input[type=range]", "slide"),
    "layouts": (".stage canvas", "drag"),
    "terms": (".stage input[type=range]", "slide"),
    "bias": (".stage canvas", "drag"),
    "similarity": (".controls input[type=range]", "slide"),
    "what_breaks": (".stage input[type=range]", "slide"),
}
#: All moves of a burst are made between two frames. Every drawing of a view begins with its controls, whose last is "More
#: settings": whether that is hidden is set once for each drawing.
COUNTED = """async ([where, how, bursts, moves]) => {
  const moved = document.querySelector('main').querySelector(where);
  const hidden = Object.getOwnPropertyDescriptor(HTMLElement.prototype, 'hidden');
  let draws = 0;
  Object.defineProperty(HTMLElement.prototype, 'hidden', { ...hidden, set(value) {
    if (this.matches('details.more')) draws++;
    hidden.set.call(this, value);
  } });
  const frame = () => new Promise(requestAnimationFrame), task = () => new Promise(done => setTimeout(done));
  const found = [];
  for (let n = 0, burst = 0; burst < bursts; burst++) {
    for (let rest = 0; rest < 3; rest++) { await frame(); await task(); }
    draws = 0;
    for (let one = 0; one < moves; one++, n++) {
      if (how === 'slide') {
        const [least, most, step] = [moved.min, moved.max, moved.step].map(Number);
        moved.value = String(least + (n * Math.max(step, 1)) % (most - least));
        moved.dispatchEvent(new Event('input', { bubbles: true }));
        continue;
      }
      const box = moved.getBoundingClientRect();
      const [clientX, clientY] = [box.x + box.width * (0.1 + (n % 20) / 25), box.y + box.height * 0.5];
      moved.dispatchEvent(new PointerEvent('pointermove', { clientX, clientY, buttons: 1, bubbles: true }));
    }
    await frame();
    const within = draws;
    for (let rest = 0; rest < 3; rest++) { await frame(); await task(); }
    found.push([within, draws]);
  }
  Object.defineProperty(HTMLElement.prototype, 'hidden', hidden);
  return found;
}"""


@pytest.mark.parametrize("address", one_in(5, MOVED))
def test_a_view_is_drawn_at_most_once_a_frame_however_many_moves_are_made(opened: Opened, address: str) -> None:
    where, how = MOVED[address]
    drawn = opened(address).evaluate(COUNTED, [where, how, BURSTS, MOVES])
    # Usually one drawing in the frame of the moves and one in the next. None in the first where something else, such as an
    # answer that arrived, had the view drawn a moment before.
    assert all(within <= 1 and total >= 1 for within, total in drawn), drawn


def test_what_was_moved_last_is_what_is_drawn(opened: Opened) -> None:
    page = opened("rotary_pair")
    page.evaluate(COUNTED, [".stage input[type=range]", "slide", 3, 5])
    m: Any = page.locator(".stage input[type=range]").first.input_value()
    page.wait_for_function("m => document.querySelector('[data-role=handle-q]').getAttribute('aria-valuenow') === m", arg=m)


def test_keys_that_come_faster_than_frames_all_count(opened: Opened) -> None:
    page = opened("wavelengths?pair=10")
    page.locator("[role=application]").first.focus()
    page.evaluate("""() => { for (let n = 0; n < 7; n++)
        document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true })); }""")
    page.wait_for_url("**pair=17")
