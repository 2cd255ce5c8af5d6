// One open view: its texts, controls and cards around the drawing, and its state.
//
//   address ─► state ─► Python's parameters ─► numbers ─┐
//                └──► the page's own parameters ────────┴─► draw;   set({…}) ─► state, address

import { parsed, valued, written, type Address } from "./address";
import type { Data } from "./data";
import { fill, h } from "./dom";
import { codeCard, copyButton } from "./parts/code";
import { controls } from "./parts/controls";
import { canonical, type Parameter, type Source, type State } from "./source";
import { clamped, type Draw, type Stage, type View } from "./view";
import { VIEWS } from "all-views";
import type { Language, Words } from "./words";

/** What is around every view. */
export interface Frame {
  t(words: Words): string;
  language: Language;
  source: Source;
  address: Address;
  announce(text: string): void;
  checked(difference: number, count: number): void;
  leaving(done: () => void): void;
}

export interface Opened {
  /** The same numbers again: the colours have changed. */
  redraw(): void;
  /** The address has changed. */
  reread(): void;
}

export function openView(view: View, main: HTMLElement, frame: Frame): Opened {
  const { t, source, address } = frame;
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
  /** If only some states are available, the nearest one. */
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
    root: place_, formula, language: frame.language, t, source, set, checked: frame.checked,
    show(other) {
      data = other;
      trouble.hidden = true;
      refresh();
    },
    announce(text) {
      if (!place_.hasAttribute("data-playing")) frame.announce(text);
    },
    code: (text) => void (lines = text),
    motion: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    leaving: frame.leaving,
  };
  const at = VIEWS.indexOf(view);
  const link = (to: View | undefined, rel: string, words: Words) => (to ? h("a", { href: `#/${to.name}`, rel }, h("small", {}, t(words)), t(to.title)) : h("span", {}));
  fill(main,
    h("p", { class: "count" }, `${at + 1} / ${VIEWS.length}`), h("h1", {}, t(view.title)), h("p", { class: "lead" }, t(view.idea)),
    view.controls.length ? panel.element : null, trouble, place_, formula,
    h("div", { class: "pair" },
      h("section", { class: "card notice" }, h("h2", {}, t({ en: "What to notice", zh: "要点" })), h("ul", {}, ...view.notice.map((words) => h("li", {}, t(words)))),
        view.papers?.length ? h("p", { class: "papers" }, ...view.papers.flatMap((paper, index) => [index ? " · " : "", h("a", { href: paper.href, rel: "noreferrer", target: "_blank" }, paper.text)])) : null),
      code.element),
    h("nav", { class: "onward", "aria-label": t({ en: "Neighbouring views", zh: "相邻视图" }) }, link(VIEWS[at - 1], "prev", { en: "Previous", zh: "上一个" }),
      copyButton(() => address.link(written(view.name, state, initial)), t({ en: "Copy link to this state", zh: "复制当前状态的链接" }), t({ en: "Copied", zh: "已复制" })), link(VIEWS[at + 1], "next", { en: "Next", zh: "下一个" })));
  const draw: Draw = view.build(stage);
  panel.draw(state);
  void ask();
  return {
    redraw: refresh,
    reread() {
      state = fitting({ ...initial, ...read() });
      panel.draw(state);
      void ask();
    },
  };
}
