// node pack.mjs PYODIDE SOURCES OUT: run pack.py in Pyodide, then start from its result.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [pyodide, sources, out] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));

const recipe = new URL("pack.py", import.meta.url);
const call = (name) => `${name}(${JSON.stringify(sources)}, ${JSON.stringify(out)})`;

async function run(options, statement) {
  const python = await loadPyodide(options);
  for (const path of [sources, out]) {
    python.FS.mkdirTree(path);
    python.FS.mount(python.FS.filesystems.NODEFS, { root: path }, path);
  }
  python.runPython(`${readFileSync(recipe, "utf8")}\n${statement}`);
}

try {
  await run({}, call("pack"));
  // A module that was left out must stop the build, not the reader.
  await run({ stdLibURL: `${out}/python_stdlib.zip` }, call("check"));
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
