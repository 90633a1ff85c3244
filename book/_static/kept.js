// What the browser keeps of its reader, for all scripts: answers and guesses. Classic,
// and before all others, so that pages opened from a folder have it too.
"use strict";
{
  const isObject = (found) =>
    Object.prototype.toString.call(found) === "[object Object]";

  /**
   * Entries by name, under one key of the browser's storage. Other tabs may add to
   * them at any time. Where storage is refused they live as long as the page.
   */
  class Kept {
    #text = null; // as read last, and what it says
    #entries = {};
    #unsaved = {};
    #refused = false;
    #damaged = "";

    constructor(key, what, isEntry) {
      Object.assign(this, { key, what, isEntry });
    }

    /** Whether `found` can stand under the key. */
    isSound(found) {
      return isObject(found) && Object.values(found).every(this.isEntry);
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
        this.#read();
        const text = JSON.stringify({ ...this.#entries, ...this.#unsaved });
        localStorage.setItem(this.key, text);
        this.#unsaved = {};
        this.#read();
      });
    }

    /** What the reader should know of the storage, or "". */
    get trouble() {
      return this.#refused
        ? `This browser keeps no ${this.what}: they are forgotten with the page.`
        : this.#damaged;
    }

    #inStorage(act) {
      try {
        act();
        this.#refused = false;
      } catch {
        this.#refused = true;
      }
    }

    #read() {
      const text = localStorage.getItem(this.key);
      if (text === this.#text) return;
      this.#entries = this.#parsed(text) ?? this.#setAside(text);
      this.#text = text;
    }

    #parsed(text) {
      if (text === null) return {};
      try {
        const found = JSON.parse(text);
        return this.isSound(found) ? found : undefined;
      } catch {
        return undefined;
      }
    }

    #setAside(text) {
      const aside = `${this.key}.damaged.${Date.now()}`;
      localStorage.setItem(aside, text);
      localStorage.removeItem(this.key);
      this.#damaged =
        `The ${this.what} that this browser had kept could not be read. They are set ` +
        `aside in its storage, under ${aside}.`;
      return {};
    }
  }

  // ---- Answers: {question: {text, attempts, verdict, best, message}} ---------------

  const isAnswer = (entry) => isObject(entry) && typeof entry.text === "string";
  const isRight = (entry) => entry?.verdict === "right" || entry?.best === "right";
  const kept = new Kept("shardmath.answers.v1", "answers", isAnswer);
  let told = kept.all();

  /** Tell the page which entries are no longer what it was told. */
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
  }

  const answers = {
    kept,
    isRight,

    /** The entry of a question; undefined where it has none. */
    of: (question) => kept.all()[question],

    /** Keep an entry: its text, attempts, verdict on the text, and what was said. */
    put(question, entry) {
      if (!isAnswer(entry)) return;
      const right = [answers.of(question), entry].some(isRight);
      answers.change({ [question]: right ? { ...entry, best: "right" } : entry });
    },

    /** Set the entries of several questions as they are; undefined forgets one. */
    change(changes) {
      kept.change(changes);
      tell();
    },
  };
  addEventListener("storage", ({ key }) => {
    if (key === kept.key || key === null) tell(); // null: all of it was cleared
  });

  globalThis.Shardmath = { answers };
}
