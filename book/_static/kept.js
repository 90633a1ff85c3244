// What the browser keeps of its reader, for all scripts: answers and guesses. Classic,
// and before all others, so that pages opened from a folder have it too.
"use strict";
{
  const isObject = (found) =>
    Object.prototype.toString.call(found) === "[object Object]";

  /**
   * Entries by name, as JSON under one key of the browser's storage. Other tabs may
   * change them at any time. Where storage is refused they live as long as the page.
   */
  class Kept {
    #text = null; // as read last, and what it says: undefined where it is damaged
    #entries = {};
    #unsaved = {};
    #isClosed = false; // the storage, to reading too
    #aside = "";

    constructor(key, what, isEntry) {
      Object.assign(this, { key, what, isEntry });
    }

    /** The entry of a name; undefined where it has none. */
    of(name) {
      return this.all()[name];
    }

    /** All that is kept now, by name. */
    all() {
      this.#inStorage(() => this.#read());
      const all = { ...this.#entries, ...this.#unsaved };
      for (const name of Object.keys(all)) if (all[name] === undefined) delete all[name];
      return all;
    }

    /** Set the entries of `changes`; those that are undefined are forgotten. */
    change(changes) {
      this.#unsaved = { ...this.#unsaved, ...changes };
      this.#inStorage(() => {
        this.#setDamageAside();
        const text = JSON.stringify({ ...this.#entries, ...this.#unsaved });
        localStorage.setItem(this.key, text);
        this.#unsaved = {};
        this.#read();
      });
    }

    /** Set aside what cannot be read: `trouble` says so from then on. */
    mend() {
      this.#inStorage(() => this.#setDamageAside());
    }

    /** Where this browser has what was set aside. */
    asides() {
      const found = [];
      this.#inStorage(() => found.push(...Object.keys(localStorage)));
      return found.filter((key) => key.startsWith(`${this.key}.damaged.`));
    }

    /** Forget all, with what was set aside. */
    erase() {
      this.#unsaved = this.#entries = {};
      this.#aside = "";
      this.#inStorage(() => {
        for (const key of [this.key, ...this.asides()]) localStorage.removeItem(key);
        this.#read();
      });
    }

    /** What the reader should know of the storage, or "". */
    get trouble() {
      if (this.#isClosed || Object.keys(this.#unsaved).length)
        return "This browser keeps no answers and guesses: the page forgets them.";
      if (!this.#aside) return "";
      return (
        `The ${this.what} that this browser had kept could not be read. They are set ` +
        `aside in its storage, under ${this.#aside}.`
      );
    }

    #inStorage(act) {
      try {
        localStorage.getItem(this.key);
        this.#isClosed = false;
      } catch {
        this.#isClosed = true;
        return;
      }
      try {
        act();
      } catch {
        // It takes nothing more: what is unsaved stays so.
      }
    }

    #read() {
      const text = localStorage.getItem(this.key);
      if (text === this.#text) return;
      this.#entries = this.#parsed(text);
      this.#text = text;
    }

    #parsed(text) {
      if (text === null) return {};
      try {
        const found = JSON.parse(text);
        const isSound = isObject(found) && Object.values(found).every(this.isEntry);
        return isSound ? found : undefined;
      } catch {
        return undefined;
      }
    }

    #setDamageAside() {
      this.#read();
      if (this.#entries) return;
      const aside = `${this.key}.damaged.${Date.now()}`;
      localStorage.setItem(aside, this.#text);
      localStorage.removeItem(this.key);
      this.#aside = aside;
      this.#read();
    }
  }

  const isOrLacks = (value, type) => value === undefined || typeof value === type;
  const isAnswer = (entry) =>
    isObject(entry) &&
    typeof entry.text === "string" &&
    isOrLacks(entry.message, "string") &&
    isOrLacks(entry.attempts, "number");
  const isGuess = (entry) => entry === null || typeof entry === "string"; // null: skipped
  const kept = new Kept("shardmath.answers.v1", "answers", isAnswer);
  const guesses = new Kept("shardmath.guesses.v1", "guesses", isGuess);

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

  globalThis.Shardmath = { answers, guesses, isObject };
}
