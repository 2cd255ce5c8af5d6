// loss at n bytes = mean of -log₂ p(byte | bytes before it) over the last 32 bytes, n from half of the trained length to 8 times
//
//   text      ▓▓▓▓▓▓▓▓│─────────────────────●        the marked part is as long as what training showed
//   voices    what each model writes there
//   curve     its loss, as far as the text goes

import { encodingColour } from "../colours";
import { h, s, set } from "../dom";
import { draggable } from "../parts/drag";
import { after, animate, clamp, ease, mix, still } from "../parts/motion";
import { both, type Words } from "../words";
import type { Chapter, Drawn, Scene } from "./chapter";

interface Stop {
  bytes: number;
  chars: number;
  /** Bits a byte of each model. */
  near: number[];
  written?: string[];
}

/** As explorer/growth.py has stored it. */
interface Growth {
  trained: number;
  longest: number;
  near: number;
  models: string[];
  en: { text: string; stops: Stop[] };
  zh: { text: string; stops: Stop[] };
}

const NAMES = ["ALiBi", "RoPE", "RoPE + YaRN"];
const HOW: Words[] = [both("adds a penalty for distance", "按距离减分"), both("rotates by position", "按位置旋转"), both("the RoPE model, rotated more slowly", "同一个 RoPE 模型，转得慢些")];
const HALTS = [0.5, 1, 2, 4, 6, 8]; // times the trained length
const MOST = 10.8; // bits, the top of the curve
const [GROWS, WRITES, RESTS, ASKS] = [900, 800, 1000, 7000]; // milliseconds
const LETTERS = 70;

export const grows: Chapter = {
  title: both("When the text is longer than in training", "文本比训练时更长"),
  found: both("RoPE fails on longer text, ALiBi does not", "文本一长，RoPE 失效，ALiBi 照常"),
  need: both(
    "Two small models, one with ALiBi and one with RoPE, were trained on texts of {trained} bytes, the marked part. Now the text grows; drag its end.",
    "两个小模型只有一点不同：怎样知道每个词在哪里，一个用 ALiBi，一个用 RoPE。训练时都只读过 {trained} 字节，就是标出的长度。现在文本越来越长，可以拖动末尾的圆点。",
  ),
  question: both("Which model writes nonsense when the text is {most} times as long?", "文本长到 {most} 倍时，哪个模型写的是乱码？"),
  answers: [both("ALiBi", "ALiBi"), both("RoPE", "RoPE"), both("both", "两个都是"), both("neither", "都不是")],
  right: 1,
  verdict: both("RoPE writes nonsense. YaRN changes how fast RoPE rotates, and mends most of it without training.", "RoPE 写的是乱码。YaRN 改变 RoPE 旋转的快慢，不用再训练就能修好大半。"),
  before: both("At {times} times the trained length, the error at each next byte is {alibi} bits with ALiBi, {rope} with RoPE, and {yarn} with RoPE and YaRN.", "到训练长度的 {times} 倍时，猜下一个字节，ALiBi 的误差是 {alibi} 比特，RoPE 是 {rope} 比特，加了 YaRN 的 RoPE 是 {yarn} 比特。"),
  after: both("At {times} times the trained length, the error at each next byte is {alibi} bits with ALiBi, {rope} with RoPE, and {yarn} with RoPE and YaRN. A blind guess has {guess}.", "到训练长度的 {times} 倍时，猜下一个字节，ALiBi 的误差是 {alibi} 比特，RoPE 是 {rope} 比特，加了 YaRN 的 RoPE 是 {yarn} 比特。瞎猜是 {guess} 比特。"),
  next: both("Why do they differ? Begin with a model that knows no positions at all.", "它们为什么不同？先看一个完全不知道位置的模型。"),
  views: ["stretch", "measured"],
  draw,
};

