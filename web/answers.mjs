// node answers.mjs   reads {"view", "asked"} a line, writes what the page computes a line: {"arrays", "python", "facts"},
// {"refused"} in both languages, or {"elsewhere": true} where it does not compute that state
import { createInterface } from "node:readline";
import { build } from "esbuild";
import { OPTIONS } from "./bundle.mjs";

const { outputFiles } = await build({ ...OPTIONS, entryPoints: ["src/in_page.ts"] });
const { compute, computes } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);

/** JSON has no infinity. */
const finite = (_, value) => (typeof value === "number" && !Number.isFinite(value) ? String(value) : value);

function answer({ view, asked }) {
  if (!computes(view, asked)) return { elsewhere: true };
  try {
    const { arrays, python, facts } = compute(view, asked);
    const plain = Object.entries(arrays).map(([name, { shape, values }]) => [name, { shape, whole: values instanceof Int32Array, values: [...values] }]);
    return { arrays: Object.fromEntries(plain), python, facts };
  } catch (error) {
    return { refused: error.words ?? error.message };
  }
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(answer(JSON.parse(line)), finite));
