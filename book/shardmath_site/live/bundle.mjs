// node bundle.mjs MODULES SOURCE OUT: bundle the script SOURCE and what it imports from
// MODULES (node_modules) into OUT/editor.js, and write the licences of its parts.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [modules, source, out] = process.argv.slice(2);
const tool = (path) => import(pathToFileURL(`${modules}/${path}`));
const { rollup } = await tool("@rollup/wasm-node/dist/es/rollup.js");
const { minify } = await tool("terser/main.js");

const about = (name) => JSON.parse(readFileSync(`${modules}/${name}/package.json`, "utf8"));

/** The path of a package's module, from its package.json. */
function entry(name) {
  const { exports, module } = about(name);
  const told = exports?.["."] ?? exports;
  return `${modules}/${name}/${told?.import ?? module}`;
}

const resolver = {
  name: "modules",
  resolveId: (id) => (/^[@\w]/.test(id) && id !== source ? entry(id) : null),
};

const bundle = await rollup({
  input: source,
  plugins: [resolver],
  onwarn: (warning) => {
    throw new Error(warning.message);
  },
});
const { output } = await bundle.generate({ format: "es", inlineDynamicImports: true });
const [{ code, modules: parts }] = output;
const { code: short } = await minify(code, {
  ecma: 2020,
  module: true,
  format: { preamble: "/*! Licences of what is in it: editor.NOTICE.txt */" },
});

const names = Object.entries(parts)
  .filter(([path, { renderedLength }]) => renderedLength && path.startsWith(modules))
  .map(([path]) => path.slice(modules.length + 1).match(/^(@[^/]+\/)?[^/]+/)[0]);
const notices = [...new Set(names)].sort().map((name) => {
  const { version, license } = about(name);
  const file = readdirSync(`${modules}/${name}`).find((file) => /^licen[cs]e/i.test(file));
  const text = readFileSync(`${modules}/${name}/${file}`, "utf8").trim();
  return `${name} ${version} (${license})\n\n${text}\n`;
});
writeFileSync(`${out}/editor.js`, short);
writeFileSync(`${out}/editor.NOTICE.txt`, notices.join(`\n${"-".repeat(72)}\n\n`));
