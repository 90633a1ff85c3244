// The page's side of the worker, which all figures and questions of a page share.

const PATIENCE = 120_000; // ms for the start; a slow connection needs some 30 seconds
const SILENCE = 12_000; // ms without a message from a worker that has work
const RUN = 60_000; // ms that a call without its own limit may run

let engine = null;

/**
 * Start Python if it is not running; a start that failed is tried again.
 * @param pack the pack that will be needed first, see worker.js
 */
export function start(pack) {
  engine ??= launch(pack);
  return engine;
}

/**
 * Resolves to the value that `module.function(**kwargs)` returns in Python.
 * @param pack the pack that it needs: the name of a figure, or of a chapter, "ch05"
 * @param limit ms that it may run. After that, this Python is ended with its state, and
 *   the error is `stopped`. The next call starts another Python, which also gets all
 *   calls that waited.
 * @param stateful whether the answer depends on earlier calls. If the worker dies, the
 *   call is then refused with an error that is `gone`. Other calls are repeated.
 */
export async function call(module, name, kwargs, pack, { limit, stateful } = {}) {
  const what = { module, function: name, kwargs, pack };
  return ask({ what, limit, stateful, deaths: 0 });
}

const ask = async (request) => (await start(request.what.pack)).ask(request);

/** Whether Python is ready to answer. */
export const running = () => Boolean(engine?.up);

/** How much of what a start needs has been loaded. */
export const percent = () => engine?.percent ?? 0;

function stopped(limit) {
  const error = new Error(`Python was stopped after ${limit / 1000} s.`);
  return Object.assign(error, { stopped: true });
}

function gone() {
  const error = new Error("Python ended unexpectedly in this page. Please try again.");
  return Object.assign(error, { gone: true });
}

function notStarted(reason) {
  const why = reason.replace(/\.$/, "");
  return new Error(`Python could not start in this browser: ${why}.`);
}

function launch(pack) {
  const waiting = new Map(); // id → request, with `answer`, `refuse` and, if it runs, `timer`
  let last = 0;
  let watchdog;
  // A script inside the page runs under its policy (policy.py); a loaded one would not.
  const load = `import ${JSON.stringify(new URL("./worker.js", import.meta.url))};`;
  const url = URL.createObjectURL(new Blob([load], { type: "text/javascript" }));
  const starting = new Promise((resolve, reject) => {
    let worker;
    let over = false;
    const end = () => {
      over = true;
      clearTimeout(timer);
      clearTimeout(watchdog);
      worker?.terminate();
      if (engine === starting) engine = null;
    };
    const fail = (reason) => {
      if (over) return;
      end();
      reject(notStarted(reason));
    };
    const timer = setTimeout(() => fail("no answer after two minutes"), PATIENCE);
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
    /** While calls wait and none runs, the worker must send messages. */
    const watch = () => {
      clearTimeout(watchdog);
      const isIdle = [...waiting.values()].every((request) => !request.timer);
      if (waiting.size && isIdle) watchdog = setTimeout(die, SILENCE);
    };
    const request = (asked) =>
      new Promise((answer, refuse) => {
        if (over) return ask(asked).then(answer, refuse); // it has died meanwhile
        last += 1;
        waiting.set(last, { ...asked, answer, refuse });
        worker.postMessage({ id: last, ...asked.what });
        watch();
      });
    /** End this Python. The next one gets the waiting calls, except those `refused`. */
    const giveUp = (refused) => {
      end();
      for (const [id, { answer, refuse, timer, ...asked }] of waiting) {
        clearTimeout(timer);
        const reason = refused(id, asked);
        if (reason) refuse(reason);
        else ask(asked).then(answer, refuse);
      }
      waiting.clear();
    };
    const giveUpFor = (guilty, reason) =>
      giveUp((id, asked) => (id === guilty ? reason : asked.stateful && gone()));
    /** The worker has ended, or no longer sends messages. */
    const die = () => {
      if (over) return;
      if (!starting.up) return fail("it ended while it started");
      giveUp((_, asked) => {
        asked.deaths += 1;
        return (asked.stateful || asked.deaths > 1) && gone();
      });
    };
    worker.onmessage = ({ data }) => {
      if (over) return;
      const { id, result, error, failed, missing, up, percent, runs, broken, lock } = data;
      if (percent !== undefined) starting.percent = percent;
      // The worker holds this lock until its end, so getting it means that it has ended.
      if (lock) navigator.locks?.request(lock, die).catch(() => {});
      if (failed) return fail(failed);
      if (up) {
        clearTimeout(timer);
        starting.up = true;
        return resolve({ ask: request });
      }
      const asked = waiting.get(id);
      if (asked && runs) {
        const limit = asked.limit ?? RUN;
        asked.timer = setTimeout(giveUpFor, limit, id, stopped(limit));
      } else if (asked && broken) {
        return giveUpFor(id, new Error(`Python broke down: ${error}.`));
      } else if (asked) {
        const { answer, refuse } = asked;
        clearTimeout(asked.timer);
        waiting.delete(id);
        if (missing) refuse(notStarted(missing));
        else if (error === undefined) answer(result);
        else refuse(new Error(error));
      }
      watch();
    };
  });
  return starting;
}
