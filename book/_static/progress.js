// What a reader has reached: answers and guesses, how much that is, and the file that
// takes it elsewhere. Fields, marks and panels ask here; nothing here touches the page,
// but for the events "shardmath:answer" and "shardmath:kept" of the document.
"use strict";
{
  const { isObject, storage } = Shardmath;
  const { Store } = storage;

  const isOrLacks = (value, type) => value === undefined || typeof value === type;
  const isAnswer = (entry) =>
    isObject(entry) &&
    typeof entry.text === "string" &&
    isOrLacks(entry.message, "string") &&
    isOrLacks(entry.attempts, "number");
  const isGuess = (entry) => entry === null || typeof entry === "string"; // null: skipped
  const kept = new Store("shardmath.answers.v1", "answers", isAnswer);
  const guesses = new Store("shardmath.guesses.v1", "guesses", isGuess);

  // ---- Answers: {question: {text, attempts, verdict, best, message, time}} ---------

  const isRight = (entry) => entry?.verdict === "right" || entry?.best === "right";
  let told = kept.all();

  /** Tell the page which entries have changed, each by itself; then that this is all. */
  function tell() {
    const now = kept.all();
    const before = told;
    told = now;
    for (const question of new Set([...Object.keys(before), ...Object.keys(now)])) {
      const entry = now[question];
      if (JSON.stringify(before[question]) === JSON.stringify(entry)) continue;
      const detail = { question, entry };
      document.dispatchEvent(new CustomEvent("shardmath:answer", { detail }));
    }
    document.dispatchEvent(new CustomEvent("shardmath:kept"));
  }

  const answers = {
    kept,
    isRight,
    of: (question) => kept.of(question),

    /** Keep an entry: its text, attempts, the verdict on the text, what was said. */
    put(question, entry) {
      if (!isAnswer(entry)) return;
      const dated = { ...entry, time: Date.now() };
      if ([kept.of(question), entry].some(isRight)) dated.best = "right";
      answers.change({ [question]: dated });
    },

    /** Set the entries of several questions as they are; undefined forgets one. */
    change(changes) {
      kept.change(changes);
      tell();
    },

    erase() {
      kept.erase();
      tell();
    },
  };
  addEventListener("storage", ({ key }) => {
    if (key === kept.key || key === null) tell(); // null: all of it was cleared
  });

  // ---- Counts --------------------------------------------------------------------

  /** What is reached of some pages. */
  function reached(pages) {
    const entries = kept.all();
    const found = { points: 0, right: 0, begun: 0, of: 0, most: 0 };
    for (const page of pages)
      for (const [question, points] of Object.entries(Shardmath.questions[page])) {
        const entry = entries[question];
        found.of += 1;
        found.most += points;
        if (isRight(entry)) {
          found.right += 1;
          found.points += points;
        } else if (entry?.text || entry?.attempts) found.begun += 1;
      }
    return found;
  }

  // ---- The file ------------------------------------------------------------------

  const KIND = "Shardmath progress";
  const VERSION = 1;
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
      throw new Error(`it is damaged or isn’t JSON: ${error.message}`);
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

  /** How much is kept: “3 answers and 1 guess”. */
  function inWords() {
    const told = many(Object.keys(kept.all()).length, "answer", "answers");
    return `${told} and ${many(Object.keys(guesses.all()).length, "guess", "guesses")}`;
  }

  /** Forget all answers and guesses. */
  function erase() {
    guesses.erase();
    answers.erase();
  }

  const progress = { add, erase, inWords, read, reached, written };
  Object.assign(Shardmath, { answers, guesses, progress });
}
