// What page.js is built from, and what tests ask for numbers: esbuild's options and three modules that it makes.
import { readFile, readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const PYTHON = fileURLToPath(new URL("../src/posenc/explorer/views/", import.meta.url));
const SOURCES = fileURLToPath(new URL("src/", import.meta.url));

/** The module "all-views": NAME.ts of every Python view NAME.py that has an ORDER, in that order. */
async function allViews() {
  const files = (await readdir(PYTHON)).filter((name) => name.endsWith(".py"));
  const found = await Promise.all(files.map(async (name) => {
    const order = (await readFile(PYTHON + name, "utf8")).match(/^ORDER = (\d+)$/m);
    return { name: name.slice(0, -3), order: order && Number(order[1]) };
  }));
  const names = found.filter(({ order }) => order !== null).sort((a, b) => a.order - b.order).map(({ name }) => name);
  const imports = names.map((name, index) => `import { view as v${index} } from "./views/${name}";`);
  return `${imports.join("\n")}\nexport const VIEWS = [${names.map((_, index) => `v${index}`)}];`;
}

/** The module "all-computed": the files of computed/, by name. */
async function allComputed() {
  const names = (await readdir(`${SOURCES}computed`)).map((name) => name.slice(0, -3)).sort();
  const imports = names.map((name) => `import * as ${name} from "./computed/${name}";`);
  return `${imports.join("\n")}\nexport const COMPUTED = { ${names.join(", ")} };`;
}

/** The module "worker-code": a worker's script, as a text. */
async function workerCode() {
  const { outputFiles } = await build({ ...OPTIONS, format: "iife", entryPoints: ["src/stretch/worker.ts"], minify: true });
  return `export default ${JSON.stringify(outputFiles[0].text)};`;
}

const made = { "all-views": allViews, "all-computed": allComputed, "worker-code": workerCode };
const plugin = {
  name: "made",
  setup(esbuild) {
    esbuild.onResolve({ filter: /^(all-views|all-computed|worker-code)$/ }, ({ path }) => ({ path, namespace: "made" }));
    esbuild.onLoad({ filter: /.*/, namespace: "made" }, async ({ path }) => ({ contents: await made[path](), resolveDir: SOURCES }));
  },
};

export const OPTIONS = {
  absWorkingDir: fileURLToPath(new URL(".", import.meta.url)), bundle: true, format: "esm", target: "es2022", charset: "utf8",
  legalComments: "none", plugins: [plugin], loader: { ".css": "text", ".txt": "text", ".woff2": "base64", ".wasm": "base64" }, write: false, logLevel: "error",
};
