// A drawer with a Python prompt at the bottom of the page. Inputs run in the page's
// Python, in a namespace that lasts as long as the page.

import { call, percent, running } from "./engine.js";

const MODULE = "shardmath.draw.live.prompt";
const PACK = "prompt";
const LIMIT = 10_000; // ms for an input
const EARLIER = 30_000; // ms for the cells that a cell needs
// [text, …], the newest last. Absent if storage.js was not loaded.
const stored = globalThis.Shardmath?.storage?.setting("shardmath.inputs.v1");
const KEPT = 100;
const OPENER = ".sm-prompt-open";
const NEVER = "script, style, link, meta, base, iframe, object, embed, form";

const near = (file) => new URL(file, import.meta.url).href;
const ask = (name, kwargs, options) => call(MODULE, name, kwargs, PACK, options);

function make(name, given = {}, ...children) {
  const element = Object.assign(document.createElement(name), given);
  element.append(...children);
  return element;
}

// ---- Earlier inputs ----------------------------------------------------------------

/** Inputs of this browser, or only of this page if storage is refused or damaged. */
class Inputs {
  #texts = [];
  #at = 0;
  #draft = "";

  constructor() {
    try {
      const kept = JSON.parse(stored?.get() ?? "[]");
      this.#texts = kept.filter((text) => typeof text === "string");
    } catch {
      // start with an empty list
    }
    this.#at = this.#texts.length;
  }

