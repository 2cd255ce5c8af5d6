// The first thing that Tab reaches: a bar that leads to the text and to every drawing of the page, also those that take no
// keys. Left and right arrows go along it, Enter goes there, so that no drawing is more than one Tab away.

import { fill, h } from "../dom";
import { both, type Words } from "../words";

const DRAWINGS = "[role=application], [role=slider]:not(input), table[role=grid], [role=img]";
const FOCUSABLE = "button:not(:disabled), input, select, [tabindex='0']";

export function skips(t: (words: Words) => string, main: HTMLElement): HTMLElement {
  const entry = (name: string, target: HTMLElement) => h("button", { type: "button", tabindex: -1, click: () => target.focus() }, name);
  const first = entry(t(both("To the text", "到正文")), main);
  const bar = h("div", { class: "skips", role: "toolbar", "aria-label": t(both("Go to; arrow keys choose", "跳到；方向键选择")) }, first);
  first.tabIndex = 0;
  const entries = () => [...bar.children] as HTMLElement[];

  bar.addEventListener("focusin", ({ relatedTarget }) => {
    if (relatedTarget instanceof Node && bar.contains(relatedTarget)) return;
    // What the page shows changes, so the list is made whenever the bar is entered.
    const found = drawings(main).map(([name, target]) => entry(`${t(both("To: ", "到："))}${name}`, target));
    bar.append(...found);
  });
  bar.addEventListener("focusout", ({ relatedTarget }) => {
    if (!(relatedTarget instanceof Node && bar.contains(relatedTarget))) fill(bar, first);
  });
  bar.addEventListener("keydown", (event) => {
    const all = entries();
    const at = all.indexOf(event.target as HTMLElement);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    all[(to + all.length) % all.length]!.focus();
  });
  return bar;
}

/** The drawings with their names; where there is none, the first thing of the view that takes keys. */
function drawings(main: HTMLElement): [string, HTMLElement][] {
  const shown = [...main.querySelectorAll<HTMLElement>(DRAWINGS)].filter((one) => one.checkVisibility() && !one.closest("[aria-hidden=true]"));
  if (shown.length) return shown.map((one) => [named(one), hand(one)]);
  const one = main.querySelector(".stage")?.querySelector<HTMLElement>(FOCUSABLE);
  return one ? [[main.querySelector("h1")?.textContent ?? "", one]] : [];
}

/** What gets the focus: a cell of a grid; a drawing that takes no keys is itself made ready for it. */
function hand(drawing: HTMLElement): HTMLElement {
  if (drawing.matches("[role=img]")) drawing.tabIndex = -1;
  return drawing.querySelector<HTMLElement>("td[tabindex='0']") ?? drawing;
}

/** Its label up to the first full stop; the rest says which keys move it. */
function named(drawing: HTMLElement): string {
  return (drawing.getAttribute("aria-label") ?? "").split(/[.。]/, 1)[0]!;
}
