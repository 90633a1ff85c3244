// The search: sections as one types, on this machine alone. search.py wrote the index.
"use strict";
{
  const MOST = 15; // results in sight
  const SNIPPET = 160; // letters
  const KINDS = { chapters: 1, reference: 0.75, exercises: 0.4, front: 0.3 };
  const SUMMED_UP = /^(what to remember|takeaway|source notes)$/i;

  // ---- Words ---------------------------------------------------------------------

  // Both spellings, and ways to write one name, become one; prefixes stay prefixes.
  const SAME = [
    [/\ball[ _-]?(gather|reduce)/g, "all$1"],
    [/\ball[ _-]?to[ _-]?all/g, "alltoall"],
    [/\breduce[ _-]?scatter/g, "reducescatter"],
    [/(\w{3})our/g, "$1or"], // behaviour, behavior
    [/(\w{3})tre\b/g, "$1ter"], // centre, center
    [/z/g, "s"], // quantize, quantise
    [/ll/g, "l"], // modelling, modeling
    [/grey/g, "gray"],
  ];

  /** `text` as words with a space around each. */
  function folded(text) {
    let plain = text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");
    for (const [from, to] of SAME) plain = plain.replace(from, to);
    const found = plain.match(/[\p{L}\p{N}_%]+(?:[.,][\p{N}]+)*\*?/gu) ?? [];
    return ` ${found.join(" ")} `;
  }

  /** The words of a query; the plural is no other word. */
  const termsOf = (query) =>
    folded(query)
      .split(" ")
      .filter(Boolean)
      .map((word) => word.replace(/([^s\d]{3,})s$/, "$1"));

  /** What the forms of a long word have in common. */
  const stem = (term) => term.replace(/(\w{5})(?:ations?|ing|ed|es?)$/, "$1");

  // ---- Ranking -------------------------------------------------------------------

  let entries = null;

  function prepared(pages) {
    const found = [];
    for (const { page, kind, url, sections } of pages)
      sections.forEach((section, place) => {
        const own = place === 0;
        const numbers = Object.keys(section.numbers).map((said) => said.split(" ").pop());
        const named = [section.symbols, section.terms, section.aliases ?? []].flat();
        const signs = named.map((name) => name.toLowerCase());
        found.push({
          ...section,
          page,
          kind,
          url: own ? url : `${url}#${section.anchor}`,
          base: url,
          weight: KINDS[kind] * (SUMMED_UP.test(section.title) ? 0.7 : 1),
          inTitle: folded(section.title),
          inPage: own ? " " : folded(page),
          inTerms: folded(section.terms.join(" ")),
          inText: folded(section.text),
          exact: new Set([...signs, ...numbers]),
        });
      });
    return found;
  }

  /** How often `term` is in `text`, a dozen times at most. */
  function often(text, term) {
    let times = 0;
    for (let at = -1; times < 12 && (at = text.indexOf(term, at + 1)) >= 0; ) times += 1;
    return times;
  }

  /** How well a word fits a section; 0 where it is nowhere in it. */
  function fit(entry, term) {
    const whole = ` ${term} `;
    const start = ` ${stem(term)}`;
    const times = often(entry.inText, start);
    return (
      (entry.exact.has(term) ? 12 : 0) +
      (entry.inTitle.includes(whole) ? 10 : entry.inTitle.includes(start) ? 6 : 0) +
      (entry.inTerms.includes(whole) ? 6 : entry.inTerms.includes(start) ? 3 : 0) +
      (entry.inPage.includes(start) ? 1 : 0) +
      (times ? (entry.inText.includes(whole) ? 1.5 : 1) + 1.5 * Math.log2(times) : 0)
    );
  }

  /** How many sections have all words of `query`, and the best of them. */
  function search(query) {
    const terms = termsOf(query);
    if (!terms.length) return { count: 0, best: [] };
    const together = ` ${terms.join(" ")}`;
    const number = query.trim().toLowerCase().replace(/^\(|\)$/g, "");
    const found = [];
    for (const entry of entries) {
      let score = 0;
      for (const term of terms) {
        const one = fit(entry, term);
        if (!one) {
          score = 0;
          break;
        }
        score += one;
      }
      if (!score) continue;
      if (terms.length > 1) {
        if (entry.inTitle.includes(together)) score += 20;
        if (entry.inTerms.includes(together)) score += 8;
        if (entry.inText.includes(together)) score += 4;
      }
      if (entry.inTitle === `${together} `) score += 20; // it is called so
      if (entry.numbers[number] || entry.aliases?.includes(number)) score += 30;
      found.push({ entry, score: score * entry.weight });
    }
    found.sort((a, b) => b.score - a.score); // stable: then as in the book
    const best = found.slice(0, MOST).map(({ entry }) => {
      const place = entry.numbers[number] ?? entry.numbers[`figure ${number}`];
      return { ...entry, url: place ? `${entry.base}#${place}` : entry.url };
    });
    return { count: found.length, best };
  }

  // ---- What is shown -------------------------------------------------------------

  const known = new Map(); // word → as it is folded: a text has few that are new

  function foldedWord(word) {
    if (!known.has(word)) known.set(word, folded(word));
    return known.get(word);
  }

  /** Where the first word of `text` is that `fits`; 0 where none does. */
  function placeOf(text, fits) {
    for (const { 0: word, index } of text.matchAll(/\S+/g)) if (fits(word)) return index;
    return 0;
  }

  /** The piece of `text` around the first word that begins with one of the terms. */
  function snippet(text, terms) {
    const starts = terms.map((term) => ` ${stem(term)}`);
    const fits = (word) => starts.some((start) => foldedWord(word).includes(start));
    const first = placeOf(text, fits);
    const from = text.lastIndexOf(". ", first) + 1;
    const start = first - from > SNIPPET / 2 ? first : from;
    const more = start + SNIPPET < text.length;
    const piece = text.slice(start, start + SNIPPET).trim();
    const whole = more ? piece.slice(0, piece.lastIndexOf(" ")) : piece;
    const parts = whole.split(/(\s+)/).map((word) => {
      if (!word.trim() || !fits(word)) return word;
      const mark = document.createElement("mark");
      mark.textContent = word;
      return mark;
    });
    return [start > from ? "… " : "", ...parts, more ? " …" : ""];
  }

  const root = document.documentElement.dataset.content_root ?? "./";

  function option(entry, id, terms) {
    const link = document.createElement("a");
    link.id = id;
    link.href = root + entry.url;
    link.tabIndex = -1; // the field keeps the focus
    link.setAttribute("role", "option");
    link.ariaSelected = "false";
    const title = document.createElement("strong");
    title.textContent = entry.title;
    const page = document.createElement("span");
    page.className = "sm-found-page";
    page.textContent = entry.title === entry.page ? "" : entry.page;
    const text = document.createElement("span");
    text.className = "sm-found-text";
    text.append(...snippet(entry.text, terms));
    link.append(title, " ", page, text);
    return link;
  }

  let loading = null;

  /** The index, fetched once, as a script: files have no other way. */
  function load() {
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${root}_static/sections.js`;
      script.onload = () => {
        entries = prepared(globalThis.shardmathSections);
        delete globalThis.shardmathSections;
        resolve();
      };
      script.onerror = () => {
        loading = null; // the next key tries again
        reject(new Error("The index of the search could not be loaded."));
      };
      document.head.append(script);
    });
    return loading;
  }

  function mount(form, number) {
    const field = form.querySelector("input");
    const list = document.createElement("div");
    list.id = `sm-found-${number}`;
    list.className = "sm-found";
    list.setAttribute("role", "listbox");
    list.ariaLabel = "Sections";
    list.hidden = true;
    const status = document.createElement("p");
    status.className = "sm-found-count";
    status.setAttribute("role", "status");
    form.after(status, list);
    field.setAttribute("role", "combobox");
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-controls", list.id);
    field.ariaExpanded = "false";

    const options = () => [...list.children];
    const chosen = () => options().findIndex((one) => one.ariaSelected === "true");

    function choose(place) {
      options().forEach((one, at) => (one.ariaSelected = String(at === place)));
      const one = list.children[place];
      if (one) field.setAttribute("aria-activedescendant", one.id);
      else field.removeAttribute("aria-activedescendant");
      one?.scrollIntoView({ block: "nearest" });
    }

    async function show() {
      const query = field.value;
      if (!entries)
        try {
          await load();
        } catch (error) {
          status.textContent = error.message;
          return;
        }
      if (query !== field.value) return; // a later key shows its own
      const { count, best } = search(query);
      const terms = termsOf(query);
      list.replaceChildren(
        ...best.map((one, at) => option(one, `${list.id}-${at}`, terms)),
      );
      list.hidden = !count;
      field.ariaExpanded = String(count > 0);
      field.removeAttribute("aria-activedescendant");
      const some = count > MOST ? `, the best ${MOST} are shown` : "";
      const told = count === 1 ? "1 section" : `${count} sections${some}`;
      status.textContent = terms.length ? told : "";
    }

    field.addEventListener("focus", () => load().catch(() => {}));
    field.addEventListener("input", show);
    field.addEventListener("keydown", (event) => {
      const last = list.children.length - 1;
      const at = chosen();
      const to = { ArrowDown: at === last ? 0 : at + 1, ArrowUp: at < 1 ? last : at - 1 };
      if (event.key in to && last >= 0) {
        event.preventDefault();
        choose(to[event.key]);
      } else if (event.key === "Escape" && field.value && !form.closest("dialog")) {
        field.value = "";
        show();
      }
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      await show();
      list.children[Math.max(chosen(), 0)]?.click();
    });
    // A section of this very page: the dialog would stay over it.
    list.addEventListener("click", () => form.closest("dialog")?.close());
    return { field, show };
  }

  const mounted = [...document.querySelectorAll("form.bd-search")].map(mount);
  const asked = new URLSearchParams(location.search).get("q");
  const page = document.querySelector("main form.bd-search");
  for (const { field, show } of mounted)
    if (page?.contains(field)) {
      if (asked) {
        field.value = asked;
        show();
      }
      field.focus();
    }
}
