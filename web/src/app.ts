// The page: header, language, colours, footer, and the view or the start page given by the address.

import { parsed, type Address } from "./address";
import { isDark } from "./colours";
import { fill, h } from "./dom";
import { encodingPage } from "./encoding_page";
import encodingCss from "./encoding_page.css";
import { loadFonts } from "./fonts";
import { openView, type Frame, type Opened } from "./opened";
import css from "./page.css";
import { contents } from "./parts/contents";
import { rail } from "./parts/rail";
import { skips } from "./parts/skips";
import { languageButtons, themeButton } from "./parts/tools";
import { results } from "./results/view";
import { rowCard, withRows } from "./rows";
import rowCss from "./rows.css";
import { remembering, type Source, type State } from "./source";
import { chapterOf } from "./story/chapters";
import { story } from "./story/page";
import storyCss from "./story/story.css";
import { VIEWS } from "all-views";
import { shown, type Language, type Words } from "./words";

export interface Options {
  source: Source;
  address: Address;
  /** Stores settings that are not in the address, if possible. */
  store?: Storage;
  language: Language;
  /** Told of every state that a view draws: a notebook's kernel reads it. */
  drawn?: (view: string, state: State) => void;
}

const ENCODING = "encoding";
/** Views that there are no more, and what took their place. */
const GONE: Record<string, Words> = {
  audit: { en: "A table of your own is checked by the command posenc check TABLE, which reads .npy, .csv, .json and .safetensors.", zh: "检查你自己的表，请用命令 posenc check TABLE，它读取 .npy、.csv、.json 和 .safetensors。" },
};
const PYTHONS: Words = { en: "the Python library computes the numbers, this page draws them", zh: "数值由 Python 库计算，本页只负责绘制" };
const FILES: Words = { en: "the Python library has computed the stored numbers, this page computes the others", zh: "存储的数值由 Python 库计算，其余由本页计算" };
const WRITERS: Words = { en: "the models write in this page", zh: "模型在本页里写" };
const STORYS: Words = { en: "this page computes the numbers of the story, tests hold them to the Python library; trained models and model types are stored", zh: "故事里的数值由本页计算，测试与 Python 库核对；训练好的模型与模型种类是存储的结果" };
const ITS_OWN: Words = { en: "This page computes the numbers that it draws here; tests hold it to the Python library within a millionth.", zh: "这里画出的数值由本页计算；测试保证它与 Python 库之差在百万分之一以内。" };
/** "auto" follows the reader's system until the button was pressed. */
type Theme = "auto" | "light" | "dark";

