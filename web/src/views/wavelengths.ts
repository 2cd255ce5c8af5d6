// The wavelength of each pair of channels, and which pairs do not complete a turn.
//
//   λ (log)        ○ ○   do not complete a turn
//    │ ─ ─ ─ ○─ ─ ─ ─ ─  L
//    │   ● ●
//    └ ● ───────────► pair

import { array, type Data } from "../data";
import { type Child, fill, h, refill, s } from "../dom";
import { scale, tidy } from "../parts/chart";
import { formula, put, sub, sup, v } from "../parts/formula";
import { folded, plainTable } from "../parts/numbers";
import { predict } from "../parts/predict";
import { number, own, type Stage, type View } from "../view";
import { both, shown } from "../words";
import styles from "./wavelengths.css";

const OWN = { pair: own.whole(46, 0, 4095) };
const MOST_ROWS = 128;

export const view: View = {
  name: "wavelengths",
  title: both("What 10000 does", "10000 起什么作用"),
  idea: both(
    "Each pair of channels rotates with its own frequency, and the base, 10000 in the original paper, sets the lowest ones. A pair whose wavelength is longer than the text does not complete a turn within it.",
    "每对通道按自己的频率旋转，底数（原论文取 10000）决定最低的频率。波长比文本还长的通道对，在整段文本里转不满一圈。",
  ),
  notice: [
    both(
      "On this logarithmic axis the pairs of the formula lie on a straight line: each wavelength is base^(2/d) times the one before.",
      "纵轴取对数时，公式给出的各通道对排成一条直线：每一对的波长都是前一对的 base^(2/d) 倍。",
    ),
    both(
      "Base 10000, d = 128, 4096 positions: 18 of 64 pairs do not complete a turn. Beyond that length they reach angles not seen in training. Their frequencies do not change.",
      "底数 10000、d = 128、长度 4096 时，64 个通道对中有 18 个转不满一圈。超出这个长度后，它们会转到训练中没有出现过的角度；频率不变。",
    ),
    both(
      "At d = 512 the wavelengths run from 6.28 to 60 611, which is 0.965 · 20000π. No pair reaches the limit 20000π.",
      "d = 512 时，波长从 6.28 到 60 611，即 0.965 · 20000π：20000π 只是极限，并没有哪一对真正达到。",
    ),
    both(
      "Llama 3.1 keeps its fast pairs and divides the frequencies of the slow ones by 8. Choose it above the drawing.",
      "Llama 3.1 保持高频通道对不变，把低频通道对的频率除以 8。可在图的上方选择它。",
    ),
  ],
  papers: [
    { text: "Vaswani et al. 2017, section 3.5", href: "https://arxiv.org/abs/1706.03762" },
    { text: "Su et al. 2021 (RoPE)", href: "https://arxiv.org/abs/2104.09864" },
    { text: "Peng et al. 2023 (YaRN)", href: "https://arxiv.org/abs/2309.00071" },
  ],
  own: OWN,
  styles,
  controls: [
    { name: "base", label: both("base", "底数"), scale: "log", when: (state) => state["config"] === "" },
    { name: "d_model", label: both("channels d", "通道数 d"), when: (state) => state["config"] === "" },
    { name: "length", label: both("positions L", "位置数 L"), scale: "log", when: (state) => state["config"] === "" },
    { name: "layer", label: both("layer", "层"), when: (state) => state["config"] !== "" },
  ],
  build(stage) {
    const { t } = stage;
    const headline = h("p", { class: "headline" });
    const rungs = ladder(stage, (pair) => stage.set({ pair }));
    const turn = s("svg", { class: "turn", viewBox: "0 0 120 120", role: "img" });
    const wave = h("div", { class: "wave", role: "img" });
    const about = h("p", { class: "about" });
    const rows = h("div", {});
    const numbers = folded(t(both("Numbers of this chart", "这张图的数值")), rows);
    const model = ownModel(stage);
    const question = predict(stage, {
      question: both(
        "Llama 3 raises the base from 10000 to 500000. How many of 64 pairs then do not complete a turn within 4096 positions? (At 10000 there are 18.)",
        "Llama 3 把底数从 10000 提高到 500000。这时 64 个通道对中有多少个在 4096 个位置内转不满一圈？（底数为 10000 时是 18 个。）",
      ),
      choices: [both("fewer: 9", "更少：9 个"), both("as many: 18", "一样：18 个"), both("more: 32", "更多：32 个")],
      right: 2,
      because: both(
        "32: a larger base lowers the frequency of every pair except the first, so more of them stay below one turn. The chart above now uses this base.",
        "是 32 个：底数变大，除最快的一个外，每个通道对的频率都变低，转不满一圈的更多。上图已换成这个底数。",
      ),
    }, () => stage.set({ config: "", base: 500000, d_model: 128, length: 4096 }));
    stage.root.append(rungs.element, headline, model.examples, model.found, h("div", { class: "chosen" }, turn, h("div", {}, about, wave)), numbers,
      model.paste, question);
    let checkedOf: Data | null = null;
    let before = -1;
    let table = () => {};
    let again = () => {};
    const watch = new ResizeObserver(() => again());
    watch.observe(wave);
    stage.leaving(() => watch.disconnect());
    numbers.addEventListener("toggle", () => table());

    return (data, state) => {
      const values = (name: string) => array(data, name).values as Float64Array;
      const [omega, wavelength, end] = [values("omega"), values("wavelength"), values("sine_at_end")];
      const original = data.arrays["original"]?.values as Float64Array | undefined;
      const { length, unfinished } = data.facts as { length: number; unfinished: number };
      const n = omega.length;
      const pair = Math.min(number(state, "pair"), n - 1);
      const fresh = checkedOf !== null && checkedOf !== data;
      if (checkedOf !== data) {
        checkedOf = data;
        stage.checked(omega.reduce((worst, w, i) => Math.max(worst, Math.abs(Math.sin(w * length) - end[i]!)), 0), n);
        const finite = wavelength.filter(Number.isFinite);
        refill(headline, t(both("", `${n} 个通道对中有 `)), h("b", { "data-role": "unfinished", "data-value": unfinished }, unfinished),
          t(both(` of ${n} pairs do not complete a turn within ${length} positions.`, ` 个在 ${length} 个位置内转不满一圈。`)),
          h("span", {}, t(both(" Wavelengths ", " 波长 ")),
            h("span", { "data-role": "shortest", "data-value": Math.min(...finite) }, shown(Math.min(...finite), 2)), " … ",
            h("span", { "data-role": "longest", "data-value": Math.max(...finite) }, shown(Math.max(...finite), 1)), t(both(" positions.", " 个位置。"))));
      }
      rungs.draw({ data, wavelength, original: original?.map((w) => (2 * Math.PI) / w), length, pair, trained: data.facts["model"]?.trained_length ?? null });
      const turns = length / wavelength[pair]!;
      const share = turns < 10 ? shown(turns, 2) : shown(turns, 1);
      const unit = t(turns < 1 ? both("of a turn", "圈") : both("turns", "圈"));
      drawTurn(turn, turns, share, unit);
      again = () => drawWave(wave, omega[pair]!, length, turns, t(both(`sin(p·ω) of pair ${pair} over ${length} positions`, `通道对 ${pair} 的 sin(p·ω)，共 ${length} 个位置`)));
      again();
      refill(about, t(both("Within ", "在 ")), put(length, "position"), t(both(" positions, pair ", " 个位置内，通道对 ")), put(pair, "channel"),
        t(both(" makes ", " 转 ")), h("output", { "data-role": "turns", "data-value": turns }, share),
        t(turns < 1 ? both(" of a turn, less than one.", " 圈：转不满一圈。") : both(" turns. The thick line is the first turn.", " 圈。粗线是第一圈。")));
      const result = h("output", { "data-role": "wavelength", "data-value": wavelength[pair]! }, shown(wavelength[pair]!, 2));
      refill(stage.formula, data.facts["model"] ? ofModel(stage, data, pair, result) : formula(
        [v("λ"), sub("i"), " = 2π · base", sup("2i/d")],
        [v("λ"), sub(put(pair, "channel")), " = 2π · ", put(tidy(number(state, "base"))),
          sup("2·", put(pair, "channel"), "/", put(number(state, "d_model"))), " = ", result, " ", t(both("positions a turn", "个位置转一圈"))],
        ["L / ", v("λ"), sub(put(pair, "channel")), " = ", put(length, "position"), " / ", put(shown(wavelength[pair]!, 2)), " = ", put(shown(turns, 4)),
          " ", unit],
      ));
      table = () => {
        if (!numbers.matches("[open]")) return;
        const step = Math.ceil(n / MOST_ROWS);
        const chosen = [...omega.keys()].filter((i) => i % step === 0 || i === pair);
        const head = both("pair|frequency ω|wavelength λ|turns within L", "通道对|频率 ω|波长 λ|L 内的圈数");
        refill(rows, plainTable(t(both("Every pair's frequency and wavelength", "各通道对的频率与波长")), t(head).split("|"),
          chosen.map((i) => [String(i), omega[i]!, wavelength[i]!, length / wavelength[i]!])));
      };
      table();
      model.draw(data, state["config"] as string);
      const long = shown(wavelength[pair]!, 1);
      if (fresh) stage.announce(headline.textContent!);
      else if (before >= 0 && before !== pair)
        stage.announce(t(both(`pair ${pair}: wavelength ${long} positions, ${share} ${unit}`, `通道对 ${pair}：波长 ${long} 个位置，${share} 圈`)));
      before = pair;
      stage.code(`wavelength[${pair}]  # ${wavelength[pair]}`);
    };
  },
};

