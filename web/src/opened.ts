// One open view: its texts, controls and cards around the drawing, and its state.
//
//   address ─► state ─► Python's parameters ─► numbers ─┐
//                └──► the page's own parameters ────────┴─► draw;   set({…}) ─► state, address
//
// A state is drawn as it was asked for, or not at all (missing.ts).

import { parsed, valued, written, type Address } from "./address";
import type { Data } from "./data";
import { fill, h, type Child } from "./dom";
import { onceAFrame } from "./once_a_frame";
import { heldState, missingNotice, nearestState, takes } from "./missing";
import { codeCard, copyButton } from "./parts/code";
import { controls, type Controls } from "./parts/controls";
import { exportedNote } from "./parts/exported";
import { origin, savePicture } from "./parts/picture";
import { numberOf } from "./shelves";
import { canonical, type Parameter, type Source, type State, type Value } from "./source";
import { clamped, type Draw, type Stage, type View } from "./view";
import { VIEWS } from "all-views";
import { firstSentence, phrased, Said, type Language, type Words } from "./words";

/** Controls that are shown at once; the others open with "More settings". */
const atOnce = () => (innerWidth < 640 ? 1 : 3);

/** What is around every view. */
export interface Frame {
  t(words: Words): string;
  language: Language;
  source: Source;
  address: Address;
  announce(text: string): void;
  checked(difference: number, count: number): void;
  drawn: ((view: string, state: State) => void) | undefined;
  leaving(done: () => void): void;
}

/** What an open view consists of. */
export interface Parts {
  controls: HTMLElement | null;
  trouble: HTMLElement;
  stage: HTMLElement;
  exported: HTMLElement | null;
  formula: HTMLElement;
  code: HTMLElement;
  /** Buttons that save the picture and copy the link. */
  take: HTMLElement;
}

export interface Opened {
  /** The same numbers again: the colours have changed. */
  redraw(): void;
  /** The address has changed. */
  reread(): void;
}

