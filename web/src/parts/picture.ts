// The drawing as a PNG for slides, under its title and above where it is from: its elements and the page's rules inside an SVG,
// drawn at twice their size.

import { isDark } from "../colours";
import { h } from "../dom";
import { fontRules } from "../fonts";
import { command } from "../missing";

const TIMES = 2;
const FONTS = 60; // milliseconds
/** Around a drawing that has no frame of its own. */
export const MARGIN = 24;

export interface Picture {
  /** The drawing, in the page. */
  stage: HTMLElement;
  /** Where the drawing itself has none. */
  title?: string;
  /** Where it is from. */
  foot: string;
  /** Elements that are left out, which stand below one another. */
  without?: string;
  margin?: number;
}

/** Program, sources and address of what is shown; the command, where the address is one of this machine. */
export function origin(version: string, link: string, sources: string[] = []): string {
  const anywhere = /^https?:\/\/(?!localhost\b|127\.)/.test(link);
  return [`posenc ${version}`, ...sources, anywhere ? link : command(link.split("#")[1]!)].join(" · ");
}

/** Offers it as a file. */
export async function savePicture(picture: Picture, name: string): Promise<void> {
  const canvas = await painter(picture, TIMES)();
  offer((await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png")))!, `posenc-${name}.png`);
}

export function offer(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** Paints the drawing as it stands, each time on the same canvas, which is as large as the drawing is now. */
export function painter({ stage, title, foot, without = "", margin = 0 }: Picture, times: number): () => Promise<HTMLCanvasElement> {
  const gone = without ? [...stage.querySelectorAll<HTMLElement>(without)] : [];
  const box = stage.getBoundingClientRect();
  const width = box.width + 2 * margin;
  const [head, end] = [title ? h("h1", { class: "plate" }, title) : null, h("p", { class: "plate" }, foot)];
  const root = stage.closest<HTMLElement>(".posenc")!;
  const tall = (one: HTMLElement) => {
    const line = h("div", { class: "measured-plate", style: `width: ${width}px` }, one);
    root.append(line);
    const { height } = line.getBoundingClientRect();
    line.remove();
    return Math.ceil(height);
  };
  const height = (head ? tall(head) : 0) + box.height + 2 * margin - gone.reduce((sum, { offsetHeight }) => sum + offsetHeight, 0) + tall(end);
  const rules = (stage.getRootNode() as Document | ShadowRoot).adoptedStyleSheets.flatMap((sheet) => applying(sheet.cssRules)).join("\n");
  const style = `${fontRules()}\n${rules}\n* { animation: none !important; transition: none !important; } .player { visibility: hidden !important; }`;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(width * times), Math.round(height * times)];
  const pen = canvas.getContext("2d", { willReadFrequently: true })!;
  pen.scale(times, times);
  pen.fillStyle = getComputedStyle(root).backgroundColor;
  return async () => {
    const copy = stage.cloneNode(true) as HTMLElement;
    const drawn = stage.querySelectorAll("*");
    copy.querySelectorAll<HTMLElement>("*").forEach((element, index) => still(element, drawn[index] as HTMLElement));
    if (without) for (const one of copy.querySelectorAll(without)) one.remove();
    copy.style.margin = `${margin}px`;
    const page = h("div", { class: "posenc", "data-theme": isDark(stage) ? "dark" : "light", lang: root.lang, style: "min-height: 0; display: flow-root" }, h("style", {}, style), head?.cloneNode(true) as HTMLElement | undefined, copy, end.cloneNode(true) as HTMLElement);
    page.setAttribute("xmlns", "http://www.w3.org/1999/xhtml");
    const inside = new XMLSerializer().serializeToString(page);
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><foreignObject width="100%" height="100%">${inside}</foreignObject></svg>`)}`;
    await image.decode();
    // The first drawing asks for the fonts, the second one has them.
    for (const wait of [0, FONTS]) {
      await new Promise((done) => setTimeout(done, wait));
      pen.fillRect(0, 0, canvas.width, canvas.height);
      pen.drawImage(image, 0, 0, width, height);
    }
    return canvas;
  };
}

/** Writes what is neither an attribute nor text into the copy of an element: drawn pixels, what fields hold, how far it is scrolled. */
function still(copy: HTMLElement, shown: HTMLElement): void {
  if (shown instanceof HTMLCanvasElement) copy.replaceWith(h("img", { src: shown.toDataURL(), style: `${copy.getAttribute("style") ?? ""}; display: block; position: ${getComputedStyle(shown).position}; image-rendering: pixelated` }));
  else if (shown instanceof HTMLOptionElement) copy.toggleAttribute("selected", shown.selected);
  else if (shown instanceof HTMLTextAreaElement) copy.textContent = shown.value;
  else if (shown instanceof HTMLInputElement && /checkbox|radio/.test(shown.type)) copy.toggleAttribute("checked", shown.checked);
  else if (shown instanceof HTMLInputElement) copy.setAttribute("value", shown.value);
  else if (shown.scrollLeft || shown.scrollTop) for (const child of copy.children) (child as HTMLElement).style.translate = `${-shown.scrollLeft}px ${-shown.scrollTop}px`;
}

/** The rules as they hold in this window: the picture is narrower, and its own width must not decide. */
function applying(rules: CSSRuleList): string[] {
  return [...rules].flatMap((rule) => {
    if (!(rule instanceof CSSMediaRule)) return [rule.cssText];
    return matchMedia(rule.conditionText).matches ? applying(rule.cssRules) : [];
  });
}
