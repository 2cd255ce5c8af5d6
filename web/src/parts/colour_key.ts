// What the colours of a map mean: a strip of them between its two ends.

import { colour, isDark, type MapName } from "../colours";
import { h } from "../dom";
import { tidy } from "./chart";

const STOPS = 12;

/** The ends are numbers, or words in their place. */
export function colourKey(): { element: HTMLElement; draw(map: MapName, limit: number, ends?: [string, string]): void } {
  const [from, to] = [h("span", {}), h("span", {})];
  const strip = h("i", { "aria-hidden": "true" });
  const element = h("p", { class: "colour-key" }, from, strip, to);
  return {
    element,
    draw(map, limit, ends) {
      const low = map === "diverging" ? -limit : 0;
      [from.textContent, to.textContent] = ends ?? [short(low), short(limit)];
      const dark = isDark(element);
      const stops = Array.from({ length: STOPS + 1 }, (_, index) => colour(map, low + ((limit - low) * index) / STOPS, limit, dark));
      strip.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    },
  };
}

function short(value: number): string {
  return tidy(Number(value.toPrecision(3)));
}
