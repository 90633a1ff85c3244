// A question that is answered with a function: a small editor, and the same Python that
// grades the notebook. Until it is used, and if the editor can't be loaded, there is a
// plain text area.

const LIMIT = 10_000; // ms that an answer may run
const PAUSE = 500; // ms without a key, after which the text is stored
const ROWS = 6; // at least, so that the first lines move nothing
const KEYS = "Ctrl+Enter or ⌘+Enter checks; Escape, then Tab leaves the editor.";
const KEPT = { correct: "right", wrong: "wrong" }; // verdict → how it is stored
const SHOWN = { right: "correct", wrong: "wrong" };

// Absent if progress.js was not loaded. All works then, without remembering.
const answers = globalThis.Shardmath?.answers;

/** A text area with the same four functions as the editor in editor.js. */
function plain(label, doc, onRun, onChange) {
  const area = document.createElement("textarea");
  const grow = () => {
    area.rows = Math.max(ROWS, area.value.split("\n").length);
  };
  const fields = { ariaLabel: label, value: doc, spellcheck: false, autocomplete: "off" };
  Object.assign(area, fields, { autocapitalize: "off", wrap: "off" });
  area.addEventListener("input", () => {
    grow();
    onChange(area.value);
  });
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    onRun();
  });
  grow();
  return {
    area,
    text: () => area.value,
    set(text) {
      area.value = text;
      grow();
    },
    focus: () => area.focus(),
    destroy: () => area.remove(),
  };
}

/**
 * @param block the element that `shardmath_site.question` writes: a stub, a verdict
 * @param call (tell, module, function, kwargs, pack, {limit}) => Promise of what Python
 *   returns; calls `tell(text)` while Python starts
 * @returns {pack, reach}: the pack that the question needs; loads the editor
 */
export function mountFunction(block, call) {
  const { question } = block.dataset;
  const pack = `ch${question.slice(0, 2)}`;
  const label = `Your answer to ${question}, in Python`;
  const begun = block.querySelector("pre");
  const stub = `${begun.textContent.trim()}\n`;
  const verdict = block.querySelector(".sm-verdict");
  let entry = { text: "", attempts: 0 };
  let unkept = null; // a timer, while the text on the page has not been stored

  const made = (tag, given) => Object.assign(document.createElement(tag), given);
  const place = made("div", { className: "sm-code" });
  const printed = made("pre", { className: "sm-printed", hidden: true, tabIndex: 0 });
  const check = made("button", { type: "button", textContent: "Check" });
  const again = made("button", { type: "button", textContent: "Start again" });
  const bar = made("div", { className: "sm-bar" });
  const keys = made("span", { className: "sm-keys", textContent: KEYS });
  printed.ariaLabel = `What your answer to ${question} printed`;

  function say(text, kind = "", output = "") {
    verdict.dataset.verdict = kind;
    verdict.textContent = text;
    printed.textContent = output;
    printed.hidden = !output;
  }

  // ---- Storing --------------------------------------------------------------------

  function keep(changes) {
    clearTimeout(unkept);
    unkept = null;
    entry = { ...entry, ...changes };
    if (entry.text || entry.attempts || answers?.isRight(answers.of(question)))
      answers?.put(question, entry);
    else answers?.change({ [question]: undefined });
  }

  /** Store the text without the verdict, which was for another text. */
  function keepText() {
    unkept = null;
    const text = field.text() === stub ? "" : field.text();
    if (text !== entry.text) keep({ text, verdict: undefined, message: undefined });
  }

  function onChange(text) {
    clearTimeout(unkept);
    const isKept = text === (entry.text || stub);
    unkept = isKept ? null : setTimeout(keepText, PAUSE);
    if (isKept && entry.verdict) verdict.dataset.verdict = SHOWN[entry.verdict];
    else if (verdict.dataset.verdict) verdict.dataset.verdict = "past";
  }

  /** Show the stored answer, unannounced, because the reader has done nothing here. */
  function restore(found = { text: "" }) {
    const before = entry;
    entry = { ...found, attempts: found.attempts ?? 0 };
    const { text, verdict: kind, message = "" } = entry;
    if (text === before.text && kind === before.verdict) return;
    if (!unkept && field.text() !== (text || stub)) field.set(text || stub);
    verdict.ariaLive = "off";
    if (kind || !text) say(message, SHOWN[kind]);
  }

  // ---- Judging --------------------------------------------------------------------

  async function judge() {
    const source = field.text();
    if (check.ariaDisabled === "true") return;
    check.ariaDisabled = "true";
    verdict.ariaLive = "polite";
    say("Checking …");
    try {
      const kwargs = { question, source, attempts: entry.attempts };
      const asked = ["shardmath.exercises", "judge_function", kwargs, pack, { limit: LIMIT }];
      const result = await call((text) => say(text), ...asked);
      const message = [result.message, result.hint].filter(Boolean).join("\n");
      const kept = KEPT[result.verdict];
      // Only wrong answers count as attempts, and repeating one doesn't count.
      const isAttempt = kept === "wrong" && source !== entry.judged;
      const attempts = isAttempt ? entry.attempts + 1 : entry.attempts;
      if (kept) {
        const isNewer = field.text() !== source; // changed while Python was working
        keep({ text: source, judged: source, attempts, verdict: kept, message });
        if (isNewer) keepText();
      } else keepText();
      say(message, result.verdict, result.printed);
    } catch (error) {
      const more = error.stopped
        ? "Does it end for every case?"
        : "The answer can be checked in Jupyter.";
      keepText();
      say(`${error.message} ${more}`, "invalid");
    } finally {
      check.ariaDisabled = null;
    }
  }

  function startAgain() {
    const isChanged = ![stub.trim(), ""].includes(field.text().trim());
    if (isChanged && !confirm(`Throw away what you wrote for ${question}?`)) return;
    field.set(stub);
    keep({ text: "", verdict: undefined, message: undefined });
    say("");
    field.focus();
  }

  // ---- The field ------------------------------------------------------------------

  let composing = false; // a letter that takes several keys
  let field = plain(label, stub, judge, onChange);

  /** Replace the text area by the editor, and keep the focus and the cursor. */
  async function bring() {
    const { mountEditor } = await import("./editor.js");
    const { area } = field;
    if (area.matches(":focus") && composing)
      await new Promise((go) => area.addEventListener("compositionend", go, { once: true }));
    const held = document.activeElement === area;
    const { selectionStart: anchor, selectionEnd: head } = area;
    const editor = mountEditor(place, {
      doc: area.value,
      label,
      onRun: judge,
      onChange,
      selection: { anchor, head },
    });
    field.destroy();
    field = editor;
    if (held) field.focus();
  }
  place.addEventListener("compositionstart", () => (composing = true));
  place.addEventListener("compositionend", () => (composing = false));
  let bringing = null;
  const reach = () => {
    bringing ??= bring().catch(() => {}); // the text area stays
  };

  place.append(field.area);
  bar.append(check, again, keys);
  begun.replaceWith(place, bar);
  verdict.after(printed);
  check.addEventListener("click", judge);
  again.addEventListener("click", startAgain);
  document.addEventListener("shardmath:answer", ({ detail }) => {
    if (detail.question === question) restore(detail.entry);
  });
  addEventListener("pagehide", () => unkept && keepText());
  verdict.ariaLive = "off";
  say("");
  restore(answers?.of(question));
  return { pack, reach };
}