  add(text) {
    if (text.trim() && this.#texts.at(-1) !== text) this.#texts.push(text);
    this.#texts = this.#texts.slice(-KEPT);
    this.#at = this.#texts.length;
    stored?.set(JSON.stringify(this.#texts));
  }

  /** The input `step` away from the one that is shown, or null at the ends. */
  go(step, shown) {
    const to = this.#at + step;
    if (to < 0 || to > this.#texts.length) return null;
    if (this.#at === this.#texts.length) this.#draft = shown;
    this.#at = to;
    return this.#texts[to] ?? this.#draft;
  }
}

// ---- The input field ---------------------------------------------------------------

/** The text without comments, and with 0 for each string. */
const bare = (text) =>
  text
    .replace(/("""|''')[^]*?\1/g, "0")
    .replace(/(["'])(?:\\.|(?!\1)[^\\\n])*\1/g, "0")
    .replace(/#.*/g, "");

/** The indented line that Enter adds if the input is incomplete, else null. */
export function more(text) {
  const last = text.split("\n").at(-1);
  const code = bare(text).trimEnd();
  const indent = last.match(/^ */)[0];
  if (/[:\\]$/.test(code) && last.trim()) return `\n${indent}    `;
  const open = (code.match(/[([{]/g) ?? []).length - (code.match(/[)\]}]/g) ?? []).length;
  if (open > 0 || /"""|'''/.test(code)) return `\n${indent}`;
  const inBlock = text.includes("\n") && indent && last.trim();
  return inBlock || /^@/.test(last) ? `\n${indent}` : null;
}

/** A plain input field, until the editor is loaded or instead of it. */
function mountPlain(parent, { doc, label, onRun, onForce, complete, keys }) {
  const field = make("textarea", { value: doc, rows: 1, spellcheck: false, ariaLabel: label });
  field.autocapitalize = "off";
  const fit = () => (field.rows = Math.min(12, field.value.split("\n").length));
  const names = async () => {
    const { value, selectionStart: at } = field;
    const found = await complete(value, at);
    if (!found?.options.length || field.value !== value) return;
    const labels = found.options.map((option) => option.label);
    let same = labels[0];
    while (!labels.every((name) => name.startsWith(same))) same = same.slice(0, -1);
    if (same.length > at - found.from) field.setRangeText(same, found.from, at, "end");
    else say(labels.slice(0, 12).join(", ") + (labels.length > 12 ? ", …" : ""));
  };
  field.addEventListener("input", fit);
  field.addEventListener("keydown", (event) => {
    const { key, shiftKey, ctrlKey, metaKey, isComposing } = event;
    const before = field.value.slice(0, field.selectionStart);
    if (isComposing || event.altKey) return;
    if (key === "Enter" && !shiftKey) (ctrlKey || metaKey ? onForce : onRun)(field.value);
    else if (key === "Tab" && !shiftKey && /[\w.]$/.test(before)) names();
    else if (!keys[key]?.()) return;
    event.preventDefault();
  });
  parent.append(field);
  fit();
  return {
    text: () => field.value,
    set(text) {
      field.value = text;
      field.setSelectionRange(text.length, text.length);
      fit();
    },
    focus: () => field.focus(),
    destroy: () => field.remove(),
  };
}

/** Whether the cursor is in the first line of the input, and in the last. */
function place(parent) {
  const field = parent.querySelector("textarea");
  if (field) {
    const { value, selectionStart: at } = field;
    return { first: !value.slice(0, at).includes("\n"), last: !value.slice(at).includes("\n") };
  }
  const lines = [...parent.querySelectorAll(".cm-line")];
  const at = lines.findIndex((line) => line.contains(getSelection().anchorNode));
  return { first: at <= 0, last: at === lines.length - 1 };
}

// ---- The drawer --------------------------------------------------------------------

const status = make("span", { role: "status" });
const share = make("span", { ariaHidden: "true" }); // or each change is read aloud
const log = make("div", { className: "sm-prompt-log bd-article", role: "log", tabIndex: 0 });
log.ariaLabel = "What was run, and its results";
const where = make("div", { className: "sm-prompt-input" });
const button = make("button", { type: "submit", textContent: "Run" });
const form = make(
  "form",
  {},
  make("span", { textContent: ">>>", ariaHidden: "true" }),
  where,
  button,
);
const shut = make("button", { type: "button", textContent: "Close", title: "Close (Escape)" });
const drawer = make(
  "section",
  { className: "sm-prompt", hidden: true, ariaLabel: "Python" },
  make(
    "header",
    {},
    make("strong", { textContent: "Python" }),
    make("p", { className: "sm-prompt-status" }, status, share),
    shut,
  ),
  log,
  form,
);
log.append(
  make(
    "p",
    { className: "sm-prompt-hint" },
    "The book’s package is imported: try chips.H100, or " +
      "roofline.matmul(B=240, D=8192, F=8192, chip=chips.TPU_V5E). ",
    make("span", {
      className: "sm-prompt-keys", // not on a phone
      textContent:
        "Enter runs, Shift+Enter begins a line, Tab completes a name, " +
        "↑ brings back what was typed. ",
    }),
    "Names last as long as this page.",
  ),
);

const inputs = new Inputs();
let input = null;
let opener = null; // what had the focus before
let waiting = 0; // how much is running or waiting; the log says so too
let turn = Promise.resolve();
let escaped = false; // Escape was pressed, and the next one closes

function inTurn(work) {
  waiting += 1;
  log.ariaBusy = "true";
  turn = turn.then(work).finally(() => {
    waiting -= 1;
    log.ariaBusy = String(waiting > 0);
  });
  return turn;
}

function say(text) {
  if (status.textContent !== text) status.textContent = text;
}

const keys = {
  ArrowUp: () => place(where).first && recall(-1),
  ArrowDown: () => place(where).last && recall(1),
  Escape() {
    // In the editor, the first Escape closes its list of names, or lets Tab leave it.
    if (where.querySelector(".cm-tooltip")) return false;
    if (!escaped && where.querySelector(".cm-editor") && input.text().trim()) {
      escaped = true;
      return false;
    }
    close();
    return true;
  },
};

function recall(step) {
  const text = inputs.go(step, input.text());
  if (text !== null) input.set(text);
  return text !== null;
}

async function complete(text, at) {
  if (!running() || waiting) return null;
  try {
    const found = await ask("complete", { before: text.slice(0, at) });
    if (!found) return null;
    return { from: found.from, options: found.options.map((label) => ({ label })) };
  } catch {
    return null;
  }
}

const enter = (text) => {
  const rest = more(text);
  if (rest === null) run(text);
  else input.set(text + rest);
};

const options = () => ({
  doc: input?.text() ?? "",
  label: "Python to run",
  onRun: enter,
  onForce: run,
  complete,
  singleLine: true,
  keys: {
    ...keys,
    "Mod-Enter"() {
      run(input.text());
      return true;
    },
  },
});

async function edit() {
  try {
    const { mountEditor } = await import("./editor.js");
    const focused = where.contains(document.activeElement);
    const editor = mountEditor(where, options());
    input.destroy();
    input = editor;
    where.querySelector(".cm-content").tabIndex = 0; // it scrolls, so axe requires it
    if (focused) input.focus();
  } catch {
    // the plain field stays
  }
}

// ---- Running -----------------------------------------------------------------------

let page = null; // of a chapter: {setup: number, cells: {number: {source, needs}}}
const asked = new Set(); // cells that the namespace must have, besides the imports
let used = false; // whether the reader's own lines have run in this Python

/** Until `work` is done, show what is going on. */
async function told(what, work) {
  const timer = setInterval(() => {
    say(running() ? what : "Starting Python in this page (4 MB, only once) …");
    share.textContent = running() ? "" : ` ${percent()} %`;
  }, 200);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    share.textContent = "";
    say("");
  }
}

/** Load into the namespace what is needed, and show what is being loaded. */
function ready(what) {
  return inTurn(() => told(what, prepare()).catch((error) => say(error.message)));
}

/** Run the imports, and the cells that were requested, in the namespace. */
async function prepare() {
  const { setup, cells } = (await page) ?? { cells: {} };
  const numbers = [setup, ...asked].filter((n) => n in cells).sort((a, b) => a - b);
  const given = numbers.map((n) => [`cell ${n + 1}`, cells[n].source]);
  const kwargs = { cells: Object.fromEntries(given) };
  const { fresh } = await ask("prepare", kwargs, { limit: EARLIER }).catch((error) => {
    if (error.stopped) asked.clear(); // or nothing would run afterwards
    throw error.stopped ? new Error("The cells that it needs take too long here.") : error;
  });
  if (fresh && used) note("Python has begun anew: names from before are gone.");
  if (fresh) used = false;
}

function note(text) {
  log.append(make("p", { className: "sm-prompt-note", textContent: text }));
  log.scrollTop = log.scrollHeight;
}

/** The elements of HTML from Python, without anything that could run code. */
function inert(html) {
  const { body } = new DOMParser().parseFromString(html, "text/html");
  for (const element of body.querySelectorAll(NEVER)) element.remove();
  for (const element of body.querySelectorAll("*"))
    for (const { name, value } of [...element.attributes])
      if (/^on/i.test(name) || /^\s*javascript:/i.test(value)) element.removeAttribute(name);
  return body.childNodes;
}

function failure({ error, trace }) {
  const lines = error.split("\n");
  const last = make("span", { className: "sm-prompt-error", textContent: lines.pop() });
  const rest = [trace, ...lines].filter(Boolean).join("\n");
  if (!rest) return make("p", {}, last);
  return make("details", {}, make("summary", {}, last), make("pre", { textContent: rest }));
}

/** The output and the result of an input, as elements. */
function results({ printed, html, text, error, trace }) {
  const parts = [];
  if (printed) parts.push(make("pre", { textContent: printed.replace(/\n$/, "") }));
  if (html !== undefined)
    parts.push(make("div", { className: "sm-prompt-value", tabIndex: 0 }, ...inert(html)));
  if (text !== undefined) parts.push(make("pre", { textContent: text }));
  if (error !== undefined) parts.push(failure({ error, trace }));
  return parts;
}

function run(text) {
  const source = text.replace(/\s+$/, "");
  if (!source) return;
  inputs.add(source);
  input.set("");
  const entry = make("div", { className: "sm-prompt-entry" });
  entry.append(make("pre", { className: "sm-prompt-in", textContent: source }));
  log.append(entry);
  log.scrollTop = log.scrollHeight;
  inTurn(async () => {
    const shown = results(await answer(source));
    entry.append(...shown);
    if (!shown.length) say("Done.");
    log.scrollTop = entry.offsetTop; // a long result is read from its beginning
  });
}

async function answer(source) {
  try {
    await told("Running what it needs …", prepare());
    const options = { limit: LIMIT, stateful: true };
    const found = await told("Running …", ask("run", { source }, options));
    used = true;
    return found;
  } catch ({ stopped, gone, message }) {
    const isLost = (stopped || gone) && used;
    if (isLost) used = false;
    const said = stopped ? `Stopped after ${LIMIT / 1000} s.` : message;
    return { error: isLost ? `${said} Names from before are gone.` : said };
  }
}

// ---- For the page ------------------------------------------------------------------

function close() {
  drawer.hidden = true;
  document.documentElement.classList.remove("sm-prompting");
  opener?.focus();
}

/** The cells of the page, or null. */
async function bring(file) {
  try {
    const response = await fetch(near(file));
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

/** Build the drawer. Resolves when its style is loaded. */
function begin(cells) {
  const style = make("link", { rel: "stylesheet", href: near("./prompt.css") });
  const styled = new Promise((done) => (style.onload = style.onerror = done));
  document.head.append(style);
  document.body.append(drawer);
  page = cells ? bring(cells) : null;
  input = mountPlain(where, options());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run(input.text());
    input.focus();
  });
  shut.addEventListener("click", close);
  drawer.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") escaped = false;
    else if (!event.defaultPrevented) close();
    // Letters typed here must not be the page's shortcuts, such as / for its search.
    if (!event.ctrlKey) event.stopPropagation();
  });
  ready("Importing the package …").then(edit);
  return styled;
}

let begun = null;

/**
 * Open the drawer.
 * @param cells the file, next to this one, with the page's cells, if there are any
 */
export async function open(cells) {
  const { activeElement: now, body } = document;
  if (!drawer.contains(now)) opener = now === body ? document.querySelector(OPENER) : now;
  begun ??= begin(cells);
  await begun;
  drawer.hidden = false;
  document.documentElement.classList.add("sm-prompting");
  escaped = false;
  input.focus();
}

/** Open it, or close it if it is open and has the focus. */
export function toggle(cells) {
  if (!drawer.hidden && drawer.contains(document.activeElement)) close();
  else open(cells);
}

/** Put a cell of the page into the prompt, and run the cells that it needs. */
export async function take(cells, number) {
  await open(cells);
  const found = (await page)?.cells?.[number];
  if (!found) return say("This cell could not be brought: copy it from the page.");
  inputs.add(input.text());
  input.set(found.source);
  for (const needed of found.needs) asked.add(needed);
  ready("Running the cells that it needs …");
}
