// node answers.mjs   reads {"view", "asked"} a line, writes what the page computes a line: {"arrays", "python", "facts"},
// {"refused"} in both languages, or {"elsewhere": true} where it does not compute that state
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { OPTIONS } from "./bundle.mjs";

const { outputFiles } = await build({ ...OPTIONS, entryPoints: ["src/in_page.ts"] });
const { compute, computes } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);

// With NO_WASM as in a browser that forbids it.
if (process.env.NO_WASM) {
  const { instantiate } = WebAssembly; // node itself has a module
  WebAssembly.instantiate = (code, imports) => (code instanceof WebAssembly.Module ? instantiate(code, imports) : Promise.reject(new Error("forbidden")));
}
const PACKAGE = fileURLToPath(new URL("../src/posenc/", import.meta.url));

async function record(name) {
  const { buffer, byteOffset, length } = await readFile(PACKAGE + name);
  return buffer.slice(byteOffset, byteOffset + length);
}

/** JSON has no infinity. */
const finite = (_, value) => (typeof value === "number" && !Number.isFinite(value) ? String(value) : value);

async function answer({ view, asked }) {
  if (!computes(view, asked)) return { elsewhere: true };
  try {
    const { arrays, python, facts } = await compute(view, asked, record);
    const plain = Object.entries(arrays).map(([name, { shape, values }]) => [name, { shape, whole: values instanceof Int32Array, values: [...values] }]);
    return { arrays: Object.fromEntries(plain), python, facts };
  } catch (error) {
    return { refused: error.words ?? error.message };
  }
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await answer(JSON.parse(line)), finite));
