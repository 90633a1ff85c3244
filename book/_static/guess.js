// A guess before the result: guesses.py wrote the forms and what they open, all of it
// in sight; here it waits for the reader, and what was guessed is remembered.
"use strict";
{
  const kept = Shardmath.guesses; // by the key of a form; null: skipped
  // "no": never ask; the page's head reads it too
  const asks = Shardmath.storage.setting("shardmath.guesses.asks");
  const MARKS = { right: "✓", near: "≈", wrong: "✗", skipped: "–" };
  const VERDICTS = { right: "Right", near: "Near", wrong: "Not so", skipped: "Skipped" };

  // ---- Numbers as people type them -----------------------------------------------

  const LARGE = { k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 };
  const BINARY = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 };
  const SPELT = { thousand: 1e3, million: 1e6, billion: 1e9, trillion: 1e12 };
  const SMALL = { m: 1e-3, µ: 1e-6, μ: 1e-6, u: 1e-6, n: 1e-9, p: 1e-12 };
  const OTHER_NAMES = { s: ["sec", "seconds"], "%": ["percent"], times: ["x", "×"] };
  const FACTOR =
    /^((?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:e[+-]?\d+)?)(?:\s*\^\s*(-?\d+))?/i;

  /** The number above zero that `text` says, in `unit`; NaN where it says none. */
  function read(text, unit) {
    let rest = text.trim().replace(/^(?:about|around|~|≈)\s*/i, "");
    rest = rest.replaceAll("**", "^").replace(/\s*[×·x]\s*(?=[\d.])/g, "*");
    let value = 1;
    for (let sign = "*"; sign; ) {
      const [found, digits, power] = FACTOR.exec(rest);
      if (!/\d/.test(digits)) return NaN;
      const factor = Number(digits.replaceAll(",", "")) ** Number(power ?? 1);
      value = sign === "*" ? value * factor : value / factor;
      rest = rest.slice(found.length).trim();
      sign = /^([*/])\s*[\d.]/.exec(rest)?.[1];
      if (sign) rest = rest.slice(1).trim();
    }
    value *= scale(rest, unit);
    return value > 0 && value < Infinity ? value : NaN;
  }

  /** What a prefix, a unit or both stand for behind a number in `unit`. */
  function scale(given, unit) {
    const names = [unit, ...(OTHER_NAMES[unit] ?? [])];
    names.push(unit.replace(/^bytes/, "B"), unit.replace(/s(?=\/|$)/, ""));
    const isUnit = (name) =>
      !name ||
      names.includes(name) ||
      (name.length > 2 && names.some((n) => n.toLowerCase() === name.toLowerCase()));
    const prefixes = { ...LARGE, ...BINARY, ...SPELT, ...(unit === "s" ? SMALL : {}) };
    const fits = ([prefix]) =>
      given.startsWith(prefix) && isUnit(given.slice(prefix.length).trim());
    if (isUnit(given)) return 1;
    return Object.entries(prefixes).find(fits)?.[1] ?? NaN;
  }

  // ---- One guess -----------------------------------------------------------------

  /** The verdict on what was said of a record; undefined where it says nothing. */
  function judged(record, text) {
    if (text === undefined) return undefined;
    if (text === null) return "skipped";
    if (record.kind === "choice") {
      if (!record.choices.includes(text)) return undefined;
      return text === record.truth ? "right" : "wrong";
    }
    const value = read(text, record.unit);
    if (Number.isNaN(value)) return undefined;
    const factor = Math.max(value / record.value, record.value / value);
    const rounding = 1 + 1e-9; // 1.25 × 200 is no closer or further than 250
    if (factor <= record.close * rounding) return "right";
    return factor <= record.near * rounding ? "near" : "wrong";
  }

  /** What was typed, with its unit. */
  function inWords({ kind, unit }, text) {
    if (kind === "choice" || !unit || /[^\d.]$/.test(text)) return text;
    return unit === "%" ? `${text}%` : `${text} ${unit}`;
  }

  class Guess {
    constructor(form) {
      const { anchor, key, title, record } = form.dataset;
      Object.assign(this, { form, anchor, key, title, opened: false });
      this.record = JSON.parse(record);
      this.behind = document.getElementById(`${anchor}-behind`);
      this.line = document.getElementById(`${anchor}-answer`);
      this.plain = this.line.textContent;
      this.status = form.querySelector(".sm-guess-said");
      this.fields = form.querySelector("fieldset");
      this.buttons = Object.fromEntries(
        [...form.querySelectorAll("[type=button]")].map((b) => [b.value, b]),
      );
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        this.take(event.submitter);
      });
      form.addEventListener("keydown", (event) => {
        if (event.key !== "Escape" || this.verdict) return;
        event.preventDefault();
        this.answer(null);
      });
      this.buttons.skip.addEventListener("click", () => this.answer(null));
      this.buttons.again.addEventListener("click", () => this.again());
      this.buttons.off.addEventListener("click", () => ask(false, this));
      this.behind.addEventListener("beforematch", () => this.openBy());
    }

    /** The last question of the note; the section's title where it has none. */
    get question() {
      const note = [...this.form.parentElement.children].filter((e) => e !== this.form);
      const text = note.map((e) => e.textContent.trim()).join(" ");
      const asks = text.split(/(?<=[.?!])\s+/).filter((said) => said.endsWith("?"));
      return asks.at(-1) ?? this.title;
    }

    get verdict() {
      return judged(this.record, kept.of(this.key));
    }

    /** The guess as submitted; a number that cannot be read stays in its field. */
    take(button) {
      if (this.record.kind === "choice")
        return this.answer(this.record.choices[button.value]);
      const field = this.form.elements.number;
      const text = field.value.trim();
      if (judged(this.record, text)) return this.answer(text);
      field.setAttribute("aria-invalid", "true");
      const shown = text.length > 30 ? `${text.slice(0, 30)}…` : text;
      this.status.textContent =
        (text ? `“${shown}” cannot be read as a number above zero. ` : "") +
        "Give one such as 7.5, 2,048, 1e3, 10 k or 2*240, or skip.";
      field.focus();
    }

    answer(text) {
      kept.change({ [this.key]: text });
      this.show();
      summarise();
      this.goBehind();
    }

    again() {
      kept.change({ [this.key]: undefined });
      this.opened = false;
      this.show();
      summarise();
      this.form.querySelector("fieldset :is(input, button)").focus();
    }

    /** Opened by a link or by the browser's search: the question still stands. */
    openBy() {
      this.opened = true;
      this.show();
    }

    /** On to the result, which is scrolled to only where it is not in sight. */
    goBehind() {
      this.behind.tabIndex = -1;
      this.behind.focus({ preventScroll: true });
      if (this.behind.getBoundingClientRect().top > innerHeight * 0.7)
        document.getElementById(this.anchor).scrollIntoView();
    }

    show() {
      const { verdict, record, status, buttons } = this;
      const text = kept.of(this.key);
      const open = !asking() || this.opened || Boolean(verdict);
      if (open) this.behind.removeAttribute("hidden");
      else this.behind.setAttribute("hidden", "until-found");
      this.behind.classList.add("sm-set");
      this.fields.hidden = Boolean(verdict);
      buttons.skip.hidden = buttons.off.hidden = Boolean(verdict);
      buttons.again.hidden = !verdict;
      this.form.elements.number?.removeAttribute("aria-invalid");
      status.dataset.verdict = this.line.dataset.verdict = verdict ?? "";
      status.replaceChildren();
      this.line.textContent = this.plain;
      if (verdict) {
        const mine = verdict === "skipped" ? "" : inWords(record, text);
        status.replaceChildren(...marked(verdict, "."));
        if (mine) this.line.replaceChildren(...marked(verdict, compared(record, mine)));
      }
    }
  }

  /** What the reader said and what is true, in a sentence or two. */
  function compared({ kind, truth }, mine) {
    const quoted = (words) => (kind === "choice" ? `“${words}”` : words);
    if (mine === truth) return `: it is ${quoted(truth)}.`;
    return `. You said ${quoted(mine)}. It is ${quoted(truth)}.`;
  }

  /** The sign and the word of a verdict, and what follows them. */
  function marked(verdict, rest) {
    const sign = Object.assign(document.createElement("span"), {
      className: "sm-guess-mark",
      textContent: MARKS[verdict],
      ariaHidden: "true",
    });
    const word = document.createElement("strong");
    word.textContent = VERDICTS[verdict];
    return [sign, " ", word, rest];
  }

  // What asks again in another chapter judges and says it alike; see returning.js.
  Shardmath.guessing = { judged, inWords, compared, marked };

  // ---- All guesses of the page ---------------------------------------------------

  const root = document.documentElement;
  const box = document.querySelector(".sm-guesses");
  const inBox = (what) => box.querySelector(what);
  const asking = () => root.classList.contains("sm-guessing");

  function ask(on, from) {
    root.classList.toggle("sm-guessing", on);
    asks.set(on ? "yes" : "no"); // where that is refused, the next page asks again
    for (const guess of guesses) guess.show();
    summarise();
    from?.goBehind();
  }

  /** "2 of 4 right, 1 near, 1 skipped", and a line for each that leads back to it. */
  function summarise() {
    const verdicts = guesses.map((guess) => guess.verdict ?? "open");
    const count = (kind) => verdicts.filter((verdict) => verdict === kind).length;
    const parts = [`${count("right")} of ${guesses.length} right`];
    for (const [kind, word] of [
      ["near", "near"],
      ["skipped", "skipped"],
      ["open", "to go"],
    ])
      if (count(kind)) parts.push(`${count(kind)} ${word}`);
    const told = asking() ? `${parts.join(", ")}.` : "They are not asked for now.";
    inBox(".sm-guesses-count").textContent = told;
    inBox("ol").hidden = !asking();
    inBox("ol").replaceChildren(...guesses.map(row));
    inBox("[role=status]").textContent = kept.trouble;
    inBox("input").checked = asking();
    box.hidden = false;
  }

  function row(guess) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = `#${guess.anchor}`;
    link.textContent = guess.question;
    const { verdict, record } = guess;
    item.dataset.verdict = verdict ?? "";
    item.append(link, " ");
    if (!verdict) return item;
    const mine = inWords(record, kept.of(guess.key) ?? "");
    const skipped = verdict === "skipped" ? `: it is ${record.truth}.` : "";
    item.append(...marked(verdict, skipped || compared(record, mine)));
    return item;
  }

  /** Open what stands behind a guess and holds the place that a link leads to. */
  function follow() {
    let anchor;
    try {
      anchor = decodeURIComponent(location.hash.slice(1));
    } catch {
      return; // "100%" is no anchor
    }
    const place = document.getElementById(anchor);
    const guess = guesses.find(({ behind }) => place && behind.contains(place));
    if (!guess?.behind.hasAttribute("hidden")) return;
    guess.openBy();
    place.scrollIntoView();
  }

  kept.mend();
  // On file:// and where scripts come late all is open, and nobody is asked.
  const forms = document.querySelectorAll(".sm-guess:not(.sm-guess-again)");
  const guesses = [...forms].map((form) => new Guess(form));
  if (box && location.protocol !== "file:") {
    for (const guess of guesses) guess.show();
    summarise();
    follow();
    addEventListener("hashchange", follow);
    inBox("input").addEventListener("change", (e) => ask(e.target.checked));
    inBox("button").addEventListener("click", () => {
      kept.change(Object.fromEntries(guesses.map(({ key }) => [key, undefined])));
      for (const guess of guesses) {
        guess.opened = false;
        guess.show();
      }
      summarise();
      inBox("[role=status]").textContent ||= "All guesses of this page are forgotten.";
      box.scrollIntoView({ block: "nearest" }); // all above it became shorter
    });
  }
}