export function mount(place: HTMLElement | ShadowRoot, options: Options): () => void {
  loadFonts();
  const sheet = new CSSStyleSheet();
  sheet.replaceSync([css, storyCss, encodingCss, rowCss, ...[...VIEWS, results].map((view) => view.styles ?? "")].join("\n"));
  const home = place instanceof ShadowRoot ? place : document;
  home.adoptedStyleSheets = [...home.adoptedStyleSheets, sheet];
  const source = remembering(options.source);
  const { store } = options;
  const address = withRows(options.address, source);
  const { lang: asked, alone } = parsed(address.read()).page;
  let language = asked === "zh" || asked === "en" ? asked : ((store?.getItem("posenc-language") as Language | null) ?? options.language);
  const seen = new Set(store?.getItem("posenc-seen")?.split(" "));
  let theme = (store?.getItem("posenc-theme") as Theme | null) ?? "auto";
  const root = h("div", { class: alone ? "posenc alone" : "posenc" });
  // The page that shows this one in a frame may make it as tall (docs/site/theme/embed.js).
  if (alone) new ResizeObserver(() => parent.postMessage({ posenc: Math.ceil(root.getBoundingClientRect().height) }, "*")).observe(root);
  const live = h("div", { class: "away", role: "status", "aria-live": "polite", "data-role": "live" });
  place.append(root);
  const leave: (() => void)[] = [];
  const gone = new AbortController();
  let opened: Opened | null = null;
  const t = (words: Words) => words[language];

  function shell(): void {
    for (const done of leave.splice(0)) done();
    root.lang = language === "zh" ? "zh-CN" : "en";
    root.dataset["theme"] = theme;
    if (place === document.body) document.documentElement.lang = root.lang;
    const { view: name, given } = parsed(address.read());
    const view = source.results && name === results.name ? results : VIEWS.find((one) => one.name === name);
    itsOwn = source.own(name || "story");
    sayCheck();
    const steps = rail(t, seen);
    const saw = (one: string) => {
      if (seen.has(one)) return;
      seen.add(one);
      store?.setItem("posenc-seen", [...seen].join(" "));
    };
    if (view) saw(view.name);
    steps.draw(view ? chapterOf(view.name) : undefined);
    const main = h("main", { id: "main", tabindex: -1 });
    if (alone) fill(root, main, h("p", { class: "whole" }, h("a", { href: "#/", target: "_blank", click: (event: Event) => void ((event.currentTarget as HTMLAnchorElement).href = address.link(address.read().replace(/alone=\w+&?/, "").replace(/[?&]$/, ""))) }, `posenc ${source.version} ↗`)), live);
    else fill(root, header(name, main, steps.element), main, footer(name), live);
    const frame: Frame = {
      t, language, source, address, checked, announce: (text) => void (live.textContent !== text && (live.textContent = text)), leaving: (done) => void leave.push(done),
      drawn(of, state) {
        options.drawn?.(of, state);
        if (of !== "story") return;
        saw(`chapter-${state["chapter"]}`);
        steps.draw(Number(state["chapter"]), true);
      },
    };
    opened = null;
    if (name === ENCODING) encodingPage(main, { t, source, given, go: (next) => address.go(`/${ENCODING}?name=${next}`) });
    else if (view) opened = openView(view, main, frame);
    else if (["", "story"].includes(name) || GONE[name]) opened = story(main, frame);
    else unknown(main, name);
    // Beside the story, which fills main whenever a chapter opens.
    if (GONE[name]) main.before(h("aside", {}, h("p", { class: "gone", role: "status" }, t(GONE[name]))));
    const row = address.row();
    if (row) main.prepend(rowCard(row, { t, source, check: checkHere, failed: (error) => void (live.textContent = error.message) }));
    if (place === document.body) document.title = view || name === ENCODING ? `${main.querySelector("h1")!.textContent} · posenc` : t({ en: "posenc: where position enters a Transformer", zh: "posenc：位置如何进入 Transformer" });
  }

  function unknown(main: HTMLElement, name: string): void {
    const words = { en: `There is no view called ${name.slice(0, 60)}: choose one in the contents.`, zh: `没有叫 ${name.slice(0, 60)} 的视图，请在目录里选一个。` };
    fill(main, h("h1", {}, t({ en: "No such view", zh: "没有这个视图" })), h("p", { class: "trouble", role: "alert" }, t(words)), h("p", {}, h("a", { href: "#/" }, t({ en: "Start", zh: "首页" }))));
    main.dataset["ready"] = "true";
  }

  function header(name: string, main: HTMLElement, steps: HTMLElement): HTMLElement {
    const languages = languageButtons(t, language, (one) => {
      language = one;
      store?.setItem("posenc-language", one);
      const now = parsed(address.read());
      if (now.page["lang"]) address.write(address.read().replace(/lang=\w+/, `lang=${one}`));
      shell();
      root.querySelector<HTMLElement>(`[data-language=${one}]`)?.focus();
    });
    const colours = themeButton(t, () => {
      theme = isDark(root) ? "light" : "dark";
      store?.setItem("posenc-theme", theme);
      root.dataset["theme"] = theme;
      opened?.redraw();
    });
    const all = contents(t, name);
    return h("header", { class: "bar" }, skips(t, main), h("a", { class: "brand", href: "#/" }, "posenc"), steps, h("span", { class: "tools" }, all.button, colours, languages), all.element);
  }

  const check = h("span", { "data-role": "check" });
  /** The same, in the card of a row. */
  const checkHere = h("b", {});
  /** Whether the view's numbers are the page's: then there is nothing of Python's to compare with. */
  let itsOwn = false;
  let worst = 0;
  let over = 0;
  function footer(name: string): HTMLElement {
    return h("footer", {}, h("p", {}, `posenc ${source.version} · `, t(["", "story"].includes(name) ? STORYS : source.live ? (itsOwn ? WRITERS : PYTHONS) : FILES), t({ en: "; nothing is loaded from other servers", zh: "；不从其他服务器加载内容" })), h("p", {}, check));
  }
  function checked(difference: number, count: number): void {
    if (itsOwn) return;
    worst = Math.max(worst, difference);
    over += count;
    check.dataset["value"] = String(worst);
    sayCheck();
  }
  function sayCheck(): void {
    const compared = `${t({ en: "Largest difference between this page's own arithmetic and Python's:", zh: "本页自己的计算与 Python 的最大差异：" })} ${shown(worst)}${t({ en: ` over ${over.toLocaleString("en")} numbers`, zh: `（共 ${over.toLocaleString("en")} 个数）` })}`;
    for (const place of [check, checkHere]) place.textContent = itsOwn ? t(ITS_OWN) : over ? compared : "";
  }

  const named = () => parsed(address.read()).view || "story";
  let openName = named();
  let openRow = address.row();
  address.changed(() => {
    const name = named();
    const row = address.row();
    const { lang = language } = parsed(address.read()).page;
    const same = lang === language || (lang !== "en" && lang !== "zh");
    if (!same) language = lang as Language;
    if (same && name === openName && row === openRow && opened) {
      opened.reread();
      return;
    }
    openName = name;
    openRow = row;
    shell();
    root.scrollIntoView();
    root.querySelector("main")?.focus({ preventScroll: true });
  });
  root.addEventListener("click", (event) => {
    const link = (event.target as Element).closest?.("a[href^='#/'], a[href^='#S']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    address.go(link.getAttribute("href")!.slice(1));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => opened?.redraw(), { signal: gone.signal });
  shell();
  return () => {
    for (const done of leave.splice(0)) done();
    gone.abort();
    root.remove();
  };
}