/** Opens a view with its parts arranged as a page of its own, or otherwise. */
export function openView(view: View, main: HTMLElement, frame: Frame, arranged: (parts: Parts) => Child[] = (parts) => page(view, frame, parts)): Opened {
  const { t, source, address } = frame;
  const asked = source.schemas[view.name] ?? {};
  const parameters: Record<string, Parameter> = { ...asked, ...view.own };
  const opening = (one: Parameter) => (frame.language === "en" ? one.in_english : undefined) ?? one.default;
  const initial: State = Object.fromEntries(Object.entries(parameters).map(([name, one]) => [name, opening(one)]));
  /** What an address leaves out: not what depends on the reader's language. */
  const understood: State = Object.fromEntries(Object.entries(initial).filter(([name]) => parameters[name]!.in_english === undefined));
  const offered = source.offered(view.name);
  const stored = source.stored(view.name);
  /** What the address says and the view does not have, with what it takes. */
  let impossible: string[] = [];
  let state: State = { ...initial, ...read() };
  /** Set last by a control. */
  let changed: string[] = [];
  let data: Data | null = null;
  /** Python's parameters that `data` answers. While others are asked for, the drawing stays with these. */
  let answered: State = {};
  let waiting = false;
  let stale = false;
  /** Ends what is asked for. */
  let giveUp = () => {};
  let lines = "";
  /** Whether something that is drawn has changed, not only a control that waits for Python's answer. */
  let due = false;
  const { ask: soon, finish } = onceAFrame(() => {
    drawControls();
    if (due) refresh();
    if (!waiting) stage.root.removeAttribute("aria-busy");
  });

  function read(): State {
    const { view: at, given } = parsed(address.read());
    const found: State = {};
    impossible = [];
    if (at && at !== view.name) return found; // of a view that there is no more
    for (const [name, text] of Object.entries(given)) {
      const parameter = parameters[name];
      const value = parameter && valued(text, parameter.default);
      const known = value !== undefined && has(parameter!, value);
      if (known) found[name] = clamped(value, parameter!);
      if (!known || found[name] !== value) {
        const why = parameter ? takes(parameter) : { en: "no setting of this view", zh: "这个视图没有此设置" };
        impossible.push(t({ en: `${name} = ${brief(text)} (${why.en})`, zh: `${name} = ${brief(text)}（${why.zh}）` }));
      }
    }
    return found;
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
    state = next;
    changed = Object.keys(changes).filter((name) => name in asked);
    address.write(addressOf(state));
    if (canonical(theirs(state)) !== before || notice.element.isConnected) {
      impossible = [];
      void ask();
    }
    else due = true;
    soon();
  }
  /** With what the address says of the page. */
  function addressOf(of: State): string {
    const [text, page] = [written(view.name, of, understood), new URLSearchParams(parsed(address.read()).page).toString()];
    return page ? `${text}${text.includes("?") ? "&" : "?"}${page}` : text;
  }
  /** States that can be computed: this one, with one setting as it opens, and with all. */
  function near(): State[] {
    const here = theirs(state);
    const others = Object.keys(asked).map((name) => ({ ...here, [name]: initial[name]! }));
    return [here, ...others, theirs(initial)].filter((one) => source.computes(view.name, one));
  }
  /** Names the state that is not here, and takes away the drawing of another one. */
  function miss(): void {
    data = null;
    const list = (of: State, unlike: State) => Object.entries(theirs(of)).filter(([name, value]) => value !== unlike[name]).map(([name, value]) => `${labelOf(name)} = ${called(name, value)}`).join(t({ en: ", ", zh: "，" }));
    const next = { ...state, ...nearestState([...stored, ...near()], state, asked, initial, changed) };
    notice.say({
      asked: impossible.length ? impossible.join(t({ en: ", ", zh: "，" })) : list(state, understood), impossible: impossible.length > 0, address: addressOf(state),
      nearest: { text: list(next, impossible.length ? understood : state) || t(view.title), address: addressOf(next) },
    });
    if (!notice.element.isConnected) place_.before(notice.element);
    main.dataset["missing"] = "true";
    trouble.hidden = true;
  }
  async function ask(): Promise<void> {
    if (waiting) {
      stale = true;
      giveUp();
      return;
    }
    const question = source.computes(view.name, theirs(state)) ? theirs(state) : heldState(stored, state, asked, view.controls);
    if (impossible.length || !question) {
      miss();
      again();
      return;
    }
    notice.element.remove();
    delete main.dataset["missing"];
    waiting = true;
    stage.root.setAttribute("aria-busy", "true");
    const show = (found: Data) => {
      data = found;
      answered = question;
      trouble.hidden = true;
    };
    const asking = new AbortController();
    giveUp = () => asking.abort();
    try {
      show(await source.ask(view.name, question, {
        signal: asking.signal,
        partly(found) {
          if (stale) return;
          show(found);
          again();
        },
      }));
    } catch (error) {
      if (!stale) complain(error);
    }
    waiting = false;
    place_.classList.toggle("refused", !trouble.hidden);
    if (stale) {
      stale = false;
      void ask();
      return;
    }
    again();
  }
  /** Draws what is set now. */
  function again(): void {
    due = true;
    soon();
  }
  function refresh(): void {
    due = false;
    main.dataset["ready"] = "true"; // also when Python refuses: the message is shown
    if (!data || !main.isConnected) return;
    lines = "";
    draw(data, { ...state, ...answered });
    frame.drawn?.(view.name, { ...state, ...answered });
    code.draw(data.python + (lines ? `\n${lines}` : ""));
  }

  /** Says what was refused once, in the page's language, beside the field that it is about. */
  function complain(error: unknown): void {
    const [english, text] = error instanceof Said ? [error.words.en, t(error.words)] : [String(error), error instanceof Error ? error.message : String(error)];
    const about = /^(\w+): /.exec(english)?.[1];
    const field = about && main.querySelector(`.control-row [data-name="${about}"]`);
    if (field instanceof HTMLElement && field.checkVisibility()) {
      field.after(trouble);
      trouble.textContent = text.replace(/^[^：:]{1,12}(: |：)/, "");
    } else {
      place_.before(trouble);
      trouble.textContent = text;
    }
    trouble.hidden = false;
  }
  const labelOf = (name: string) => {
    const control = view.controls.find((one) => one.name === name);
    return control ? t(control.label) : name;
  };
  const called = (name: string, value: Value) => {
    const words = view.controls.find((one) => one.name === name)?.choices?.[String(value)] ?? asked[name]!.called?.[String(value)];
    return words ? t(words) : brief(String(value));
  };
  const here = () => address.link(written(view.name, state, understood));
  const save = () => void savePicture({ stage: place_, title: t(view.title), foot: origin(source.version, here(), view.papers?.map(({ text }) => text)) }, view.name);
  const notice = missingNotice(t);
  const trouble = h("p", { class: "trouble", role: "alert", hidden: true });
  const hands = {
    t, set, beyond: (name: string, value: Value) => name in asked && source.beyond(view.name, name, value),
    offered: (name: string) => (offered && name in asked ? [...new Set(offered.map((one) => one[name]!))].sort((a, b) => Number(a) - Number(b) || 0) : null),
  };
  const [panel, more] = [view.controls.slice(0, atOnce()), view.controls.slice(atOnce())].map((some) => controls(some, parameters, hands)) as [Controls, Controls];
  function drawControls(): void {
    panel.draw(state);
    more.draw(state);
    rest.hidden = [...more.element.children].every((one) => (one as HTMLElement).hidden);
  }
  const rest = h("details", { class: "more" }, h("summary", {}, t({ en: "More", zh: "更多" }), h("span", { class: "long" }, t({ en: " settings", zh: "设置" }))), more.element);
  const code = codeCard(t);
  const place_ = h("div", { class: `stage view-${view.name}` });
  const formula = h("section", { class: "card formula-card", "aria-label": t({ en: "Formula", zh: "公式" }) });
  const stage: Stage = {
    root: place_, formula, language: frame.language, t, source, set, state: () => state, checked: frame.checked,
    announce(text) {
      if (!place_.hasAttribute("data-playing")) frame.announce(text);
    },
    code: (text) => void (lines = text),
    motion: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    leaving: frame.leaving,
  };
  fill(main, ...arranged({
    controls: view.controls.length ? h("div", { class: "control-row" }, panel.element, rest) : null, trouble, stage: place_, formula, code: code.element,
    exported: exportedNote(t, view.controls, hands.offered),
    take: h("span", { class: "take" }, h("button", { type: "button", "data-role": "picture", click: save }, t({ en: "Save as picture", zh: "保存为图片" })),
      copyButton(here, t({ en: "Copy link to this state", zh: "复制当前状态的链接" }), t({ en: "Copied", zh: "已复制" })),
      !source.live && copyButton(() => framed(here(), frame.language, t(view.title)), t({ en: "Copy code to embed", zh: "复制嵌入代码" }), t({ en: "Copied", zh: "已复制" }), "embed")),
  }));
  // A key or a click counts on what is drawn, and its own drawing does not wait: only movements come faster than frames.
  for (const kind of ["keydown", "click"]) for (const before of [true, false]) main.addEventListener(kind, finish, before);
  const draw: Draw = view.build(stage);
  drawControls();
  void ask();
  return {
    redraw: again,
    reread() {
      state = { ...initial, ...read() };
      changed = [];
      void ask();
      soon();
    },
  };
}

