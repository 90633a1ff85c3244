// node offered.mjs PYODIDE PACKS CELLS: find, in the page's Python, the cells that can be
// tried (offered.py), for each chapter in the JSON file CELLS, {name: cells}.

import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

import { prepare, unpack, unzipped } from "./unpack.mjs";

const [pyodide, packs, cells] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const read = (name) => unzipped(new Blob([readFileSync(`${packs}/${name}`)]).stream());

const lean = `${cells}.lean.zip`;
writeFileSync(lean, await read("python.pack"));
const python = await loadPyodide({ stdLibURL: lean });
const { add } = prepare(python);
for (const name of ["base", "prompt"]) {
  unpack(python.FS, "/book", await read(`${name}.pack`));
  add(`/book/made/${name}`);
}
python.runPython(`import json, sys
sys.path.insert(0, "/book")
${readFileSync(new URL("offered.py", import.meta.url), "utf8")}`);
const found = {};
for (const [name, given] of Object.entries(JSON.parse(readFileSync(cells, "utf8")))) {
  const call = python.runPython("lambda given: json.dumps(offered(json.loads(given)))");
  found[name] = JSON.parse(call(JSON.stringify(given)));
  console.error(`${name}: ${Object.keys(found[name]).length} of ${given.length}`);
}
console.log(JSON.stringify(found));
