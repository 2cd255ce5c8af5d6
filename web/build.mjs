// node build.mjs           src/*.ts -> ../src/posenc/explorer/page.js
// node build.mjs --check   says whether that file is what the sources build, and small enough
import { readFile, readdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const MOST_BYTES = 500_000;
const PYTHON = fileURLToPath(new URL("../src/posenc/explorer/views/", import.meta.url));
const VIEWS = fileURLToPath(new URL("src/views/", import.meta.url));

/** The module "all-views": NAME.ts of every Python view NAME.py that has an ORDER, in that order. */
const allViews = {
  name: "all-views",
  setup(esbuild) {
    esbuild.onResolve({ filter: /^all-views$/ }, ({ path }) => ({ path, namespace: "all-views" }));
    esbuild.onLoad({ filter: /.*/, namespace: "all-views" }, async () => {
      const files = (await readdir(PYTHON)).filter((name) => name.endsWith(".py"));
      const found = await Promise.all(files.map(async (name) => {
        const order = (await readFile(PYTHON + name, "utf8")).match(/^ORDER = (\d+)$/m);
        return { name: name.slice(0, -3), order: order && Number(order[1]) };
      }));
      const names = found.filter(({ order }) => order !== null).sort((a, b) => a.order - b.order).map(({ name }) => name);
      const imports = names.map((name, index) => `import { view as v${index} } from "./${name}";`);
      return { contents: `${imports.join("\n")}\nexport const VIEWS = [${names.map((_, index) => `v${index}`)}];`, resolveDir: VIEWS };
    });
  },
};
const file = fileURLToPath(new URL("../src/posenc/explorer/page.js", import.meta.url));
const { outputFiles } = await build({
  absWorkingDir: fileURLToPath(new URL(".", import.meta.url)), entryPoints: ["src/page.ts"], bundle: true, minify: true,
  format: "esm", target: "es2022", charset: "utf8", legalComments: "none", plugins: [allViews], loader: { ".css": "text" }, write: false, logLevel: "error",
});
const { contents } = outputFiles[0];
if (!process.argv.includes("--check")) {
  await writeFile(file, contents);
} else if (!Buffer.from(contents).equals(await readFile(file).catch(() => Buffer.alloc(0)))) {
  console.error("page.js in the package is not what web/src builds: npm --prefix web run build");
  process.exit(1);
}
if (contents.length > MOST_BYTES) {
  console.error(`the page has ${contents.length} bytes, more than ${MOST_BYTES}`);
  process.exit(1);
}
console.log(`${contents.length} bytes`);
