// Python that runs as printed, with a button that copies it.

import { h } from "../dom";
import type { Stage } from "../view";

export function copyButton(text: () => string, label: string, done: string, className = ""): HTMLButtonElement {
  const button = h("button", { type: "button", class: className, click: async () => {
    if (await copied(text())) {
      button.textContent = done;
      setTimeout(() => (button.textContent = label), 1500);
    }
  } }, label);
  return button;
}

async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A file opened from disk may not use the clipboard: the old way.
    const area = h("textarea", { class: "away" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export function codeCard(t: Stage["t"]): { element: HTMLElement; draw(text: string): void } {
  const code = h("code", {});
  const pre = h("pre", { tabindex: 0, role: "region", "aria-label": "Python" }, code);
  const copy = copyButton(() => code.textContent ?? "", t({ en: "Copy Python", zh: "复制 Python" }), t({ en: "Copied", zh: "已复制" }));
  return {
    element: h("section", { class: "card code" }, h("div", { class: "card-head" }, h("h2", {}, "Python"), copy), pre),
    draw(text) {
      if (code.textContent !== text) code.textContent = text; // a new text, though the same, costs a layout at every move
    },
  };
}
