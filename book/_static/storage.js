// All that reads or writes the storage of the browser does so through this script. It is
// classic and comes before all others, so that pages opened from a folder have it too.
// Only what a page needs before its first paint is read in its head (folds.js, guesses.py).
"use strict";
{
  const isObject = (found) =>
    Object.prototype.toString.call(found) === "[object Object]";

  /**
   * Entries by name, as JSON under one key of the browser's storage. Other tabs may
   * change them at any time. Where storage is refused they live as long as the page.
   */
  class Store {
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
      if (this.#aside)
        return (
          `The ${this.what} that this browser had kept could not be read. They are set ` +
          `aside in its storage, under ${this.#aside}.`
        );
      if (location.protocol !== "file:") return "";
      return (
        "This page was opened from a folder, where browsers do not always keep " +
        "answers and guesses. Save them to a file before you leave."
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

  /**
   * One text under a key of the browser's storage.
   * @returns {get(), set(text), forget()}: `get` gives null where there is none, or where
   *   storage is refused; then the others do nothing
   */
  function setting(key) {
    const tried = (act) => {
      try {
        return act(localStorage);
      } catch {
        return null;
      }
    };
    return {
      get: () => tried((storage) => storage.getItem(key)),
      set: (text) => tried((storage) => storage.setItem(key, text)),
      forget: () => tried((storage) => storage.removeItem(key)),
    };
  }

  globalThis.Shardmath = { isObject, storage: { Store, setting } };
}
