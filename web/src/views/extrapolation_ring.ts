// The circle of the pair under the cursor: what training covered, what is new, and where both lengths end.

import { fill, h, s } from "../dom";
import type { Stage } from "../view";
import { both, shown } from "../words";
import { TURN, type Reader } from "./extrapolation_methods";

export function drawRing(place: HTMLElement, of: Reader, m: number, pair: number, stage: Stage): void {
  const { t } = stage;
  const [size, r] = [220, 82];
  const middle = size / 2;
  const point = (angle: number, far: number): [number, number] => [middle + far * Math.cos(angle), middle - far * Math.sin(angle)];
  const covered = of.covered(pair);
  const end = covered + of.fresh(m, pair);
  const hand = (angle: number, name: string) => {
    const [x, y] = point(angle, r + 13);
    return s("line", { class: name, x1: middle, y1: middle, x2: x, y2: y });
  };
  const [trained, target] = [of.trained(pair) / TURN, of.target(m, pair) / TURN];
  const words = `${t(both("Pair", "通道对"))} ${pair}`;
  fill(place, s("svg", { viewBox: `0 0 ${size} ${size}`, width: size, height: size, "aria-hidden": "true" },
    s("circle", { class: "empty", cx: middle, cy: middle, r }),
    s("path", { class: "arc covered", d: arc(point, 0, covered, r) }), s("path", { class: "arc new", d: arc(point, covered, end, r) }),
    hand(of.trained(pair), "hand at-trained"), hand(of.target(m, pair), "hand at-target"), s("circle", { class: "hub", cx: middle, cy: middle, r: 3 })),
    h("div", { class: "ring-words" }, h("p", {}, h("b", {}, words)),
      h("p", {}, h("i", { class: "covered" }), t(both("at L: ", "L 处：")),
        h("b", { "data-role": "turns-trained", "data-value": trained }, shown(trained, 3)), t(both(" turns", " 圈"))),
      h("p", {}, h("i", { class: "new" }), t(both("at s·L: ", "s·L 处：")),
        h("b", { "data-role": "turns-target", "data-value": target }, shown(target, 3)), t(both(" turns", " 圈"))),
      h("p", {}, t(both("new: ", "新增：")), h("b", { "data-role": "new", "data-value": of.fresh(m, pair) }, shown(of.fresh(m, pair) / TURN, 3)),
        t(both(" of a turn", " 圈")))));
  const [a, b, c] = [trained, target, (end - covered) / TURN].map((turns) => shown(turns, 3));
  place.setAttribute("aria-label", t(both(`${words}: ${a} turns at L, ${b} at s·L, new ${c}`, `${words}：L 处 ${a} 圈，s·L 处 ${b} 圈，新增 ${c} 圈`)));
}

/** Counter-clockwise from the right, as angles are; a whole turn is drawn in two halves. */
function arc(point: (angle: number, far: number) => [number, number], from: number, to: number, r: number): string {
  if (to - from < 1e-9) return "";
  const half = (a: number, b: number) => `A${r} ${r} 0 ${b - a > Math.PI ? 1 : 0} 0 ${point(b, r).map((part) => part.toFixed(2)).join(" ")}`;
  const start = `M${point(from, r).map((part) => part.toFixed(2)).join(" ")}`;
  return to - from > TURN - 1e-6 ? start + half(from, from + Math.PI) + half(from + Math.PI, from + TURN) : start + half(from, to);
}