function ofModel(stage: Stage, data: Data, pair: number, result: HTMLElement): HTMLElement {
  const { base, width } = data.facts["model"] as { base: number; width: number };
  const omega = array(data, "omega").values[pair]!;
  const original = data.arrays["original"]?.values[pair];
  const plain: Child[] = ["2π · ", put(tidy(base)), sup("2·", put(pair, "channel"), "/", put(width))];
  return formula(
    [v("λ"), sub("i"), " = 2π / |", v("ω"), sub("i"), "|"],
    [v("λ"), sub(put(pair, "channel")), " = 2π / ", put(shown(Math.abs(omega), 6)), " = ", result, " ", stage.t(both("positions a turn", "个位置转一圈"))],
    original === undefined ? [stage.t(both("without scaling, by the formula: ", "没有缩放，与公式相同：")), ...plain]
      : [stage.t(both("before scaling: ", "缩放之前：")), ...plain, " = ", put(shown((2 * Math.PI) / original, 2)),
        stage.t(both("; frequency now divided by ", "；现在频率除以 ")),
        h("output", { "data-role": "slower", "data-value": original / omega }, shown(original / omega, 3))],
  );
}

interface Rungs {
  data: Data;
  wavelength: Float64Array;
  /** Before the model's scaling. */
  original: Float64Array | undefined;
  length: number;
  trained: number | null;
  pair: number;
}

