// Numbers that live in a sentence: "RoPE needs {rope} bits". Pointing at one leaves in the picture only what it counts.
//
//   {rope} ─► <b data-see="rope">6.7</b>   ◄─►   every [data-part] of the picture that names rope

import { fill, h, say } from "../dom";

export type Values = Record<string, string>;

/** A number to hundredths, without a minus sign before 0. */
export const signed = (value: number) => (Math.abs(value) < 0.005 ? 0 : value).toFixed(2).replace("-", "−");

/** Writes the sentence; returns what sets its numbers. */
export function told(element: HTMLElement, template: string): (values: Values) => void {
  const places = new Map<string, HTMLElement[]>();
  fill(element, ...template.split(/(\{\w+\})/).map((piece) => {
    const name = /^\{(\w+)\}$/.exec(piece)?.[1];
    if (!name) return piece;
    const number = h("b", { class: `n of-${name}`, tabindex: 0, "data-see": name });
    places.set(name, [...(places.get(name) ?? []), number]);
    return number;
  }));
  return (values) => {
    for (const [name, all] of places) for (const place of all) {
        say(place, values[name] ?? "");
        place.classList.toggle("of-words", !/^[−\d]/.test(values[name] ?? ""));
      }
  };
}

/** Makes the numbers of a page point at their parts. */
export function pointing(page: HTMLElement): void {
  const see = (event: Event) => {
    const name = (event.target as Element).closest?.<HTMLElement>("[data-see]")?.dataset["see"];
    for (const part of page.querySelectorAll<SVGElement>("[data-part]")) part.classList.toggle("dim", !!name && !part.dataset["part"]!.split(" ").includes(name));
  };
  for (const kind of ["pointerover", "pointerleave", "focusin", "focusout"]) page.addEventListener(kind, see);
}
