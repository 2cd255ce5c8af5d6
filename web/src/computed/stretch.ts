import { real, stacked, type Data } from "../data";
import type { Progress } from "../in_page";
import { archive } from "../npz";
import { float, program, quoted } from "../program";
import { once, type Records } from "../records";
import { asker, type Ask } from "../stretch/ask";
import { LONGEST, TRAINED } from "../stretch/model";
import { WRITTEN, type Reading } from "../stretch/reading";
import template from "../../../src/posenc/explorer/views/stretch.txt";

const MODELS = ["alibi", "rope", "yarn"];
const NEAR = 32; // bytes that the drawn loss is the mean of
const SHORT = TRAINED - WRITTEN; // bytes that are read at the trained length

type Language = "zh" | "en";

interface Trained {
  about: Record<string, any>;
  tales: Record<Language, Uint8Array>;
  ask: Ask;
}

const trained = once("explorer/stretch.npz", async (file): Promise<Trained> => {
  const stored = archive(file);
  const tale = async (language: Language) => (await stored.array(`tale.${language}`)).values as Uint8Array;
  return { about: await stored.json("about"), tales: { zh: await tale("zh"), en: await tale("en") }, ask: await asker(file) };
});

export async function data({ prompt: text, length }: { prompt: string; length: number }, records: Records, { partly, signal }: Progress): Promise<Data> {
  const { about, tales, ask } = await trained(records);
  const own = new TextEncoder().encode(text);
  const language = /[\u3000-\u9fff]/.test(text) ? "zh" : "en";
  const before = upTo(tales[language], new TextEncoder().encode(PROMPTS[language]));
  const whole = Uint8Array.from([...before, ...own]);
  const [prompt, short] = [whole.slice(WRITTEN - length), whole.slice(-SHORT)];
  const count = Math.min(own.length || NEAR, SHORT - 1);
  const facts = {
    models: MODELS, prompt: readable(prompt), trained: TRAINED, longest: LONGEST, near: NEAR,
    keys: Object.fromEntries(Object.entries(about["keys"] as Record<string, string>).map(([name, key]) => [name, key.slice(0, 16)])),
    ...Object.fromEntries(["size", "seed", "training", "training_loss", "preset", "command", "date"].map((name) => [name, about[name]])),
  };
  const python = program(template, [], { text: quoted(text), read: length - WRITTEN, short: SHORT, factor: float(length / TRAINED), count });
  const answer = ({ bits, short: atOnce, written }: Reading): Data => {
    const [words, once] = [bits, atOnce].map((all) => all.map((one) => mean(one.subarray(-count)))) as [number[], number[]];
    return {
      arrays: {
        bits: stacked(bits), loss: stacked(bits.map(moving)), words: real(words), added: real(words.map((one, m) => one - once[m]!)),
        written: stacked(written.map((bytes) => Float64Array.from({ length: WRITTEN }, (_, n) => bytes[n] ?? 0))),
      },
      python,
      facts: { ...facts, texts: written.map((bytes) => readable(Uint8Array.from(bytes))) },
    };
  };
  return answer(await ask({ prompt, short, factor: length / TRAINED }, { each: (reading) => partly?.(answer(reading)), signal }));
}

/** Words of the held-out tales, whose text before them is the rest of the prompt. */
const PROMPTS: Record<Language, string> = { zh: "银杏村没有人知道赵志川为什么", en: "Klaistai wanted to buy the yellow quilt from Kigres for" };

function upTo(tale: Uint8Array, words: Uint8Array): Uint8Array {
  return tale.subarray(0, tale.findIndex((_, at) => words.every((byte, n) => tale[at + n] === byte)));
}

function mean(numbers: Float64Array): number {
  return numbers.reduce((a, b) => a + b, 0) / numbers.length;
}

/** The mean of NEAR numbers up to each. */
function moving(bits: Float64Array): Float64Array {
  return Float64Array.from({ length: bits.length - NEAR + 1 }, (_, n) => mean(bits.subarray(n, n + NEAR)));
}

/** The text of some bytes. Of a character that is cut at either end nothing is left; other wrong bytes are �. */
function readable(bytes: Uint8Array): string {
  const start = bytes.subarray(0, 4).findIndex((byte) => (byte & 0xc0) !== 0x80);
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(Math.max(start, 0)), { stream: true });
}