function ladder(stage: Stage, pick: (pair: number) => void): { element: HTMLElement; draw(state: Rungs): void } {
  const [left, right, top, bottom] = [54, 12, 26, 38];
  const label = stage.t(both("Wavelength of every pair, on a logarithmic axis. Left and right move from pair to pair.", "各通道对的波长，纵轴取对数。左右方向键切换到相邻的通道对。"));
  const figure = h("div", { class: "chart", tabindex: 0, role: "application", "aria-roledescription": stage.t(both("chart", "图")), "aria-label": label });
  const legend = h("ul", { class: "legend" });
  let last: Rungs | null = null;
  let drawn: [Data, number] | null = null;
  let x = (_: number) => 0;
  let y = (_: number) => 0;
  let bounds: [number, number] = [1, 1];
  const cursor = s("g", {});

  function draw(state: Rungs): void {
    last = state;
    const { wavelength, pair } = state;
    const width = Math.max(figure.clientWidth, 260);
    if (!drawn || drawn[0] !== state.data || drawn[1] !== width) {
      drawn = [state.data, width];
      frame(state, width, width < 500 ? 300 : 380);
    }
    const [cx, cy] = [x(pair), y(wavelength[pair]!)];
    const toLeft = cx > left + 190; // the pairs before it lie lower, so that there is room above them
    refill(cursor, s("line", { class: "pick", x1: cx, x2: cx, y1: top, y2: bounds[1] }), s("circle", { class: "pick", cx, cy, r: 7 }),
      s("text", { class: "pick", x: cx + (toLeft ? -9 : 13), y: toLeft ? cy - 12 : Math.min(cy + 18, bounds[1] - 6),
        "text-anchor": toLeft ? "end" : "start" }, `${stage.t(both("pair", "通道对"))} ${pair}: λ = ${shown(wavelength[pair]!, 1)}`));
  }

  function frame({ wavelength, original, length, trained }: Rungs, width: number, height: number): void {
    const n = wavelength.length;
    const finite = [...wavelength, ...(original ?? []), length].filter(Number.isFinite);
    const [low, high] = [Math.min(...finite) / 1.6, Math.max(...finite) * 2.2];
    bounds = [top, height - bottom];
    const up = scale(low, high, height - bottom, top, "log");
    const step = (width - right - left) / n;
    x = (i) => left + (i + 0.5) * step;
    y = (value) => Math.max(up.place(value), top);
    const picture = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" });
    const add = (...children: SVGElement[]) => picture.append(...children);
    add(s("rect", { class: "beyond", x: left, width: width - right - left, y: top, height: y(length) - top }));
    for (const tick of up.ticks(6)) add(s("line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
      s("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, tidy(tick)));
    for (const tick of scale(0, n - 1, 0, 1).ticks(Math.max(3, width / 110))) if (Number.isInteger(tick)) add(s("text",
      { x: x(tick), y: height - bottom + 18, "text-anchor": "middle" }, tick));
    add(s("text", { class: "axis-word", x: 2, y: 12 }, stage.t(both("wavelength λ in positions", "波长 λ（单位：位置）"))),
      s("text", { class: "axis-word", x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle" },
      stage.t(both("pair, fast to slow", "通道对（由快到慢）"))));
    const size = Math.min(Math.max(step * 0.62, 2.5), 9);
    const dots = (values: ArrayLike<number>, kept: (value: number) => boolean) => Array.from(values,
      (value, i) => (kept(value) ? `M${x(i).toFixed(1)} ${y(value).toFixed(1)}h.01` : "")).join("");
    const stems = (kept: (value: number) => boolean) => Array.from(wavelength,
      (value, i) => (kept(value) ? `M${x(i).toFixed(1)} ${bounds[1]}V${y(value).toFixed(1)}` : "")).join("");
    for (const [name, kept] of [["finished", (value: number) => value <= length], ["unfinished", (value: number) => value > length]] as const)
      add(s("path", { class: `stems ${name}`, d: stems(kept), "stroke-width": Math.min(Math.max(step * 0.3, 0.5), 3) }),
        s("path", { class: `dots ${name}`, d: dots(wavelength, kept), "stroke-width": size }));
    if (original) add(s("path", { class: "dots before", d: dots(original, () => true), "stroke-width": Math.max(size * 0.5, 2) }));
    if (trained && trained !== length) add(level(trained, stage.t(both(`first trained at ${trained}`, `最初训练长度 ${trained}`)), "mark", width));
    add(level(length, `L = ${length}`, "length", width), cursor);
    figure.replaceChildren(picture);
    const entry = (kind: string, en: string, zh: string) => h("li", {}, h("i", { class: `dot ${kind}` }), stage.t(both(en, zh)));
    fill(legend, entry("finished", "completes a turn within L", "L 内转满一圈"), entry("unfinished", "does not complete a turn: λ > L", "转不满一圈：λ > L"),
      original && entry("before", "before the model's scaling", "模型缩放之前"));
  }

  function level(value: number, word: string, kind: string, width: number): SVGElement {
    return s("g", {}, s("line", { class: kind, x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      s("text", { class: kind, x: left + 8, y: y(value) + 16 }, word));
  }

  const at = (event: PointerEvent) => {
    if (!last) return;
    const box = figure.getBoundingClientRect();
    const n = last.wavelength.length;
    pick(Math.min(Math.max(Math.floor(((event.clientX - box.left - left) / (box.width - left - right)) * n), 0), n - 1));
  };
  figure.addEventListener("pointerdown", at);
  figure.addEventListener("pointermove", (event) => event.buttons & 1 && at(event));
  figure.addEventListener("keydown", (event) => {
    if (!last || event.ctrlKey || event.metaKey || event.altKey) return;
    const { pair, wavelength } = last;
    const next = { ArrowLeft: pair - 1, ArrowRight: pair + 1, PageUp: pair - 10, PageDown: pair + 10, Home: 0, End: wavelength.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    pick(Math.min(Math.max(next, 0), wavelength.length - 1));
  });
  const watch = new ResizeObserver(() => last && draw(last));
  watch.observe(figure);
  stage.leaving(() => watch.disconnect());
  return { element: h("div", { class: "ladder" }, legend, figure), draw };
}

/** The angle covered by a pair; a full ring from one turn on. */
function drawTurn(place: SVGElement, turns: number, share: string, unit: string): void {
  const r = 46;
  const angle = 2 * Math.PI * Math.min(turns, 1);
  const [ex, ey] = [60 + r * Math.cos(angle), 60 - r * Math.sin(angle)];
  const done = turns >= 1;
  refill(place, s("circle", { class: "ring", cx: 60, cy: 60, r }),
    done ? s("circle", { class: "swept", cx: 60, cy: 60, r }) : s("path",
      { class: "swept unfinished", d: `M${60 + r} 60A${r} ${r} 0 ${turns > 0.5 ? 1 : 0} 0 ${ex} ${ey}` }),
    s("circle", { class: done ? "tip" : "tip unfinished", cx: done ? 60 + r : ex, cy: done ? 60 : ey, r: 5 }),
      s("text", { class: "share", x: 60, y: 62, "text-anchor": "middle" }, share), s("text", { x: 60, y: 78, "text-anchor": "middle" }, unit));
  place.setAttribute("aria-label", `${share} ${unit}`);
}

/** The sine over all L positions; a filled band if its turns are too narrow to draw. */
function drawWave(place: HTMLElement, omega: number, length: number, turns: number, word: string): void {
  const [width, height] = [Math.max(place.clientWidth, 200), 96];
  const x = (p: number) => 4 + (p / length) * (width - 8);
  const y = (value: number) => height / 2 - value * (height / 2 - 8);
  const curve = (to: number) => {
    const steps = Math.ceil(Math.min(Math.max((to / length) * turns * 40, 60), 4000));
    return Array.from({ length: steps + 1 },
      (_, index) => `${index ? "L" : "M"}${x((index / steps) * to).toFixed(1)} ${y(Math.sin(((omega * index) / steps) * to)).toFixed(1)}`).join("");
  };
  const narrow = (width - 8) / turns < 5;
  fill(place, s("svg", { viewBox: `0 0 ${width} ${height}`, width, height }, s("line", { class: "grid", x1: 0, x2: width, y1: y(0), y2: y(0) }),
    narrow ? s("rect", { class: "whole", x: x(0), width: width - 8, y: y(1), height: y(-1) - y(1) }) : s("path", { class: "line rest", d: curve(length) }),
    s("path", { class: turns < 1 ? "line first unfinished" : "line first", d: curve(Math.min(length, length / turns)) })));
  place.setAttribute("aria-label", word);
}

/** A model's configuration, pasted or an example, and the values read from it. */
function ownModel(stage: Stage): { examples: HTMLElement; found: HTMLElement; paste: HTMLElement; draw(data: Data, config: string): void } {
  const { t } = stage;
  const offered = Object.entries(stage.source.schemas["wavelengths"]!["config"]!.examples!);
  let written = "";
  const read = (config: string) => stage.set({ config, ...(config ? {} : { layer: 0 }) });
  const examples = h("div", { class: "choices", role: "group", "aria-label": t(both("Whose frequencies", "谁的频率")) });
  const field = h("textarea", { rows: 7, spellcheck: "false", "data-role": "config", "aria-label": t(both("A model's config.json", "模型的 config.json")),
    change: () => read(field.value) });
  const found = h("dl", { class: "found" });
  const paste = stage.source.live
    ? h("details", { class: "paste" }, h("summary", {}, t(both("Another model: paste its config.json", "换一个模型：粘贴它的 config.json"))),
        h("p", { class: "hint" }, t(both("It is read on this machine and not sent anywhere.", "内容只在本机读取，不会发往别处。"))),
        field, h("button", { type: "button", class: "primary", "data-role": "read", click: () => read(field.value) }, t(both("Read it", "读取"))))
    : h("p", { class: "hint" }, t(both("Start posenc explore to read your own config.json here.", "运行 posenc explore，就能在这里读取你自己的 config.json。")));
  return {
    examples, found, paste,
    draw(data, config) {
      const button = (name: string, text: string) => h("button",
        { type: "button", class: "choice", "aria-pressed": String(text === config), "data-config": name, click: () => read(text) }, name);
      const focused = (examples.contains(document.activeElement) && (document.activeElement as HTMLElement).dataset["config"]) || null;
      fill(examples, button(t(both("the formula", "公式")), ""), ...offered.map(([name, text]) => button(name, text)));
      for (const one of examples.querySelectorAll<HTMLElement>("button")) if (one.dataset["config"] === focused) one.focus();
      // What is typed and not yet read stays: a drawing may come between the typing and the answer.
      if (config !== written && field !== document.activeElement) field.value = config;
      written = config;
      const model = data.facts["model"] as Record<string, any> | undefined;
      found.hidden = !model;
      if (!model) return;
      const line = (name: string, ...value: Child[]) => [h("dt", {}, name), h("dd", {}, ...value)];
      fill(found,
        ...line(t(both("family", "模型系列")), model["family"], model["part"] ? `, ${model["part"]}` : ""),
        ...line(t(both("layer", "层")), `${model["layer"]} / ${model["n_layers"]}, ${model["kind"]}`,
          model["window"] ? t(both(`, sees ${model["window"]} tokens`, `，窗口 ${model["window"]} 个词元`)) : ""),
        ...line(t(both("original base", "原始底数")), h("b", { "data-role": "base", "data-value": model["base"] }, tidy(model["base"])),
          t(both(`, over ${model["width"]} channels`, `，作用于 ${model["width"]} 个通道`))),
        ...line(t(both("frequencies from", "频率来自")), h("code", { "data-role": "values-from" }, model["values_from"])),
        ...line(t(both("length L", "长度 L")),
          model["trained"] ? t(both(`${model["trained"]}, as the file says`, `${model["trained"]}，由配置文件给出`)) : t(both("not in the file", "配置文件没有给出"))),
        ...(model["cos_sin_scale"] === 1 ? [] : line(t(both("cos and sin times", "cos 与 sin 乘以")), shown(model["cos_sin_scale"], 4))));
    },
  };
}
