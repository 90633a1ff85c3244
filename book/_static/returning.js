// Five questions from earlier chapters, wrong ones first; see returning.py. What is
// answered here is kept beside the first guess, under its key with "+" behind.
"use strict";
{
  const { guesses: kept, guessing } = Shardmath;
  const { judged, inWords, compared, marked } = guessing;
  const COUNT = 5;
  const box = document.querySelector(".sm-returning");
  const script = document.querySelector('script[src*="returning.js"]');
  const again = ({ key }) => `${key}+`;

  /** How soon a question returns: what went wrong last comes first, what is known last. */
  function rank(one) {
    const last = judged(one.record, kept.of(again(one)));
    const first = judged(one.record, kept.of(one.key));
    if (last) return last === "right" ? 4 : 0;
    return { wrong: 0, near: 1, right: 3 }[first] ?? 2;
  }

  /** Those of earlier chapters; of equal rank the latest chapter comes first. */
  function chosen(questions) {
    const earlier = questions.filter(({ chapter }) => chapter < box.dataset.chapter);
    const latest = earlier.reverse().map((one) => [rank(one), one]);
    return latest
      .sort(([a], [b]) => a - b)
      .slice(0, COUNT)
      .map(([, one]) => one);
  }

  function element(name, properties, ...inside) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...inside);
    return made;
  }

  /** A question with its answers or its field, and what is said of an answer. */
  function item(one, place) {
    const { record, chapter, url, anchor, title, question } = one;
    const id = `returning-${place}`;
    const said = element("p", { className: "sm-guess-said", id: `${id}-said` });
    said.role = "status";
    const fields = element("fieldset", {});
    fields.setAttribute("aria-labelledby", `${id}-asks`);
    const form = element("form", { className: "sm-guess sm-guess-again" }, fields);
    const answer = (text) => {
      const verdict = judged(record, text);
      if (!verdict) {
        said.textContent = "Give a number above zero, such as 7.5, 2,048, 1e3 or 10 k.";
        return form.elements.number.focus();
      }
      kept.change({ [again(one)]: text });
      fields.hidden = true;
      said.dataset.verdict = verdict;
      const top = script.src.replace(/_static\/.*/, "");
      const where = `Chapter ${Number(chapter)}: ${title}`;
      const link = element("a", { href: `${top}${url}#${anchor}` }, where);
      said.replaceChildren(...marked(verdict, compared(record, inWords(record, text))), " ", link);
      if (kept.trouble) box.querySelector(".sm-returning-note").textContent = kept.trouble;
    };
    if (record.kind === "choice") {
      fields.append(
        ...record.choices.map((label) =>
          element("button", { type: "button", onclick: () => answer(label) }, label),
        ),
      );
    } else {
      const field = element("input", { name: "number", size: 9, autocomplete: "off" });
      field.setAttribute("aria-describedby", said.id);
      field.setAttribute("aria-labelledby", `${id}-asks`);
      fields.append(field, ` ${record.unit} `, element("button", {}, "Answer"));
    }
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      answer(form.elements.number.value.trim());
    });
    return element("li", {}, element("p", { id: `${id}-asks` }, question), form, said);
  }

  function ask() {
    const list = box.querySelector("ol");
    list.replaceChildren(...chosen([...globalThis.shardmathEarlier]).map(item));
  }

  if (box) {
    box.hidden = false;
    box.addEventListener("toggle", () => {
      if (!box.open || box.querySelector("li")) return;
      if (globalThis.shardmathEarlier) return ask();
      const src = script.src.replace("returning.js", "earlier.js").replace(/\?.*/, "");
      const loaded = element("script", { src, onload: ask });
      loaded.onerror = () => {
        box.querySelector(".sm-returning-note").textContent =
          "The questions cannot be loaded. Reload the page to try again.";
      };
      document.head.append(loaded);
    });
  }
}
