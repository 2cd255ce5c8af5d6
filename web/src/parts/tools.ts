// What stands in the bar of every page: light or dark, and the language.

import { h, s } from "../dom";
import type { Language, Words } from "../words";

const LANGUAGES: Record<Language, string> = { en: "English", zh: "中文" };

export function themeButton(t: (words: Words) => string, change: () => void): HTMLElement {
  return h("button", { type: "button", "data-role": "theme", "aria-label": t({ en: "Light or dark", zh: "浅色或深色" }), click: change },
    s("svg", { viewBox: "0 0 20 20", width: 18, height: 18, "aria-hidden": "true" }, s("circle", { cx: 10, cy: 10, r: 7.2, fill: "none", stroke: "currentColor", "stroke-width": 1.6 }), s("path", { d: "M10 2.8a7.2 7.2 0 0 1 0 14.4z", fill: "currentColor" })));
}

export function languageButtons(t: (words: Words) => string, language: Language, choose: (one: Language) => void): HTMLElement {
  return h("span", { class: "languages", role: "group", "aria-label": t({ en: "Language", zh: "语言" }) }, ...(["en", "zh"] as const).map((one) =>
    h("button", { type: "button", lang: one === "zh" ? "zh-CN" : "en", "aria-label": LANGUAGES[one], "aria-pressed": String(language === one), "data-language": one, click: () => choose(one) },
      h("span", { class: "long" }, LANGUAGES[one]), h("span", { class: "short" }, LANGUAGES[one].slice(0, one === "zh" ? 1 : 2).toUpperCase()))));
}
