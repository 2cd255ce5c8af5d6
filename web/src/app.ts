// The page around a view: header, words, controls, numbers from Python, the way on. One state, kept in the address.

import { written, parsed, valued, type Address } from "./address";
import css from "./page.css";
import storyCss from "./story.css";
import { fill, h } from "./dom";
import type { Data } from "./data";
import { codeCard, copyButton } from "./parts/code";
import { controls } from "./parts/controls";
import { canonical, remembering, type Parameter, type Source, type State } from "./source";
import { start } from "./story";
import { clamped, type Draw, type Stage, type View } from "./view";
import { VIEWS } from "./views";
import { shown, type Language, type Words } from "./words";

export interface Options {
  source: Source;
  address: Address;
  /** What is not in the address is kept here, if anywhere. */
  store?: Storage;
  language: Language;
}

type Theme = "auto" | "light" | "dark";
const THEMES: Record<Theme, Words> = { auto: { en: "Auto", zh: "自动" }, light: { en: "Light", zh: "浅色" }, dark: { en: "Dark", zh: "深色" } };

export function mount(place: HTMLElement | ShadowRoot, options: Options): () => void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync([css, storyCss, ...VIEWS.map((view) => view.styles ?? "")].join("\n"));
  const home = place instanceof ShadowRoot ? place : document;
  home.adoptedStyleSheets = [...home.adoptedStyleSheets, sheet];
  const source = remembering(options.source);
  const { address, store } = options;
  let language: Language = parsed(address.read()).given["lang"] === "zh" || parsed(address.read()).given["lang"] === "en" ? (parsed(address.read()).given["lang"] as Language) : ((store?.getItem("posenc-language") as Language | null) ?? options.language);
  let theme = (store?.getItem("posenc-theme") as Theme | null) ?? "auto";
  const root = h("div", { class: "posenc" });
  const live = h("div", { class: "away", role: "status", "aria-live": "polite", "data-role": "live" });
  place.append(root);
  let leave: (() => void)[] = [];
  const t = (words: Words) => words[language];

  function shell(): void {
    for (const done of leave.splice(0)) done();
    redraw = () => {};
    root.lang = language === "zh" ? "zh-CN" : "en";
    root.dataset["theme"] = theme;
    if (place === document.body) document.documentElement.lang = root.lang;
    const { view: name } = parsed(address.read());
    const view = VIEWS.find((one) => one.name === name);
    const main = h("main", { id: "main", tabindex: -1 });
    fill(root, h("a", { class: "skip", href: "#main", click: (event: Event) => { event.preventDefault(); main.focus(); } }, t({ en: "To the content", zh: "跳到正文" })), header(view), main, footer(), live);
    if (view) open(view, main);
    else start(main, { t, language, source, redrawn: (draw) => void (redraw = draw) });
    if (place === document.body) document.title = view ? `${t(view.title)} · posenc` : t({ en: "posenc: where position enters a Transformer", zh: "posenc：位置如何进入 Transformer" });
  }

  function header(view: View | undefined): HTMLElement {
    const map = h("select", { "aria-label": t({ en: "Views", zh: "全部视图" }), change: () => address.go(map.value) },
      h("option", { value: "/" }, t({ en: "Start", zh: "首页" })), ...VIEWS.map((one, index) => h("option", { value: `/${one.name}`, selected: one === view }, `${index + 1}. ${t(one.title)}`)));
    const languages = (["en", "zh"] as const).map((one) => h("button", { type: "button", lang: one === "zh" ? "zh-CN" : "en", "aria-pressed": String(language === one), "data-language": one, click: () => {
      language = one;
      store?.setItem("posenc-language", one);
      const now = parsed(address.read());
      if (now.given["lang"]) address.write(address.read().replace(/lang=\w+/, `lang=${one}`));
      shell();
      root.querySelector<HTMLElement>(`[data-language=${one}]`)?.focus();
    } }, one === "zh" ? "中文" : "English"));
    const themes = h("select", { "aria-label": t({ en: "Colours", zh: "配色" }), "data-role": "theme", change: () => {
      theme = themes.value as Theme;
      store?.setItem("posenc-theme", theme);
      root.dataset["theme"] = theme;
      redraw();
    } }, ...Object.entries(THEMES).map(([one, words]) => h("option", { value: one, selected: one === theme }, t(words))));
    return h("header", { class: "bar" }, h("a", { class: "brand", href: "#/" }, "posenc"), map, h("span", { class: "space" }), themes, h("span", { class: "languages", role: "group", "aria-label": t({ en: "Language", zh: "语言" }) }, ...languages));
  }

  const check = h("span", { "data-role": "check" });
  let worst = 0;
  let over = 0;
  function footer(): HTMLElement {
    return h("footer", {}, h("p", {}, `posenc ${source.version} · `, t({ en: "numbers by the Python library, drawn by this page; nothing is loaded from anywhere else", zh: "数值由 Python 库计算，本页只负责绘制；不从其他任何地方加载内容" })), h("p", {}, check));
  }
  function checked(difference: number, count: number): void {
    worst = Math.max(worst, difference);
    over += count;
    check.dataset["value"] = String(worst);
    check.textContent = `${t({ en: "Largest difference between this page's own arithmetic and Python's:", zh: "本页自己的计算与 Python 的最大差异：" })} ${shown(worst)}${t({ en: ` over ${over.toLocaleString("en")} numbers`, zh: `（共 ${over.toLocaleString("en")} 个数）` })}`;
  }

  let redraw = () => {};

  function open(view: View, main: HTMLElement): void {
    const asked = source.schemas[view.name] ?? {};
    const parameters: Record<string, Parameter> = { ...asked, ...view.own };
    const initial: State = Object.fromEntries(Object.entries(parameters).map(([name, one]) => [name, one.default]));
    const offered = source.offered(view.name);
    let state = fitting({ ...initial, ...read() });
    let data: Data | null = null;
    let waiting = false;
    let stale = false;
    let lines = "";

    function read(): State {
      const given = parsed(address.read()).given;
      const found: State = {};
      for (const [name, text] of Object.entries(given)) {
        const parameter = parameters[name];
        const value = parameter && valued(text, parameter.default);
        if (value !== undefined && (parameter!.kind !== "choice" || parameter!.choices!.includes(String(value)))) found[name] = clamped(value, parameter!);
      }
      return found;
    }
    /** Where only some numbers are there, the nearest of them. */
    function fitting(wanted: State, changed: string[] = []): State {
      if (!offered || offered.length === 0) return wanted;
      const distance = (one: State) => Object.keys(asked).reduce((sum, name) => sum + (one[name] === wanted[name] ? 0 : changed.includes(name) ? 100 : 1), 0);
      return { ...wanted, ...offered.reduce((best, one) => (distance(one) < distance(best) ? one : best)) };
    }
    const theirs = (of: State): State => Object.fromEntries(Object.keys(asked).map((name) => [name, of[name]!]));

    function set(changes: State): void {
      const next = { ...state };
      for (const [name, value] of Object.entries(changes)) {
        const parameter = parameters[name];
        if (!parameter) throw new Error(`${view.name}: no parameter ${name}`);
        next[name] = clamped(value, parameter);
      }
      const before = canonical(theirs(state));
      state = Object.keys(changes).some((name) => name in asked) ? fitting(next, Object.keys(changes)) : next;
      const keep = parsed(address.read()).given["lang"];
      const text = written(view.name, state, initial);
      address.write(keep ? `${text}${text.includes("?") ? "&" : "?"}lang=${keep}` : text);
      panel.draw(state);
      if (canonical(theirs(state)) !== before) void ask();
      else refresh();
    }
    async function ask(): Promise<void> {
      if (waiting) {
        stale = true;
        return;
      }
      waiting = true;
      stage.root.setAttribute("aria-busy", "true");
      const question = theirs(state);
      try {
        data = await source.ask(view.name, question);
        trouble.hidden = true;
      } catch (error) {
        trouble.textContent = error instanceof Error ? error.message : String(error);
        trouble.hidden = false;
      }
      waiting = false;
      if (stale) {
        stale = false;
        void ask();
        return;
      }
      stage.root.removeAttribute("aria-busy");
      refresh();
    }
    function refresh(): void {
      if (!data || !main.isConnected) return;
      lines = "";
      draw(data, state);
      code.draw(data.python + (lines ? `\n${lines}` : ""));
      main.dataset["ready"] = "true";
    }

    const trouble = h("p", { class: "trouble", role: "alert", hidden: true });
    const panel = controls(view.controls, parameters, {
      t, set,
      offered: (name) => (offered && name in asked ? [...new Set(offered.map((one) => one[name]!))].sort((a, b) => Number(a) - Number(b) || 0) : null),
    });
    const code = codeCard(t);
    const place_ = h("div", { class: `stage view-${view.name}` });
    const formula = h("section", { class: "card formula-card", "aria-label": t({ en: "Formula", zh: "公式" }) });
    const stage: Stage = {
      root: place_, formula, language, t, source, set, checked,
      show(other) {
        data = other;
        trouble.hidden = true;
        refresh();
      },
      announce(text) {
        if (!place_.hasAttribute("data-playing")) live.textContent = text;
      },
      code: (text) => void (lines = text),
      motion: !matchMedia("(prefers-reduced-motion: reduce)").matches,
      leaving: (done) => void leave.push(done),
    };
    const at = VIEWS.indexOf(view);
    const link = (to: View | undefined, rel: string, words: Words) => (to ? h("a", { href: `#/${to.name}`, rel }, h("small", {}, t(words)), t(to.title)) : h("span", {}));
    fill(main,
      h("p", { class: "count" }, `${at + 1} / ${VIEWS.length}`), h("h1", {}, t(view.title)), h("p", { class: "lead" }, t(view.idea)),
      view.controls.length ? panel.element : null, trouble, place_, formula,
      h("div", { class: "pair" },
        h("section", { class: "card notice" }, h("h2", {}, t({ en: "What to notice", zh: "看什么" })), h("ul", {}, ...view.notice.map((words) => h("li", {}, t(words)))),
          view.papers?.length ? h("p", { class: "papers" }, ...view.papers.flatMap((paper, index) => [index ? " · " : "", h("a", { href: paper.href, rel: "noreferrer", target: "_blank" }, paper.text)])) : null),
        code.element),
      h("nav", { class: "onward", "aria-label": t({ en: "Neighbouring views", zh: "相邻视图" }) }, link(VIEWS[at - 1], "prev", { en: "Before", zh: "上一个" }),
        copyButton(() => address.link(written(view.name, state, initial)), t({ en: "Copy link to this state", zh: "复制当前状态的链接" }), t({ en: "Copied", zh: "已复制" })), link(VIEWS[at + 1], "next", { en: "Next", zh: "下一个" })));
    const draw: Draw = view.build(stage);
    panel.draw(state);
    redraw = refresh;
    current = () => {
      state = fitting({ ...initial, ...read() });
      panel.draw(state);
      void ask();
    };
    void ask();
  }

  let current: (() => void) | null = null;
  let openName = parsed(address.read()).view;
  address.changed(() => {
    const { view: name } = parsed(address.read());
    if (name === openName && current) {
      current();
      return;
    }
    openName = name;
    current = null;
    shell();
    root.scrollIntoView();
    root.querySelector("main")?.focus({ preventScroll: true });
  });
  root.addEventListener("click", (event) => {
    const link = (event.target as Element).closest?.("a[href^='#/']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    address.go(link.getAttribute("href")!.slice(1));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
  shell();
  return () => {
    for (const done of leave.splice(0)) done();
    root.remove();
  };
}
