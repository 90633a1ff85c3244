// Shows how far the reader is: ✓ and counts wherever a question or its page is named, and
// the score of a page, which progress.py wrote as it is before the first answer.
"use strict";
{
  const { answers, guesses, progress, questions = {} } = Shardmath;
  const { kept, isRight } = answers;
  const { reached } = progress;

  const pageOf = ({ pathname }) =>
    Object.keys(questions).find((page) => pathname.endsWith(`/${page}.html`));

  // ---- Marks ---------------------------------------------------------------------

  /** Have a mark of this kind at the end of `parent`; without a text it goes. */
  function mark(parent, kind, text, name = "") {
    let place = parent.querySelector(`:scope > .${kind}`);
    if (!text) return place?.remove();
    if (!place) {
      place = document.createElement("span");
      place.className = kind;
      parent.insertBefore(place, parent.querySelector(":scope > .headerlink"));
    }
    place.textContent = text;
    place.role = name ? "img" : null;
    place.ariaLabel = name || null;
  }

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
      if (right === of) mark(link, "sm-count", "✓", "all right");
      else mark(link, "sm-count", right && `${right} of ${of}`);
    }
    for (const card of cards) {
      const { right, of } = reached([card.dataset.exercises]);
      const place = card.querySelector(".sm-progress");
      if (!place) continue;
      place.textContent = right === of ? "✓ all right" : `${right} right`;
      place.hidden = !right;
    }
    for (const [place, question] of marked)
      mark(place, "sm-done", isRight(kept.of(question)) && "✓", "answered right");
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

  let told = box && reached([here]).right;

  /** Show what has changed; who listens is told of what is right. */
  function refresh() {
    showMarks();
    if (!box) return;
    showScore();
    const { right } = reached([here]);
    if (right !== told) inBox(":scope > [role=status]").textContent = lines[0].innerText;
    told = right;
  }

  // ---- This page -----------------------------------------------------------------

  if (box) {
    kept.mend();
    guesses.mend();
    showScore();
  }
  showMarks();
  document.addEventListener("shardmath:kept", refresh);
}
