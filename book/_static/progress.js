// How far the reader is: ✓ and counts wherever a question or its page is named, the
// score of a page, and a file that takes it elsewhere. progress.py wrote the panel.
"use strict";
{
  const { answers, guesses, questions = {} } = Shardmath; // {page: {question: points}}
  const { kept, isRight } = answers;

  // ---- Counts --------------------------------------------------------------------

  /** What is reached of some pages. */
  function reached(pages) {
    const entries = kept.all();
    const found = { points: 0, right: 0, begun: 0, of: 0, most: 0 };
    for (const page of pages)
      for (const [question, points] of Object.entries(questions[page])) {
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

  const pageOf = ({ pathname }) =>
    Object.keys(questions).find((page) => pathname.endsWith(`/${page}.html`));

  // ---- Marks ---------------------------------------------------------------------

  /** What a child says at the end of `parent`; "" takes it away. */
  function say(parent, kind, text, name = "") {
    let mark = parent.querySelector(`:scope > .${kind}`);
    if (!text) return mark?.remove();
    if (!mark) {
      mark = document.createElement("span");
      mark.className = kind;
      parent.insertBefore(mark, parent.querySelector(":scope > .headerlink"));
    }
    mark.textContent = text;
    if (name) Object.assign(mark, { role: "img", ariaLabel: name });
    else mark.role = mark.ariaLabel = null;
  }

  const count = ({ right, of }) => (right ? `${right} of ${of}` : "");

  const counts = []; // [element, page]: links to pages with questions
  for (const link of document.querySelectorAll("nav.bd-links a[href]")) {
    const page = pageOf(link);
    if (page) counts.push([link, page]);
  }
  const cards = [...document.querySelectorAll("[data-exercises]")].filter(
    (card) => card.dataset.exercises in questions,
  );
  const here = pageOf(location);
  const marked = []; // [element, question]: headings and links to them
  if (here)
    for (const place of document.querySelectorAll(
      "article h2, #pst-page-toc-nav a[href^='#']",
    )) {
      const [question] = /^\d\d\.\d+(?= · )/.exec(place.textContent) ?? [];
      if (question) marked.push([place, question]);
    }

  function showMarks() {
    for (const [link, page] of counts) {
      const { right, of } = reached([page]);
      if (right === of) say(link, "sm-count", "✓", "all right");
      else say(link, "sm-count", count({ right, of }));
    }
    for (const card of cards) {
      const found = reached([card.dataset.exercises]);
      const place = card.querySelector(".sm-progress");
      if (!place) continue;
      const all = found.right === found.of ? "✓ " : "";
      place.textContent = found.right ? `${all}${count(found)}` : "";
      place.hidden = !found.right;
    }
    for (const [place, question] of marked)
      say(place, "sm-done", isRight(kept.of(question)) ? "✓" : "", "answered right");
  }

  // ---- The score of this page ----------------------------------------------------

  const box = document.querySelector(".sm-score");
  const inBox = (what) => box.querySelector(what);
  const lines = box ? [...box.querySelectorAll("[data-score]")] : [];

  function showScore() {
    for (const line of lines) {
      const all = line.dataset.score === "all";
      const found = reached(all ? Object.keys(questions) : [here]);
      for (const place of line.querySelectorAll("[data-count]"))
        place.textContent = found[place.dataset.count];
      for (const place of line.querySelectorAll("[data-some]"))
        place.hidden = !found[place.dataset.some];
      if (all) continue;
      inBox(".sm-score-bar > div").style.width = `${(100 * found.points) / found.most}%`;
      box.classList.toggle("sm-all", found.right === found.of);
    }
    const troubles = new Set([kept.trouble, guesses.trouble].filter(Boolean));
    inBox(".sm-score-trouble").textContent = [...troubles].join(" ");
  }

  /** Show all, once for however many entries have changed; what is right is told. */
  let isDue = false;
  let told = box && reached([here]).right;
  function refresh() {
    if (isDue) return;
    isDue = true;
    queueMicrotask(() => {
      isDue = false;
      showMarks();
      if (!box) return;
      showScore();
      const { right } = reached([here]);
      if (right !== told) inBox(":scope > [role=status]").textContent = lines[0].innerText;
      told = right;
    });
  }

  // ---- A file --------------------------------------------------------------------

  const KIND = "Shardmath progress";
  const VERSION = 1;
  const LARGEST = 5e6; // bytes: a text that is kept is a few hundred
  const isObject = (found) =>
    Object.prototype.toString.call(found) === "[object Object]";
  const isCount = (found) => Number.isInteger(found) && found >= 0;
  const isOneOf = (found, ...values) => [undefined, ...values].includes(found);

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
    if (!kept.isEntry(entry)) return "has no text";
    const { verdict, best, message = "", attempts = 0, time = 0 } = entry;
    if (!isOneOf(verdict, "right", "wrong") || !isOneOf(best, "right"))
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
    answers.change(changes);
    guesses.change(Object.fromEntries(unsaid));
    const all = many(Object.keys(found.answers).length, "answer", "answers");
    const fresh = Object.keys(changes).length || "none";
    const added = many(unsaid.length, "guess is", "guesses are");
    return `Of ${all} in the file, ${fresh} changed what is here; ${added} new.`;
  }

  function mountPanel() {
    const status = inBox(".sm-keeping-said");
    const input = inBox("input[type=file]");
    const dialog = inBox("dialog");
    const tell = (text) => (status.textContent = text);

    function save() {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([written()], { type: "application/json" }));
      link.download = `shardmath-progress-${new Date().toISOString().slice(0, 10)}.json`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      tell(`${link.download} has ${inWords()}.`);
    }

    async function open() {
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
      const more = aside ? `, and what was set aside as damaged` : "";
      inBox("dialog strong").textContent = `Erase ${inWords()}${more}?`;
      dialog.showModal();
    }

    const acts = { save, erase, open: () => input.click() };
    for (const button of box.querySelectorAll("details button"))
      button.addEventListener("click", acts[button.value]);
    input.addEventListener("change", open);
    dialog.addEventListener("close", () => {
      if (dialog.returnValue !== "erase") return;
      dialog.returnValue = "";
      answers.erase();
      guesses.erase();
      refresh();
      tell("All is erased.");
    });
  }

  // ---- This page -----------------------------------------------------------------

  if (box) {
    kept.mend();
    guesses.mend();
    mountPanel();
    showScore();
  }
  showMarks();
  document.addEventListener("shardmath:answer", refresh);
}
