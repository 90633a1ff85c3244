// The page's side of the worker: one for all figures and questions of a page.

const PATIENCE = 120_000; // ms for the start; a slow line needs some 30 seconds

let engine = null;

/**
 * Start Python if it is not running; a start that failed is tried again.
 * @param pack the modules that will be asked for first, see worker.js
 */
export function start(pack) {
  engine ??= launch(pack);
  return engine;
}

/**
 * Resolves to the value that `module.function(**kwargs)` returns in Python.
 * @param pack the modules that it needs: the name of a figure, or "ch05", whose questions
 * @param limit ms that it may run, once Python is there and comes to it. After that this
 *   Python is given up with all that it knew, and the error is `stopped`. The next call
 *   starts another, which is also asked all that waited.
 */
export async function call(module, name, kwargs, pack, { limit } = {}) {
  return ask({ module, function: name, kwargs, pack }, limit);
}

const ask = async (what, limit) => (await start(what.pack)).ask(what, limit);

/** Whether an answer can come at once. */
export const running = () => Boolean(engine?.up);

/** How much of what a start waits for is here. */
export const percent = () => engine?.percent ?? 0;

function stopped(limit) {
  const error = new Error(`Python was stopped after ${limit / 1000} s.`);
  return Object.assign(error, { stopped: true });
}

function notStarted(reason) {
  const why = reason.replace(/\.$/, "");
  return new Error(`Python could not start in this browser: ${why}.`);
}

function launch(pack) {
  const waiting = new Map();
  let last = 0;
  // A script that the page holds runs under its policy (policy.py); a loaded one would not.
  const load = `import ${JSON.stringify(new URL("./worker.js", import.meta.url))};`;
  const url = URL.createObjectURL(new Blob([load], { type: "text/javascript" }));
  const starting = new Promise((resolve, reject) => {
    const fail = (reason) => {
      clearTimeout(timer);
      worker?.terminate();
      if (engine === starting) engine = null;
      reject(notStarted(reason));
    };
    const timer = setTimeout(() => fail("no answer after two minutes"), PATIENCE);
    let worker;
    try {
      worker = new Worker(url, { type: "module", name: pack });
    } catch (error) {
      fail(error.message);
      return;
    }
    worker.onerror = (event) => {
      event.preventDefault();
      fail(event.message || "its script was refused or is missing");
    };
    const request = (what, limit) =>
      new Promise((answer, refuse) => {
        last += 1;
        waiting.set(last, { what, limit, answer, refuse });
        worker.postMessage({ id: last, ...what, limited: Boolean(limit) });
      });
    const giveUp = (guilty, reason) => {
      worker.terminate();
      if (engine === starting) engine = null;
      for (const [id, { what, limit, answer, refuse, timer }] of waiting) {
        clearTimeout(timer);
        if (id === guilty) refuse(reason);
        else ask(what, limit).then(answer, refuse);
      }
      waiting.clear();
    };
    worker.onmessage = ({ data }) => {
      const { id, result, error, failed, missing, up, percent, runs, broken } = data;
      if (percent !== undefined) {
        starting.percent = percent;
        return;
      }
      if (failed) return fail(failed);
      if (up) {
        clearTimeout(timer);
        starting.up = true;
        return resolve({ ask: request });
      }
      const asked = waiting.get(id);
      if (!asked) return; // its answer was on the way when Python was stopped
      if (runs) {
        asked.timer = setTimeout(giveUp, asked.limit, id, stopped(asked.limit));
        return;
      }
      if (broken) return giveUp(id, new Error(`Python broke down: ${error}.`));
      const { answer, refuse } = asked;
      clearTimeout(asked.timer);
      waiting.delete(id);
      if (missing) refuse(notStarted(missing));
      else if (error === undefined) answer(result);
      else refuse(new Error(error));
    };
  });
  return starting;
}
