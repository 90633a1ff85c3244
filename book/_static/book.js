// What the theme's scripts leave out. Everything here is a comfort: pages read without it.
"use strict";
{
  // A box that scrolls sideways must be reachable by keyboard, and only then; it fades
  // at the side where it goes on. All are looked at, then all are marked: each change
  // between two looks would cost a layout of the page.
  const boxes = document.querySelectorAll(
    ".sm-formula-box, .pst-scrollable-table-container, .cell_output .text_html, .sm-readout, pre",
  );
  const look = (box) => {
    const right = box.scrollWidth - box.clientWidth - box.scrollLeft;
    const sides = [box.scrollLeft > 1 && "start", right > 1 && "end"].filter(Boolean);
    return [box, sides.join(" ")];
  };
  const mark = ([box, sides]) => {
    if (sides) {
      box.tabIndex = 0;
      box.dataset.more = sides;
    } else if (box.dataset.more) {
      box.removeAttribute("tabindex");
      delete box.dataset.more;
    }
  };
  const markAll = (found) => [...found].map(look).forEach(mark);
  // What a fold or a guess hides has no layout, and to look at it would make one. The
  // observer tells of a box when it has its layout.
  const laid = new Set();
  const sized = new ResizeObserver((entries) => {
    for (const { target } of entries) laid.add(target);
    markAll(entries.map(({ target }) => target));
  });
  for (const box of boxes) {
    sized.observe(box);
    box.addEventListener("scroll", () => markAll([box]), { passive: true });
  }
  document.fonts.addEventListener("loadingdone", () => markAll(laid));

  // Not ":target": where a page comes in by a link, scripts run before there is one.
  const place = (anchor) => {
    try {
      return document.getElementById(decodeURIComponent(anchor));
    } catch {
      return null; // "100%" is no anchor
    }
  };

  // Who follows a link into a fold finds it open.
  const reveal = () => {
    const target = place(location.hash.slice(1));
    const shut = [];
    for (let e = target; e; e = e.parentElement)
      if (e.localName === "details" && !e.open) shut.push(e);
    for (const fold of shut) fold.open = true;
    if (shut.length) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();

  // Browsers refuse modules on file://, loudly; so they are asked for only over http.
  if (location.protocol !== "file:")
    for (const script of document.querySelectorAll("script[type='shardmath/module']"))
      import(script.src).catch(() => {
        // Figures and answer fields stay as they are written: say so at each of them.
        for (const place of document.querySelectorAll(".sm-live .sm-message, .sm-verdict"))
          place.textContent = "A script of this page did not arrive: reload the page.";
      });

  // The Python prompt comes when it is asked for: by its button, by Ctrl and the key left
  // of 1, or by a cell. Its script and the page's cells are named by the button.
  const prompt = document.querySelector(".sm-prompt-open");
  if (location.protocol === "file:")
    for (const button of document.querySelectorAll(".sm-prompt-open, .sm-try"))
      button.remove();
  else if (prompt) {
    const { script, cells } = prompt.dataset;
    const bring = async (act) => {
      try {
        await act(await import(new URL(script, document.baseURI)));
      } catch {
        prompt.textContent = "Python could not be brought";
      }
    };
    prompt.addEventListener("click", () => bring(({ open }) => open(cells)));
    addEventListener("keydown", (event) => {
      const { code, ctrlKey, altKey, shiftKey, metaKey } = event;
      if (code !== "Backquote" || !ctrlKey || altKey || shiftKey || metaKey) return;
      event.preventDefault();
      bring(({ toggle }) => toggle(cells));
    });
    for (const button of document.querySelectorAll(".sm-try"))
      button.addEventListener("click", () =>
        bring(({ take }) => take(cells, button.dataset.cell)),
      );
  }

  // The theme's dialogs come without a name.
  const names = {
    "pst-primary-sidebar-modal": "Table of contents",
    "pst-secondary-sidebar-modal": "On this page",
    "pst-search-dialog": "Search",
  };
  for (const [id, name] of Object.entries(names))
    document.getElementById(id)?.setAttribute("aria-label", name);

  // The definition of a term goes with Escape, and comes again at the next visit.
  const terms = document.querySelectorAll(".sm-term");
  addEventListener("keydown", ({ key }) => {
    if (key === "Escape") for (const term of terms) term.classList.add("sm-shut");
  });
  const keepInside = (tip) => {
    tip.style.marginLeft = "";
    const over = tip.getBoundingClientRect().right + 16 - innerWidth;
    if (over > 0) tip.style.marginLeft = `${-over}px`;
  };
  for (const term of terms)
    for (const event of ["mouseenter", "focusin"])
      term.addEventListener(event, () => {
        term.classList.remove("sm-shut");
        keepInside(term.querySelector(".sm-tip"));
      });

  // Mark the section in view in the list of this page's sections.
  const links = new Map();
  for (const link of document.querySelectorAll("#pst-page-toc-nav a[href^='#']")) {
    const section = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (section) links.set(section, link);
  }
  const inView = new Set();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries)
        inView[isIntersecting ? "add" : "delete"](target);
      const last = [...links.keys()].filter((section) => inView.has(section)).at(-1);
      for (const [section, link] of links)
        link.classList.toggle("active", section === last);
    },
    { rootMargin: "-15% 0px -70% 0px" },
  );
  for (const section of links.keys()) observer.observe(section);
}