/** For a page of others. */
function framed(link: string, language: Language, title: string): string {
  const source = `${link}${link.includes("?") ? "&" : "?"}alone=true&lang=${language}`;
  return `<iframe src="${source}" title="${title} · posenc" style="width: 100%; height: 720px; border: 0"></iframe>`;
}

/** Whether a choice or a text is one that the view takes. */
function has({ kind, choices = [], longest = Infinity }: Parameter, value: Value): boolean {
  return kind === "choice" ? choices.includes(String(value)) : typeof value !== "string" || [...value].length <= longest;
}

/** A sentence that stays one, whatever was typed. */
const brief = (text: string) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);

function page(view: View, { t }: Frame, { controls, trouble, stage, exported, formula, code, take }: Parts): Child[] {
  const at = VIEWS.findIndex(({ name }) => name === view.name);
  const lead = firstSentence(t(view.idea));
  const about = t(view.idea).slice(lead.length).trim();
  const link = (to: View | undefined, rel: string, words: Words) => (to ? h("a", { href: `#/${to.name}`, rel }, h("small", {}, t(words)), phrased(t(to.title))) : h("span", {}));
  return [
    h("div", { class: "view-title" }, h("h1", {}, phrased(t(view.title))), h("p", { class: "count" }, String(numberOf(view)))),
    h("p", { class: "lead" }, lead),
    controls, trouble, stage, exported, formula,
    h("div", { class: "pair" },
      h("section", { class: "card notice" }, about && h("p", { class: "about" }, about), h("h2", {}, t({ en: "What to notice", zh: "要点" })), h("ul", {}, ...view.notice.map((words) => h("li", {}, t(words)))),
        ...view.controls.map(({ rule }) => rule && h("p", { class: "rule small" }, h("b", {}, t({ en: "Your sentence. ", zh: "你的句子。" })), t(rule))),
        view.papers?.length ? h("p", { class: "papers" }, ...view.papers.flatMap((paper, index) => [index ? " · " : "", h("a", { href: paper.href, rel: "noreferrer", target: "_blank" }, paper.text)])) : null),
      code),
    h("nav", { class: "onward", "aria-label": t({ en: "Neighbouring views", zh: "相邻视图" }) }, link(VIEWS[at - 1], "prev", { en: "Previous", zh: "上一个" }),
      take, link(VIEWS[at + 1], "next", { en: "Next", zh: "下一个" })),
  ];
}
