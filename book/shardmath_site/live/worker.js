// The page's Python. Every message {id, module, function, kwargs} gets an answer:
// {id, result}, or {id, error} with the last line of what Python said. Before that comes
// {up: true}, or {failed: reason}.

import { LOCK, PYTHON } from "./runtime.js";

const here = (path) => new URL(path, import.meta.url).href;

const CALL = `
import importlib, json, sys
sys.path.insert(0, "/shardmath.zip")

def call(module, function, kwargs):
    answer = getattr(importlib.import_module(module), function)
    return json.dumps(answer(**json.loads(kwargs)), allow_nan=False)

importlib.import_module("shardmath.live")
call
`;

// Pyodide waits for ever for a file that is missing, refused or sent with the wrong
// type. Here the first two become errors, and the last no problem at all.
const failure = new Promise((_, fail) => {
  const { fetch } = self;
  self.fetch = async (...request) => {
    const response = await fetch(...request);
    if (response.ok) return response;
    const file = new URL(response.url).pathname.split("/").pop();
    fail(new Error(`${file}: HTTP ${response.status}`));
    throw new Error(response.status);
  };
  const { instantiate, instantiateStreaming } = WebAssembly;
  WebAssembly.instantiateStreaming = async (source, imports) => {
    try {
      const response = await source;
      if (response.headers.get("Content-Type") === "application/wasm") {
        return await instantiateStreaming(response, imports);
      }
      return await instantiate(await response.arrayBuffer(), imports);
    } catch (error) {
      fail(error);
      throw error;
    }
  };
});

async function start() {
  const archive = fetch(here("./shardmath.zip"));
  const { loadPyodide } = await import(here(`${PYTHON}pyodide.mjs`));
  const python = await loadPyodide({ indexURL: here(PYTHON), lockFileContents: LOCK });
  const content = await (await archive).arrayBuffer();
  python.FS.writeFile("/shardmath.zip", new Uint8Array(content));
  return python.runPython(CALL);
}

const ready = Promise.race([failure, start()]);
ready.then(
  () => postMessage({ up: true }),
  (error) => postMessage({ failed: String(error.message ?? error) }),
);

onmessage = async ({ data: { id, module, function: name, kwargs } }) => {
  const call = await ready;
  try {
    const result = call(module, name, JSON.stringify(kwargs));
    postMessage({ id, result: JSON.parse(result) });
  } catch (error) {
    const last = String(error.message).trim().split("\n").pop();
    postMessage({ id, error: last.replace(/^\w+: /, "") });
  }
};
