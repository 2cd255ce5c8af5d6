// Elements: h("p", {class: "lead"}, "text", child).

export type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: never) => void) | undefined>;

const SVG = "http://www.w3.org/2000/svg";

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return filled(document.createElement(tag), attributes, children);
}

export function s<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** Functions are listeners (`click`), true is an empty attribute, false and undefined are none. */
function filled<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(element: Element, children: Child[]): void {
  for (const child of children) if (child !== null && child !== undefined && child !== false) element.append(typeof child === "number" ? String(child) : child);
}

/** Replaces the children by these. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

/** Sets attributes of a drawing that moves. */
export function set(element: Element, attributes: Record<string, string | number>): void {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
}

/** The same text again would cost a layout. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Like `fill`, but elements that are there already stay, and only what differs is written: for children that nothing listens to. */
export function refill(element: Element, ...children: Child[]): void {
  const next = document.createDocumentFragment();
  for (const child of children) if (child !== null && child !== undefined && child !== false) next.append(typeof child === "number" ? String(child) : child);
  merge(element, next);
}

function merge(now: Node, next: Node): void {
  let old = now.firstChild;
  for (const one of [...next.childNodes]) {
    if (!old) now.appendChild(one);
    else {
      const after: ChildNode | null = old.nextSibling;
      if (old.nodeName !== one.nodeName) now.replaceChild(one, old);
      else if (old instanceof Element) alike(old, one as Element);
      else if (old.nodeValue !== one.nodeValue) old.nodeValue = one.nodeValue;
      old = after;
    }
  }
  while (old) {
    const after: ChildNode | null = old.nextSibling;
    old.remove();
    old = after;
  }
}

function alike(now: Element, next: Element): void {
  for (const { name } of [...now.attributes]) if (!next.hasAttribute(name)) now.removeAttribute(name);
  for (const { name, value } of next.attributes) if (now.getAttribute(name) !== value) now.setAttribute(name, value);
  merge(now, next);
}
