// node build.mjs           src/*.ts -> ../src/posenc/explorer/page.js
// node build.mjs --check   says whether that file is what the sources build, and small enough
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { OPTIONS } from "./bundle.mjs";

const MOST_BYTES = 760_000; // 170 000 of them are fonts
const file = fileURLToPath(new URL("../src/posenc/explorer/page.js", import.meta.url));
const { outputFiles } = await build({ ...OPTIONS, entryPoints: ["src/page.ts"], minify: true });
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
