// The report as a page of its own, from the data that the file holds: posenc compare and posenc lab report write it.

import { isDark } from "../colours";
import { fill, h } from "../dom";
import css from "../page.css";
import { languageButtons, themeButton } from "../parts/tools";
import type { Language, Words } from "../words";
import { reportOf, type Report } from "./report";
import styles from "./results.css";

const report = JSON.parse(document.getElementById("posenc-about")!.textContent!) as Report;
const sheet = new CSSStyleSheet();
sheet.replaceSync(`${css}\n${styles}`);
document.adoptedStyleSheets = [sheet];
const root = h("div", { class: "posenc" });
document.body.append(root);
let leave: (() => void)[] = [];

function draw(language: Language, theme: string): void {
  for (const done of leave.splice(0)) done();
  const t = (words: Words) => words[language];
  const said = (words: string | Words) => (typeof words === "string" ? words : t(words));
  const live = h("div", { class: "away", role: "status", "aria-live": "polite" });
  document.documentElement.lang = root.lang = language === "zh" ? "zh-CN" : "en";
  root.dataset["theme"] = theme;
  const keep = (one: Language, other: string) => {
    try {
      localStorage.setItem("posenc-language", one);
      localStorage.setItem("posenc-theme", other);
    } catch {
      // A page without storage still switches.
    }
    draw(one, other);
  };
  const around = { t, announce: (text: string) => void (live.textContent = text), leaving: (done: () => void) => void leave.push(done) };
  const main = h("main", {}, h("h1", {}, said(report.title)), h("p", { class: "lead" }, said(report.lead)), reportOf(around, report));
  fill(root, h("header", { class: "bar" }, h("span", { class: "brand" }, "posenc lab"), h("span", { class: "tools" },
    themeButton(t, () => keep(language, isDark(root) ? "light" : "dark")),
    languageButtons(t, language, (one) => {
      keep(one, theme);
      root.querySelector<HTMLElement>(`[data-language=${one}]`)?.focus();
    }))), main, live);
  main.dataset["ready"] = "true";
}

function kept(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

const language = kept("posenc-language");
draw(language === "en" || language === "zh" ? language : navigator.language.startsWith("zh") ? "zh" : "en", kept("posenc-theme") ?? "auto");
document.getElementById(location.hash.slice(1))?.scrollIntoView();
