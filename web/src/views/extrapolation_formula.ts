// The formula of a method with the numbers of one pair.

import { h, type Child } from "../dom";
import { formula, fraction, put, sub, sup, v } from "../parts/formula";
import type { Stage } from "../view";
import { both, shown } from "../words";
import { tidy, TURN, type Method, type Reader } from "./extrapolation_methods";

export function substituted(stage: Stage, facts: Record<string, any>, method: Method, of: Reader, m: number, pair: number, factor: number): HTMLElement {
  const { t } = stage;
  const [d, base, trained] = [facts["d"] as number, facts["base"] as number, facts["trained"] as number];
  const n = put(pair, "channel");
  const plain = put(shown(of.omega(0, pair), 6), "channel");
  const result = put(shown(of.omega(m, pair), 6), "channel");
  const power = (of: Child) => [of, sup("−2·", put(pair, "channel"), "/", put(d))];
  const omega = [v("ω"), sub(n)];
  const lines: Child[][] = [[...omega, " = base", sup("−2i/d"), " = ", ...power(put(tidy(base))), " = ", plain]];
  const slowed = [v("ω′"), sub(put(pair, "channel"))];
  if (method.name === "none") lines.push([...slowed, " = ", v("ω"), " = ", result]);
  if (method.name === "linear") lines.push([...slowed, " = ", v("ω"), "/", v("s"), " = ",
    fraction(put(shown(of.omega(0, pair), 6)), put(tidy(factor))), " = ", result]);
  if (method.name === "ntk") lines.push(
    ["base′ = base · ", v("s"), sup("d/(d−2)"), " = ", put(tidy(base)), " · ", put(tidy(factor)), sup(put(d), "/", put(d - 2)), " = ",
      put(tidy(facts["ntk_base"]))],
    [...slowed, " = base′", sup("−2i/d"), " = ", ...power(put(tidy(facts["ntk_base"]))), " = ", result]);
  if (method.name === "yarn") {
    const [low, high] = facts["ramp"] as [number, number];
    const gamma = Math.min(Math.max((pair - low) / (high - low), 0), 1);
    lines.push(
      [v("γ"), " = clip(", fraction("i − low", "high − low"), ", 0, 1) = clip(",
        fraction(span(put(pair, "channel"), " − ", put(tidy(low))), span(put(tidy(high)), " − ", put(tidy(low)))), ", 0, 1) = ", put(shown(gamma))],
      [...slowed, " = ", v("ω"), "(1 − ", v("γ"), ") + ", fraction(v("ω"), v("s")), v("γ"), " = ", result]);
  }
  if (method.name === "llama3") {
    const [low, high] = facts["llama3"] as [number, number];
    const turns = of.trained(pair) / TURN;
    const keep = Math.min(Math.max((turns - low) / (high - low), 0), 1);
    lines.push(
      [v("t"), " = ", v("L"), v("ω"), "/2π = ", put(shown(turns)), t(both(" turns in training", " 圈（训练中）")), ",  ", v("k"), " = clip(",
        fraction(span(put(shown(turns)), " − ", put(low)), span(put(high), " − ", put(low))), ", 0, 1) = ", put(shown(keep))],
      [...slowed, " = (1 − ", v("k"), ")", fraction(v("ω"), v("s")), " + ", v("k"), v("ω"), " = ", result]);
  }
  if (method.name === "config") lines.push([...slowed, " = ", result, h("span", { class: "small" }, t(both("  from the file", "（取自文件）")))]);
  lines.push(
    [t(both("in training: ", "训练中：")), v("ω"), v("L"), " = ", plain.cloneNode(true), " · ", put(trained, "position"), " = ",
      h("output", {}, shown(of.trained(pair))), t(both(" radians", " 弧度"))],
    [t(both("beyond: ", "超出后：")), v("ω′"), v("s"), v("L"), " = ", result.cloneNode(true), " · ", put(tidy(trained * factor), "position"), " = ",
      h("output", { "data-role": "angle", "data-value": of.target(m, pair) }, shown(of.target(m, pair))), t(both(" radians", " 弧度"))]);
  if (method.cos_sin_scale !== 1) lines.push(["cos, sin × ", put(shown(method.cos_sin_scale)),
    method.name === "yarn" ? span(" = 1 + 0.1·ln ", put(tidy(factor))) : null, t(both("; the logits get its square, ", "；注意力分数乘以其平方 ")),
    put(shown(method.cos_sin_scale ** 2))]);
  return formula(...lines);
}

function span(...children: Child[]): HTMLElement {
  return h("span", {}, ...children);
}
