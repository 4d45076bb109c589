// Bundles the islands and the style sheet: node build.mjs OUTDIR. Prints {source name: built name} as JSON.
import { copyFileSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { build } from "esbuild";

const out = process.argv[2];
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

const common = {
  bundle: true,
  minify: true,
  metafile: true,
  outdir: out,
  entryNames: "[name]-[hash]",
  chunkNames: "chunk-[hash]",
  target: ["es2022"],
  logLevel: "warning",
  absWorkingDir: import.meta.dirname,
};
const islands = await build({
  ...common,
  entryPoints: ["src/page.ts", "src/problem.ts"],
  format: "esm",
  splitting: true,
});
// What runs in a worker is a file of its own; the browser loads it, and the checker's 11 MB, after the first change only.
const worker = await build({ ...common, entryPoints: ["src/ruff-worker.ts"], format: "esm" });
// The theme is set before the first paint, so it is a classic script of its own.
const theme = await build({ ...common, entryPoints: ["src/theme.ts"], format: "iife" });
const styles = await build({ ...common, entryPoints: ["src/app.css"] });

const files = {};
for (const { metafile } of [islands, worker, theme, styles]) {
  for (const [path, { entryPoint }] of Object.entries(metafile.outputs)) {
    if (entryPoint) files[basename(entryPoint).replace(/\.ts$/, ".js")] = basename(path);
  }
}
const copied = {
  "icon.svg": join(import.meta.dirname, "src/icon.svg"),
  "ruff.wasm": join(import.meta.dirname, "node_modules/@astral-sh/ruff-wasm-web/ruff_wasm_bg.wasm"),
};
for (const [name, source] of Object.entries(copied)) {
  const hash = createHash("sha256").update(readFileSync(source)).digest("hex").slice(0, 8);
  files[name] = name.replace(".", `-${hash}.`);
  copyFileSync(source, join(out, files[name]));
}
process.stdout.write(JSON.stringify(files));
