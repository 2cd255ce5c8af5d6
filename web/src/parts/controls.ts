// Controls above a drawing, from the bounds that Python gives.

import { h } from "../dom";
import { applies } from "../missing";
import type { Parameter, State, Value } from "../source";
import { clamped, type Control } from "../view";
import { SPLIT, type Words } from "../words";
import { tidy } from "./chart";
import { segmented } from "./segmented";

export interface Controls {
  element: HTMLElement;
  draw(state: State): void;
}

interface Hands {
  t(words: Words): string;
  set(changes: State): void;
  /** The values that can be asked for; null where any can. */
  offered(name: string): Value[] | null;
  /** Whether nothing with this value can be asked for. */
  beyond?(name: string, value: Value): boolean;
}

export function controls(list: Control[], parameters: Record<string, Parameter>, hands: Hands): Controls {
  const made = list.map((control) => {
    const parameter = parameters[control.name];
    if (!parameter) throw new Error(`no parameter ${control.name}`);
    const offered = hands.offered(control.name);
    const one = offered ? chosen(control, parameter, offered, hands) : ours(control, parameter, hands);
    one.element.dataset["name"] = control.name;
    return { ...one, control, parameter };
  });
  return {
    element: h("div", { class: "controls" }, ...made.map((one) => one.element)),
    draw(state) {
      for (const { element, control, parameter, draw } of made) {
        element.hidden = !applies(parameter, control, state);
        draw(state[control.name]!);
      }
    },
  };
}

interface One {
  element: HTMLElement;
  draw(value: Value): void;
}

function ours(control: Control, parameter: Parameter, hands: Hands): One {
  if (parameter.kind === "boolean") return toggled(control, hands);
  if (parameter.kind === "choice") return chosen(control, parameter, parameter.choices ?? [], hands);
  if (parameter.kind === "string") return text(control, parameter, hands);
  return slider(control, parameter, hands);
}

function toggled({ name, label }: Control, hands: Hands): One {
  const input = h("input", { type: "checkbox", role: "switch", change: () => hands.set({ [name]: input.checked }) });
  return { element: h("label", { class: "toggle" }, input, h("span", {}, hands.t(label))), draw: (value) => void (input.checked = value === true) };
}

function chosen({ name, label, choices }: Control, parameter: Parameter, values: Value[], hands: Hands): One {
  const called = (value: Value) => {
    const words = choices?.[String(value)] ?? parameter.called?.[String(value)];
    return words ? hands.t(words) : typeof value === "number" ? tidy(value) : String(value);
  };
  const [here, elsewhere] = [false, true].map((beyond) => values.filter((value) => !!hands.beyond?.(name, value) === beyond)) as [Value[], Value[]];
  values = [...here, ...elsewhere];
  const options = (some: Value[]) => some.map((value) => h("option", {}, called(value)));
  const select = h("select", { disabled: values.length < 2, change: () => hands.set({ [name]: values[select.selectedIndex]! }) }, ...options(here),
    elsewhere.length > 0 && h("optgroup", { label: hands.t({ en: "posenc explore shows these", zh: "需要运行 posenc explore" }) }, ...options(elsewhere)));
  /** Only while a value is set that cannot be asked for: the others lead back. */
  const other = h("option", { disabled: true });
  const typed = parameter.kind === "string" && h("small", { class: "hint" }, hands.t({ en: "posenc explore takes your own", zh: "运行 posenc explore 可输入自己的句子" }));
  return { element: h("label", {}, h("span", {}, hands.t(label)), select, typed), draw(value) {
    const at = values.indexOf(value);
    if (at < 0) {
      other.textContent = called(value);
      select.append(other);
    } else other.remove();
    select.disabled = select.options.length < 2;
    select.selectedIndex = at < 0 ? values.length : at;
  } };
}

function text({ name, label, as, examples, rule }: Control, { longest }: Parameter, hands: Hands): One {
  const send = () => hands.set({ [name]: field.value });
  const id = `examples-${name}`;
  const list = examples && h("datalist", { id }, ...examples.map((one) => h("option", { value: one })));
  const field = as === "lines" ? h("textarea", { rows: 4, maxlength: longest, spellcheck: "false", change: send })
    : h("input", { type: "text", maxlength: longest, list: list && id, class: as === "sentence" ? "sentence" : "", change: send });
  const cut = rule === SPLIT ? segmented(hands.t, (sentence) => hands.set({ [name]: sentence })) : null;
  const labelled = h("label", { class: as === "lines" ? "wide" : "" }, h("span", {}, hands.t(label)), field, list);
  return {
    element: cut ? h("div", { class: "typed" }, labelled, cut.element) : labelled,
    draw(value) {
      cut?.draw(String(value));
      if (field.value !== value && field !== field.ownerDocument.activeElement) field.value = String(value);
    },
  };
}

function slider({ name, label, scale, as }: Control, parameter: Parameter, hands: Hands): One {
  const { from = 0, to = 1 } = parameter;
  const whole = parameter.kind === "integer";
  const steps = whole && !scale ? to - from : 1000;
  const share = (value: number) => (scale ? Math.log(value / from) / Math.log(to / from) : (value - from) / (to - from));
  const value = (at: number) => {
    const raw = scale ? from * (to / from) ** at : from + at * (to - from);
    return clamped(Number(raw.toPrecision(scale ? 3 : 6)), parameter);
  };
  const number = h("input", { type: "number", min: from, max: to, step: parameter.step ?? (whole ? 1 : "any"), change: () => {
    const given = Number(number.value);
    if (number.value.trim() && Number.isFinite(given)) hands.set({ [name]: clamped(given, parameter) });
  } });
  const range = h("input", { type: "range", min: 0, max: steps, step: "any", "aria-label": hands.t(label), input: () => hands.set({ [name]: value(Number(range.value) / steps) }) });
  range.step = String(whole && !scale ? 1 : steps / 1000);
  return {
    element: h("label", { class: "slider" }, h("span", {}, hands.t(label)), as === "number" ? null : range, number),
    draw(now) {
      range.value = String(share(now as number) * steps);
      range.setAttribute("aria-valuetext", String(now));
      if (number !== number.ownerDocument.activeElement || Number(number.value) !== now) number.value = String(now);
    },
  };
}
