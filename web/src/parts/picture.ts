// The drawing as a PNG for slides: its elements and the page's rules inside an SVG, drawn at twice their size.

import { isDark } from "../colours";
import { h } from "../dom";
import { fontRules } from "../fonts";

const TIMES = 2;
/** Around a picture of which some elements were left out: it has no frame of its own. */
const MARGIN = 24;

/** Offers the drawing as a file, `without` some elements that stand below one another in it. */
export async function savePicture(stage: HTMLElement, name: string, without = ""): Promise<void> {
  const box = stage.getBoundingClientRect();
  const left = without ? [...stage.querySelectorAll<HTMLElement>(without)] : [];
  const around = without ? 2 * MARGIN : 0;
  const [width, height] = [box.width + around, box.height + around - left.reduce((sum, { offsetHeight }) => sum + offsetHeight, 0)];
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(asSvg(stage, width, height, without))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(width * TIMES), Math.round(height * TIMES)];
  const pen = canvas.getContext("2d")!;
  pen.scale(TIMES, TIMES);
  pen.drawImage(image, 0, 0, width, height);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  const url = URL.createObjectURL(blob!);
  h("a", { href: url, download: `posenc-${name}.png` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

function asSvg(stage: HTMLElement, width: number, height: number, without: string): string {
  const copy = stage.cloneNode(true) as HTMLElement;
  const drawn = stage.querySelectorAll("*");
  copy.querySelectorAll<HTMLElement>("*").forEach((element, index) => still(element, drawn[index] as HTMLElement));
  if (without) for (const one of copy.querySelectorAll(without)) one.remove();
  copy.style.margin = without ? `${MARGIN}px` : "0";
  const root = stage.getRootNode() as Document | ShadowRoot;
  const rules = root.adoptedStyleSheets.flatMap((sheet) => applying(sheet.cssRules)).join("\n");
  const page = h("div", { class: "posenc", "data-theme": isDark(stage) ? "dark" : "light", lang: stage.closest<HTMLElement>("[lang]")?.lang ?? "en" }, h("style", {}, fontRules(), rules), copy);
  page.setAttribute("xmlns", "http://www.w3.org/1999/xhtml");
  const inside = new XMLSerializer().serializeToString(page);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><foreignObject width="100%" height="100%">${inside}</foreignObject></svg>`;
}

/** Writes what is neither an attribute nor text into the copy of an element: drawn pixels, what fields hold, how far it is scrolled. */
function still(copy: HTMLElement, shown: HTMLElement): void {
  if (shown instanceof HTMLCanvasElement) copy.replaceWith(h("img", { src: shown.toDataURL(), style: `${copy.getAttribute("style") ?? ""}; display: block; image-rendering: pixelated` }));
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
