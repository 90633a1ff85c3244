// The page's Python. Every message {id, module, function, kwargs} gets an answer:
// {id, result}, or {id, error} with the last line of what Python said. Before that come
// {percent} as files arrive, and {up: true} or {failed: reason}. With `chapter` in it,
// the questions of that chapter ("ch05") are brought first.

import { LOCK, PYTHON, SIZES } from "./runtime.js";

const here = (path) => new URL(path, import.meta.url).href;

const CALL = `
import importlib, json, sys
sys.path.insert(0, "/shardmath.zip")

def call(module, function, kwargs):
    answer = getattr(importlib.import_module(module), function)
    return json.dumps(answer(**json.loads(kwargs)), allow_nan=False)

def add(archive):
    answers = importlib.import_module("shardmath.answers")
    answers.__path__.append(archive + "/shardmath/answers")

importlib.import_module("shardmath.live")
call, add
`;

// Pyodide waits for ever for a file that is missing, refused or sent with the wrong
// type. Here the first two become errors, and the last no problem at all.
const failure = new Promise((_, fail) => {
  const { fetch } = self;
  self.fetch = async (...request) => {
    const response = await fetch(...request);
    const file = new URL(response.url).pathname.split("/").pop();
    if (response.ok) {
      if (file in SIZES) count(file, response.clone()).catch(() => {});
      return response;
    }
    const missing = new Error(`${file}: HTTP ${response.status}`);
    fail(missing);
    throw missing;
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

const share = {}; // file → how much of it is here
async function count(file, { body }) {
  const reader = body.getReader();
  for (let read = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    read += value.length;
    share[file] = read / SIZES[file][0];
    let [wire, came] = [0, 0];
    for (const [name, [, bytes]] of Object.entries(SIZES)) {
      wire += bytes;
      came += bytes * (share[name] ?? 0);
    }
    postMessage({ percent: Math.round((100 * came) / wire) });
  }
}

async function bring(python, name, coming = fetch(here(`./${name}`))) {
  const content = await (await coming).arrayBuffer();
  python.FS.writeFile(`/${name}`, new Uint8Array(content));
}

async function start() {
  const archive = fetch(here("./shardmath.zip"));
  const { loadPyodide } = await import(here(`${PYTHON}pyodide.mjs`));
  const python = await loadPyodide({ indexURL: here(PYTHON), lockFileContents: LOCK });
  await bring(python, "shardmath.zip", archive);
  const [call, add] = python.runPython(CALL);
  const chapters = new Map();
  const questions = async (chapter) => {
    await bring(python, `${chapter}.zip`);
    add(`/${chapter}.zip`);
  };
  return {
    call,
    chapter(name) {
      if (!chapters.has(name)) chapters.set(name, questions(name));
      return chapters.get(name).catch((error) => {
        chapters.delete(name); // the next question tries again
        throw error;
      });
    },
  };
}

const ready = Promise.race([failure, start()]);
ready.then(
  () => postMessage({ up: true }),
  (error) => postMessage({ failed: String(error.message ?? error) }),
);

onmessage = async ({ data: { id, module, function: name, kwargs, chapter } }) => {
  const python = await ready;
  try {
    if (chapter) await python.chapter(chapter);
    const result = python.call(module, name, JSON.stringify(kwargs));
    postMessage({ id, result: JSON.parse(result) });
  } catch (error) {
    const last = String(error.message).trim().split("\n").pop();
    postMessage({ id, error: last.replace(/^\w+: /, "") });
  }
};
