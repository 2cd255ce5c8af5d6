// node build.mjs           src/*.ts -> ../src/posenc/explorer/page/{page,widget}.js
// node build.mjs --check   says whether the files there are what the sources build, and small enough
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const MOST_BYTES = 500_000;
const here = fileURLToPath(new URL(".", import.meta.url));
const there = fileURLToPath(new URL("../src/posenc/explorer/page/", import.meta.url));

async function bundled(name, format) {
  const { outputFiles } = await build({
    absWorkingDir: here, entryPoints: [`src/${name}.ts`], bundle: true, minify: true, format, target: "es2022",
    charset: "utf8", legalComments: "none", loader: { ".css": "text" }, write: false, logLevel: "error",
  });
  return outputFiles[0].contents;
}

let bytes = 0;
for (const [name, format] of [["page", "iife"], ["widget", "esm"]]) {
  const contents = await bundled(name, format);
  const file = `${there}${name}.js`;
  bytes = Math.max(bytes, contents.length);
  if (!process.argv.includes("--check")) {
    await writeFile(file, contents);
  } else if (!Buffer.from(contents).equals(await readFile(file).catch(() => Buffer.alloc(0)))) {
    console.error(`${name}.js in the package is not what web/src builds: npm --prefix web run build`);
    process.exit(1);
  }
}
if (bytes > MOST_BYTES) {
  console.error(`the page has ${bytes} bytes, more than ${MOST_BYTES}`);
  process.exit(1);
}
console.log(`${bytes} bytes`);
