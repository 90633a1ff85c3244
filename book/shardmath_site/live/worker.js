// The page's Python. Every message {id, module, function, kwargs} gets an answer:
// {id, result}, or {id, error} with the last line of Python's error. Before that, it
// sends {percent} as files arrive, and {up: true} or {failed: reason}. If a message has
// `pack`, the modules of this pack are loaded first, those of a figure or of a chapter's
// questions ("ch05"). If that fails, the answer is {id, missing: reason}. The pack in the
// worker's name is loaded early. When a call begins to run, {id, runs: true} is sent, so
// the page can stop the worker. While nothing runs, the worker answers at once, or sends
// {arriving: name} as pieces of a pack come. It holds the lock {lock: name} until it ends
// for any reason.

import { LOCK, PYTHON, SIZES } from "./runtime.js";
import { prepare, unpack, unzipped } from "./unpack.mjs";

const here = (path) => new URL(path, import.meta.url).href;
const BOOK = "/book";
const BEAT = 1_000; // ms
const STALL = 8; // beats without a piece of a pack; engine.js waits longer

const CALL = `
import importlib, json, sys
sys.path.insert(0, "${BOOK}")

def call(module, function, kwargs):
    answer = getattr(importlib.import_module(module), function)
    return json.dumps(answer(**json.loads(kwargs)), allow_nan=False)

importlib.import_module("shardmath.draw.live")
sys.modules["js"] = sys.modules["pyodide_js"] = None  # a way to end or to imitate us
call, lambda _: sys.path_importer_cache.clear()
`;

const early = new Map(); // address → its response, requested before Pyodide does
const counted = []; // a promise for each file, until it has arrived

// Pyodide waits forever for a file that is missing, refused or sent with the wrong type.
// Here the first two become errors, and the last one works.
const failure = new Promise((_, fail) => {
  const { fetch } = self;
  const ask = async (...request) => {
    const response = await fetch(...request);
    const file = new URL(response.url).pathname.split("/").pop();
    if (response.ok) {
      if (file in SIZES) counted.push(count(file, response.clone()).catch(() => {}));
      return response;
    }
    const missing = new Error(`${file}: HTTP ${response.status}`);
    fail(missing);
    throw missing;
  };
  self.fetch = (...request) => early.get(String(request[0])) ?? ask(...request);
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

const share = {}; // file → how much of it has arrived
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

/**
 * The bytes of a pack, or an error if none arrive for STALL beats. Beats don't count
 * while Python keeps the worker busy, because it can't read the pieces then.
 */
async function arrived(name) {
  const control = new AbortController();
  const stalled = new Error(`${name}.pack: nothing came for ${(STALL * BEAT) / 1000} s`);
  let quiet = 0; // beats since the last piece
  const timer = setInterval(() => {
    quiet += 1;
    if (quiet >= STALL) control.abort(stalled);
  }, BEAT);
  const pass = (chunk, to) => {
    quiet = 0;
    postMessage({ arriving: name });
    to.enqueue(chunk);
  };
  try {
    const { body } = await fetch(here(`./${name}.pack`), { signal: control.signal });
    return await unzipped(body.pipeThrough(new TransformStream({ transform: pass })));
  } catch (error) {
    throw control.signal.aborted ? stalled : error;
  } finally {
    clearInterval(timer);
  }
}

const brought = new Map(); // name of a pack → its content, or the promise of it
function bring(name) {
  if (!brought.has(name)) {
    const content = arrived(name);
    content.catch(() => brought.delete(name)); // the next question tries again
    brought.set(name, content);
  }
  return brought.get(name);
}

async function start() {
  const wasm = here(`${PYTHON}pyodide.asm.wasm`);
  const library = here(`${PYTHON}python.pack`);
  const first = [fetch(wasm), fetch(library)];
  early.set(wasm, first[0]);
  early.set(library, first[1].then(async ({ body }) => new Response(await unzipped(body))));
  // Python can start without these, so they must not delay what it needs.
  const asked = ["base", self.name].filter(Boolean);
  Promise.all(first)
    .then(() => Promise.all(counted))
    .then(() => asked.forEach(bring), () => {});

  const { loadPyodide } = await import(here(`${PYTHON}pyodide.mjs`));
  const python = await loadPyodide({
    indexURL: here(PYTHON),
    stdLibURL: library,
    lockFileContents: LOCK,
    stdin: () => null, // nobody can type, so input() is at its end
  });
  const { add } = prepare(python);
  const placed = new Set();
  const need = async (pack) => {
    const content = await bring(pack);
    if (placed.has(pack)) return;
    placed.add(pack);
    unpack(python.FS, BOOK, content);
    add(`${BOOK}/made/${pack}`);
  };
  await need("base");
  const [call, renew] = python.runPython(CALL);
  return { call, need: (pack) => need(pack).then(renew) };
}

// Browsers have locks only if the page came by https, or from this machine.
if (navigator.locks) {
  const lock = `shardmath ${crypto.randomUUID()}`;
  const held = () => {
    postMessage({ lock });
    return new Promise(() => {});
  };
  navigator.locks.request(lock, held).catch(() => {});
}

const ready = Promise.race([failure, start()]);
ready.then(
  () => postMessage({ up: true }),
  (error) => postMessage({ failed: String(error.message ?? error) }),
);

onmessage = async ({ data: { id, module, function: name, kwargs, pack } }) => {
  const python = await ready;
  let isAsked = false;
  try {
    if (pack) await python.need(pack);
    postMessage({ id, runs: true });
    isAsked = true;
    const result = python.call(module, name, JSON.stringify(kwargs));
    postMessage({ id, result: JSON.parse(result) });
  } catch (error) {
    const last = String(error.message).trim().split("\n").pop();
    if (!isAsked) return postMessage({ id, missing: last });
    // Any other error comes from WebAssembly, such as a stack overflow or an exit. After
    // that, Python can't answer correctly.
    const broken = error.constructor.name !== "PythonError";
    postMessage({ id, error: last.replace(/^\w+: /, ""), broken });
  }
};
