// node start.mjs PYODIDE PACKS: start from each pack as a page does, so a missing module
// stops the build instead of the reader.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

import { prepare, unpack, unzipped } from "./unpack.mjs";

const [pyodide, packs] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const said = JSON.stringify;
const read = (name) => unzipped(new Blob([readFileSync(`${packs}/${name}`)]).stream());

async function start() {
  const lean = `${packs}.zip`;
  writeFileSync(lean, await read("python.pack"));
  const python = await loadPyodide({ stdLibURL: lean });
  const base = await read("base.pack");
  const { add } = prepare(python, true);
  for (const file of readdirSync(packs).filter((name) => name !== "python.pack")) {
    const figure = file.replace(".pack", "");
    const folder = `/${file}`; // each pack only with what every page has
    const names = [base, await read(file)].flatMap((c) => unpack(python.FS, folder, c));
    const modules = names
      .filter((name) => name.endsWith(".pyc"))
      .map((name) => name.replace(/(\/__init__)?\.pyc$/, "").replaceAll("/", "."));
    for (const name of names.filter((name) => name.startsWith("made/")))
      add(`${folder}/${name}`);
    try {
      python.runPython(`import importlib, sys
for name in [name for name in sys.modules if name.startswith("shardmath")]:
    del sys.modules[name]
sys.path.insert(0, ${said(folder)})
for name in ${said(modules)}:
    importlib.import_module(name)
from shardmath.draw import figures, live
if ${said(figure)} in figures.NAMES:
    live.answer(${said(figure)}, {})
sys.path.remove(${said(folder)})`);
    } catch (error) {
      // The module traceback fails for code without line numbers, and says so first.
      const reason = error.message.split("Original exception was:\n").pop();
      throw new Error(`${file} lacks what it needs:\n${reason}`);
    }
  }
}

const HINT = `
A pack holds the modules that imports in shardmath name, anywhere in a module, and every
*.toml and *.csv beside a module that names it (runtime.py, pages). The page's Python holds
the standard modules that loaded.py meets: name others in its ALSO or TRIED. Some are
written anew without what was not in use, in live/lean_stubs: add there what is missing.`;

try {
  await start();
} catch (error) {
  console.error(error.message + HINT);
  process.exit(1);
}