function draw(scene: Scene): Drawn {
  const { t, language, figure, width, narrow } = scene;
  const { trained, longest, near, models, [language]: tale } = scene.stored["growth"] as Growth;
  const { text, stops } = tale;
  const letters = [...text];
  const colours = models.map(encodingColour);
  const inTraining = stops.findLast((one) => one.bytes <= trained)!.chars;
  const [first, last] = [stops[0]!, stops.at(-1)!];
  const at = scene.keep({ chars: -1 });
  const fresh = at.chars < 0;
  if (fresh) at.chars = first.chars;
  const nearest = (chars: number, all = stops) => all.reduce((best, one) => (Math.abs(one.chars - chars) < Math.abs(best.chars - chars) ? one : best));
  const writing = stops.filter(({ written }) => written);
  const timesOf = ({ bytes }: Stop) => (bytes / trained).toFixed(1);

  // the text, whose end is dragged
  const parts = ["trained", "trained unread", "read", "unread"].map((name) => h("span", { class: name, "aria-hidden": name.includes("unread") ? "true" : undefined }));
  const times = h("span", { class: "times" });
  const knob = h("span", { class: "knob" }, times);
  const words = h("p", { class: "tale", lang: language === "zh" ? "zh-CN" : "en", "data-drag": true }, ...parts, narrow ? null : knob);
  const play = h("button", { type: "button", class: "play" });
  const top = h("p", { class: "bound" }, h("i", {}), h("span", {}, t(both("the length that training showed", "训练时见过的长度"))), play);
  const voices = NAMES.map((name, m) => {
    const [tail, goes] = [h("span", { class: "tail" }), h("span", { class: "goes" })];
    return { tail, goes, element: h("section", { class: "voice", "data-part": models[m]!, style: `--c: ${colours[m]}` }, h("h2", {}, name, h("small", {}, t(HOW[m]!))), h("p", {}, tail, goes)) };
  });

  // the curve: as wide as the text can be long
  const [left, right, above, below] = [22, narrow ? 92 : 150, 20, 20];
  const height = narrow ? 108 : clamp(scene.height - 372, 130, 200);
  const X = (bytes: number) => left + (bytes / longest) * (width - left - right);
  const Y = (bits: number) => above + (1 - bits / MOST) * (height - above - below);
  const guess = 8; // log₂ 256
  const svg = s("svg", { class: "curve", viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": t(both("Loss as the text grows", "文本变长时的损失")) },
    s("rect", { class: "marked", x: X(0), y: Y(MOST), width: X(trained) - X(0), height: Y(0) - Y(MOST), "data-part": "times" }),
    ...[0, guess].flatMap((bits) => [s("path", { class: bits ? "hair dotted" : "hair", d: `M${left} ${Y(bits)}H${width - right}`, "data-part": "guess" }), s("text", { x: left - 8, y: Y(bits) + 4, "text-anchor": "end" }, String(bits))]),
    narrow ? null : s("text", { x: X(trained) + 12, y: Y(guess) - 7, "data-part": "guess" }, t(both("a blind guess", "瞎猜"))),
    s("text", { x: 0, y: 11 }, t(both("error: bits for each next byte", "误差：每个字节的比特数"))),
    ...HALTS.slice(1).map((n) => s("text", { x: X(n * trained), y: height - 3, "text-anchor": "middle", "data-part": "times" }, `${n}×`)));
  const heads = NAMES.map((name, m) => {
    const dashed = models[m] === "yarn";
    const [line, dot, label] = [s("path", { class: dashed ? "line spotted" : "line" }), s("circle", { r: 4.5, class: "dot" }), s("text", { class: "named" })];
    svg.append(s("g", { "data-part": models[m]!, style: `--c: ${colours[m]}` }, line, dot, label));
    return { m, name: narrow ? name.replace("RoPE + ", "") : name, line, dot, label };
  });
  const grip = s("circle", { class: "grip", r: narrow ? 13 : 9, cy: Y(0) });
  if (narrow) svg.append(grip);

  figure.append(top, words, ...(narrow ? [svg, h("div", { class: "voices" }, ...voices.map(({ element }) => element))] : [h("div", { class: "voices" }, ...voices.map(({ element }) => element)), svg]));

  let writes = Infinity; // letters of what the models write
  let voiced = ""; // what the voices show
  let stop = () => {};
  let playing = false;

  function show(): void {
    const chars = Math.round(at.chars);
    const cuts = [0, Math.min(chars, inTraining), inTraining, Math.max(chars, inTraining), letters.length];
    parts.forEach((part, n) => {
      const piece = letters.slice(cuts[n], cuts[n + 1]).join("");
      if (part.textContent !== piece) part.textContent = piece;
    });
    const here = stops.findLast((one) => one.chars <= chars + 0.5) ?? first;
    times.textContent = `${timesOf(here)}×`;
    end(chars);
    // the curves, as far as the text goes
    const b = clamp(stops.findIndex((one) => one.chars > at.chars), -1, stops.length - 1);
    const [p, q] = b < 1 ? [last, last] : [stops[b - 1]!, stops[b]!];
    const share = p === q ? 0 : clamp((at.chars - p.chars) / (q.chars - p.chars), 0, 1);
    const bytes = mix(p.bytes, q.bytes, share);
    const now = models.map((_, m) => mix(p.near[m]!, q.near[m]!, share));
    const places = now.map((bits, m) => ({ m, y: Y(bits) + 4 })).sort((one, other) => other.y - one.y);
    places.forEach((place, n) => n && (place.y = Math.min(place.y, places[n - 1]!.y - 16)));
    for (const { m, name, line, dot, label } of heads) {
      const points = stops.filter((one) => one.chars <= at.chars).map((one) => [X(one.bytes), Y(one.near[m]!)]);
      points.push([X(bytes), Y(now[m]!)]);
      set(line, { d: `M${points.map((one) => one.map((x) => x!.toFixed(1)).join(" ")).join("L")}` });
      set(dot, { cx: X(bytes), cy: Y(now[m]!) });
      set(label, { x: X(bytes) + 12, y: places.find((one) => one.m === m)!.y });
      label.textContent = `${name} ${now[m]!.toFixed(1)}`;
    }
    set(grip, { cx: X(bytes) });
    scene.say({ trained: String(trained), most: String(HALTS.at(-1)), guess: String(guess), times: timesOf(here), ...Object.fromEntries(models.map((name, m) => [name, here.near[m]!.toFixed(1)])) });
    // the voices
    const read = nearest(at.chars, writing);
    const tail = language === "zh" ? letters.slice(Math.max(0, read.chars - 7), read.chars).join("") : text.slice(0, read.chars).split(/\s+/).slice(-3).join(" ");
    const said = `${read.bytes} ${Math.min(writes, LETTERS)}`;
    if (said === voiced) return;
    voiced = said;
    voices.forEach(({ tail: before, goes }, m) => {
      before.textContent = `…${tail}`;
      goes.replaceChildren(...readable([...read.written![m]!.replaceAll("\n", " ")].slice(0, Math.min(writes, LETTERS)).join("")));
    });
  }

  /** Where every letter begins, and the last one ends: measured at once, since a measure after every change is a layout. */
  let places: [number, number][] = [];
  function measured(): [number, number][] {
    const [range, box] = [document.createRange(), words.getBoundingClientRect()];
    const rects = parts.flatMap((part) => {
      let offset = 0;
      return [...part.textContent!].map((letter) => {
        range.setStart(part.firstChild!, offset);
        range.setEnd(part.firstChild!, (offset += letter.length));
        return range.getClientRects()[0];
      });
    });
    const at = (x: number, { top }: DOMRect): [number, number] => [x - box.left, top - box.top + words.scrollTop];
    // A space at the end of a line has no place: it is where the letter before it ends.
    const found = rects.map((rect, n) => (rect ? at(rect.left, rect) : rects[n - 1] ? at(rects[n - 1]!.right, rects[n - 1]!) : undefined));
    return [...found, at(rects.at(-1)!.right, rects.at(-1)!)].map((place, n, all) => place ?? all[n - 1] ?? [0, 0]);
  }
  void document.fonts.ready.then(() => (places = []));

  /** Puts the handle to the end of the text. */
  function end(chars: number): void {
    if (!figure.isConnected) return;
    if (!places.length) places = measured();
    const [x, y] = places[chars]!;
    if (narrow) words.scrollTop = Math.max(0, y - 68);
    knob.style.transform = `translate(${x}px, ${y}px)`;
    knob.classList.toggle("turned", x > width - 90);
  }

  // By itself: grow, halt, let the three write, grow on; a while for the question at the trained length.
  const halts = HALTS.map((n) => stops.reduce((best, one) => (Math.abs(one.bytes - n * trained) < Math.abs(best.bytes - n * trained) ? one : best)).chars);
  function run(to: number): void {
    playing = true;
    label();
    const from = at.chars;
    writes = 0;
    stop = animate(from === halts[to] ? 1 : GROWS, (share) => {
      at.chars = mix(from, halts[to]!, ease(share));
      show();
    }, () => {
      stop = animate(WRITES, (share) => {
        writes = Math.floor(share * LETTERS);
        show();
      }, () => {
        writes = Infinity;
        show();
        if (to + 1 === halts.length) finish();
        else stop = after(HALTS[to] === 1 && !scene.told() ? ASKS : RESTS, () => run(to + 1));
      });
    });
  }
  function finish(): void {
    stop();
    playing = false;
    writes = Infinity;
    label();
    show();
  }
  function label(): void {
    play.textContent = playing ? t(both("Stop", "停下")) : t(both("Play again", "再放一遍"));
  }
  play.addEventListener("click", () => {
    if (playing) return finish();
    at.chars = first.chars;
    run(0);
  });

  const go = (chars: number) => {
    at.chars = nearest(chars).chars;
    show();
  };
  const handle = {
    label: t(both("Length of the text", "文本的长度")), from: first.bytes, to: last.bytes, now: () => nearest(at.chars).bytes,
    value: () => t(both(`${timesOf(nearest(at.chars))} times the trained length`, `训练长度的 ${timesOf(nearest(at.chars))} 倍`)),
    start: finish,
    key: (by: number) => go(stops[clamp(stops.indexOf(nearest(at.chars)) + by, 0, stops.length - 1)]!.chars),
  };
  const ofBytes = (bytes: number) => stops.reduce((best, one) => (Math.abs(one.bytes - bytes) < Math.abs(best.bytes - bytes) ? one : best)).chars;
  if (narrow) draggable(grip, svg, { ...handle, move: ({ x }) => go(ofBytes(((x - left) / (width - left - right)) * longest)) });
  else {
    const pointed = (x: number, y: number) => {
      knob.style.pointerEvents = "none";
      const caret = document.caretPositionFromPoint?.(x, y);
      knob.style.pointerEvents = "";
      const n = parts.findIndex((part) => part.firstChild && part.firstChild === caret?.offsetNode);
      if (n >= 0) go(parts.slice(0, n).reduce((sum, part) => sum + [...part.textContent!].length, 0) + caret!.offset);
    };
    draggable(knob, words, { ...handle, move: (_, { clientX, clientY }) => pointed(clientX, clientY) });
    words.addEventListener("click", ({ target, clientX, clientY }) => {
      if (knob.contains(target as Node)) return;
      finish();
      pointed(clientX, clientY);
    });
  }

  scene.leaving(() => stop());
  if (!fresh) finish();
  else if (still()) {
    at.chars = halts[1]!;
    finish();
  } else {
    label();
    run(0);
  }
  return {
    tell() {
      stop();
      const to = halts.findIndex((chars) => chars > at.chars + 1);
      if (still() || to < 0) {
        at.chars = last.chars;
        finish();
      } else run(to);
    },
    numbers: () => ({ head: [both("bytes of text", "文本的字节数"), ...NAMES.map((name) => both(`${name}, bits a byte`, `${name}，每字节比特`))], rows: stops.filter((one) => one.chars <= at.chars + 0.5).map(({ bytes, near }) => [String(bytes), ...near]) }),
    python: () => `from posenc.explorer import growth, recorded, stretch

tale = recorded.arrays(stretch.FILE)["tale.${language}"].tobytes()  # neither model has read it
read = ${nearest(at.chars).bytes}  # bytes
times, trained, most, guess = read / ${trained}, ${trained}, ${HALTS.at(-1)}, 8  # log2 of 256 bytes
alibi, rope, yarn = (float(model.bits(tale[:read])[-${near}:].mean()) for model in growth.models(read))`,
  };
}

/** What a model writes; bytes that are no letter (�) stay small, since a row of them would be all that one sees. */
function readable(text: string): (Node | string)[] {
  return text.split(/(\ufffd+)/).map((piece) => (piece.startsWith("\ufffd") ? h("i", {}, piece) : piece));
}
