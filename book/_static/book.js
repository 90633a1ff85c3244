// What the theme's scripts leave out. Everything here is a comfort: pages read without it.
"use strict";
{
  // A box that scrolls sideways must be reachable by keyboard, and only then; it fades
  // at the side where it goes on.
  const boxes = document.querySelectorAll(
    ".sm-formula-box, .pst-scrollable-table-container, .cell_output .text_html",
  );
  const markMore = (box) => {
    const right = box.scrollWidth - box.clientWidth - box.scrollLeft;
    const sides = [box.scrollLeft > 1 && "start", right > 1 && "end"].filter(Boolean);
    if (sides.length) box.dataset.more = sides.join(" ");
    else delete box.dataset.more;
  };
  const markScrollable = () => {
    for (const box of boxes) {
      const scrolls = box.scrollWidth > box.clientWidth + 1;
      box.toggleAttribute("tabindex", false);
      if (scrolls) box.tabIndex = 0;
      markMore(box);
    }
  };
  for (const box of boxes)
    box.addEventListener("scroll", () => markMore(box), { passive: true });
  addEventListener("resize", markScrollable);
  document.fonts.ready.then(markScrollable);

  // Who follows a link into a fold finds it open.
  const reveal = () => {
    const target = document.querySelector(":target");
    const shut = [];
    for (let e = target; e; e = e.parentElement)
      if (e.localName === "details" && !e.open) shut.push(e);
    for (const fold of shut) fold.open = true;
    if (shut.length) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();

  // Search results quote their pages by fetching them, which file:// forbids.
  if (location.protocol === "file:")
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

  // Browsers refuse modules on file://, loudly; so they are asked for only over http.
  if (location.protocol !== "file:")
    for (const script of document.querySelectorAll("script[type='shardmath/module']"))
      import(script.src);

  // The theme's dialogs come without a name.
  const names = {
    "pst-primary-sidebar-modal": "Table of contents",
    "pst-secondary-sidebar-modal": "On this page",
    "pst-search-dialog": "Search",
  };
  for (const [id, name] of Object.entries(names))
    document.getElementById(id)?.setAttribute("aria-label", name);

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
