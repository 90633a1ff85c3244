// A file takes a reader's progress elsewhere, or brings it here; and all of it can be
// erased. For pages with a score: progress.py wrote the panel.
"use strict";
{
  const { answers, guesses, isObject } = Shardmath;
  const { kept, isRight } = answers;

  const KIND = "Shardmath progress";
  const VERSION = 1;
  const LARGEST = 5e6; // bytes: about what a browser keeps of a site
  const isCount = (found) => Number.isInteger(found) && found >= 0;

  /** "1 guess", "2 guesses". */
  const many = (number, one, more) => `${number} ${number === 1 ? one : more}`;

  /** Everything that is kept, as the text of a file. */
  function written() {
    const content = { kind: KIND, version: VERSION, saved: new Date().toISOString() };
    const all = { ...content, answers: kept.all(), guesses: guesses.all() };
    return `${JSON.stringify(all, null, 1)}\n`;
  }

  /**
   * The answers and guesses that a file holds.
   * @throws an Error that says what is wrong with it
   */
  function read(text) {
    let found;
    try {
      found = JSON.parse(text);
    } catch (error) {
      throw new Error(`it is damaged, or no JSON: ${error.message}`);
    }
    if (isObject(found) && isObject(found.questions) && "schema" in found)
      return { answers: fromNotebook(found), guesses: {} };
    if (!isObject(found) || found.kind !== KIND)
      throw new Error("it is no progress file of this book");
    if (found.version !== VERSION)
      throw new Error(`it is of version ${found.version}, and this page reads version 1`);
    for (const part of ["answers", "guesses"])
      if (!isObject(found[part])) throw new Error(`it is damaged: it has no ${part}`);
    for (const [question, entry] of Object.entries(found.answers)) {
      const wrong = fault(question, entry);
      if (wrong) throw new Error(`it is damaged: the answer to “${question}” ${wrong}`);
    }
    for (const [name, guess] of Object.entries(found.guesses))
      if (!guesses.isEntry(guess))
        throw new Error(`it is damaged: the guess “${name}” is no text`);
    return found;
  }

  const isQuestion = (name) => /^\d\d\.[1-9]\d*$/.test(name);

  /** What cannot be in an entry, "" where all can. */
  function fault(question, entry) {
    if (!isQuestion(question)) return "has no question's number";
    if (!isObject(entry) || typeof entry.text !== "string") return "has no text";
    const { verdict = "right", best = "right" } = entry;
    const { message = "", attempts = 0, time = 0 } = entry;
    if (!["right", "wrong"].includes(verdict) || best !== "right")
      return "has a verdict that is neither right nor wrong";
    if (typeof message !== "string") return "has a message that is no text";
    if (!isCount(attempts) || !isCount(time)) return "has a count that is no number";
    return "";
  }

  /** The verdicts of the notebooks' own file, which keeps no texts. */
  function fromNotebook({ schema, questions: rows }) {
    if (schema !== 1)
      throw new Error(`it is a notebook's of schema ${schema}, and this page reads 1`);
    const entries = {};
    for (const [question, row] of Object.entries(rows)) {
      const { done = false, wrong = 0 } = isObject(row) ? row : { done: null };
      if (!isQuestion(question) || typeof done !== "boolean" || !isCount(wrong))
        throw new Error(`it is damaged: “${question}” is no verdict on a question`);
      if (done || wrong)
        entries[question] = { text: "", attempts: wrong, ...(done && { best: "right" }) };
    }
    return entries;
  }

  const timeOf = ({ time = 0 }) => Math.min(time, Date.now()); // clocks may be wrong

  /** One entry from two: right is right for good, and the newer text stays. */
  function merged(mine, theirs) {
    if (!mine) return theirs;
    const newer = theirs.text && (!mine.text || timeOf(theirs) > timeOf(mine));
    const attempts = Math.max(mine.attempts ?? 0, theirs.attempts ?? 0);
    const one = { ...(newer ? theirs : mine), attempts };
    return !isRight(one) && (isRight(mine) || isRight(theirs))
      ? { ...one, best: "right" }
      : one;
  }

  /** Add what a file holds, and say how much of it was new. */
  function add(found) {
    const changes = {};
    const before = kept.all();
    for (const [question, entry] of Object.entries(found.answers)) {
      const one = merged(before[question], entry);
      if (JSON.stringify(one) !== JSON.stringify(before[question]))
        changes[question] = one;
    }
    const said = guesses.all();
    const unsaid = Object.entries(found.guesses).filter(
      ([name, guess]) => said[name] === undefined || (said[name] === null && guess),
    );
    guesses.change(Object.fromEntries(unsaid));
    answers.change(changes);
    const all = many(Object.keys(found.answers).length, "answer", "answers");
    const fresh = Object.keys(changes).length || "none";
    const added = many(unsaid.length, "guess is", "guesses are");
    return `Of ${all} in the file, ${fresh} changed what is here; ${added} new.`;
  }

  // ---- The panel -----------------------------------------------------------------

  const panel = document.querySelector(".sm-score");
  const inPanel = (what) => panel.querySelector(what);
  const status = inPanel(".sm-keeping-said");
  const input = inPanel("input[type=file]");
  const dialog = inPanel("dialog");
  const tell = (text) => (status.textContent = text);

  function save() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([written()], { type: "application/json" }));
    link.download = `shardmath-progress-${new Date().toISOString().slice(0, 10)}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    tell(`${link.download} has ${inWords()}.`);
  }

  async function take() {
    const [file] = input.files;
    input.value = ""; // the same file may be chosen again
    if (!file) return;
    try {
      if (file.size > LARGEST) throw new Error("it is larger than any progress file");
      tell(add(read(await file.text())));
    } catch (error) {
      tell(`“${file.name}” was not added: ${error.message}. Nothing has changed.`);
    }
  }

  function inWords() {
    const told = many(Object.keys(kept.all()).length, "answer", "answers");
    return `${told} and ${many(Object.keys(guesses.all()).length, "guess", "guesses")}`;
  }

  function erase() {
    const aside = kept.asides().length + guesses.asides().length;
    const more = aside ? ", and what was set aside as damaged" : "";
    inPanel("dialog strong").textContent = `Erase ${inWords()}${more}?`;
    dialog.showModal();
  }

  const acts = { save, erase, open: () => input.click() };
  for (const button of panel.querySelectorAll("details button"))
    button.addEventListener("click", acts[button.value]);
  input.addEventListener("change", take);
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "erase") return;
    dialog.returnValue = "";
    guesses.erase();
    answers.erase();
    tell("All is erased.");
  });
}
