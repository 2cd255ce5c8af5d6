// node build.mjs           src/page.ts -> ../src/posenc/explorer/page.js; src/results/page.ts -> ../src/posenc/lab/report/page.js
// node build.mjs --check   says whether those files are what the sources build, and small enough
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { OPTIONS } from "./bundle.mjs";

const PAGES = [
  { source: "src/page.ts", page: "explorer/page.js", most: 760_000 }, // bytes; 170 000 of them are fonts
  { source: "src/results/page.ts", page: "lab/report/page.js", most: 60_000 },
];

for (const { source, page, most } of PAGES) {
  const file = fileURLToPath(new URL(`../src/posenc/${page}`, import.meta.url));
  const { outputFiles } = await build({ ...OPTIONS, entryPoints: [source], minify: true });
  const { contents } = outputFiles[0];
  if (!process.argv.includes("--check")) {
    await writeFile(file, contents);
  } else if (!Buffer.from(contents).equals(await readFile(file).catch(() => Buffer.alloc(0)))) {
    console.error(`${page} in the package is not what web/src builds: npm --prefix web run build`);
    process.exit(1);
  }
  if (contents.length > most) {
    console.error(`${page} has ${contents.length} bytes, more than ${most}`);
    process.exit(1);
  }
  console.log(`${page}: ${contents.length} bytes`);
}
