// Colours: blue is −1, red is +1, zero is the background; amber is a position, teal a channel, violet a head.
//
// Blue and red are distinguishable with every common colour blindness and have the same contrast to the background.

type Ramp = readonly string[];

const LIGHT = {
  diverging: ["#16448e", "#3a7abe", "#92bce0", "#f7f7f7", "#f4ac92", "#d3544a", "#941230"],
  amount: ["#f7f7f7", "#e8d7f0", "#c3a4d8", "#8f6ab3", "#553a7d", "#2a1b47"],
} as const satisfies Record<string, Ramp>;
const DARK = {
  diverging: ["#8ec2ff", "#4a8fdc", "#2a558c", "#1d2027", "#8a3a3c", "#e0625a", "#ffab9d"],
  amount: ["#1d2027", "#3d2f57", "#664a93", "#9674c4", "#c9b0e6", "#f4ecfb"],
} as const satisfies Record<string, Ramp>;

export type MapName = keyof typeof LIGHT;
const STEPS = 1024;
const tables = new Map<string, Uint32Array>();

/** 1025 colours from one end to the other, as canvases hold them. */
export function table(map: MapName, dark: boolean): Uint32Array {
  const name = `${map} ${dark}`;
  let found = tables.get(name);
  if (!found) {
    const ramp = (dark ? DARK : LIGHT)[map];
    found = Uint32Array.from({ length: STEPS + 1 }, (_, step) => {
      const [r, g, b] = between(ramp, step / STEPS);
      return (255 << 24) | (b! << 16) | (g! << 8) | r!;
    });
    tables.set(name, found);
  }
  return found;
}

/** The index of a value in `table`: −limit … limit for diverging, 0 … limit for amount. */
export function step(map: MapName, value: number, limit: number): number {
  const share = map === "diverging" ? (value / limit + 1) / 2 : value / limit;
  return share >= 1 ? STEPS : share > 0 ? Math.round(share * STEPS) : 0;
}

export function colour(map: MapName, value: number, limit: number, dark: boolean): string {
  const [r, g, b] = between((dark ? DARK : LIGHT)[map], step(map, value, limit) / STEPS);
  return `rgb(${r} ${g} ${b})`;
}

/** Black or white, whichever has the higher contrast on a colour of the map: at least 4.5 to 1. */
export function inkOn(map: MapName, value: number, limit: number, dark: boolean): string {
  const [r, g, b] = between((dark ? DARK : LIGHT)[map], step(map, value, limit) / STEPS).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b! > 0.18 ? "#000000" : "#ffffff";
}

function between(ramp: Ramp, share: number): number[] {
  const place = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const left = Math.min(Math.floor(place), ramp.length - 2);
  const [from, to] = [bytes(ramp[left]!), bytes(ramp[left + 1]!)];
  return from.map((part, index) => Math.round(part + (to[index]! - part) * (place - left)));
}

function bytes(hex: string): number[] {
  return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
}

/** Distinct colours for a few lines: CSS variables, so that they follow the theme. */
export const LINES = ["var(--line-1)", "var(--line-2)", "var(--line-3)", "var(--line-4)", "var(--line-5)", "var(--line-6)"];

/** Hues in degrees of those that are drawn together most often. */
const HUES: Record<string, number> = {
  t5: 305, learned: 262, transformer_xl: 145, shaw: 350, floater: 230, xpos: 52, cope: 112,
};
/** Those of the story have a variable of page.css each. */
const ACCENTS = ["sinusoidal", "rope", "alibi", "yarn"];

/** The colour of an encoding, the same on every page. An arm such as "rope+randomized" has that of its encoding. */
export function encodingColour(name: string): string {
  const [encoding] = name.split("+");
  if (ACCENTS.includes(encoding!)) return `var(--${encoding})`;
  if (encoding === "nope") return "var(--line-6)";
  const hue = HUES[encoding!] ?? [...encoding!].reduce((hash, letter) => (hash * 31 + letter.charCodeAt(0)) % 360, 7);
  return `light-dark(oklch(.47 .13 ${hue}), oklch(.78 .11 ${hue}))`;
}

/** One of many in an order, such as heads or pairs from fast to slow. */
export function ordered(index: number, of: number): string {
  const share = of > 1 ? index / (of - 1) : 0;
  return `color-mix(in oklab, var(--order-first), var(--order-last) ${Math.round(share * 100)}%)`;
}

/** Of the page that the element is in. */
export function isDark(element: Element): boolean {
  const theme = element.closest<HTMLElement>(".posenc")?.dataset["theme"];
  return theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
}

/** The cursor's colours as canvases take them: the page's own --position, --channel, --sheet and --ink. */
export function cursorColours(dark: boolean): { position: string; channel: string; sheet: string; ink: string } {
  return dark
    ? { position: "rgb(240 182 74 / .75)", channel: "rgb(85 199 186 / .65)", sheet: "#1b1e24", ink: "#e8eaee" }
    : { position: "rgb(190 125 10 / .75)", channel: "rgb(23 121 111 / .6)", sheet: "#ffffff", ink: "#1d2129" };
}
