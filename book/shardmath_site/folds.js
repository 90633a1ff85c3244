// Opens or closes all folded code, as the reader left it. It runs before the text is
// parsed, so that nothing moves afterwards.
"use strict";
{
  const KEY = "shardmath.code";
  let shown = false;
  try {
    shown = localStorage.getItem(KEY) === "shown";
  } catch {} // a browser may forbid it

  const apply = () => {
    for (const fold of document.querySelectorAll("details:is(.sm-fold, .sm-checks)"))
      fold.open = shown;
  };
  const observer = new MutationObserver(apply);
  if (shown) observer.observe(document, { childList: true, subtree: true });

  // A link into a folded section opens it.
  const reveal = () => {
    let anchor;
    try {
      anchor = decodeURIComponent(location.hash.slice(1));
    } catch {
      return; // "100%" is not an anchor
    }
    const target = document.getElementById(anchor);
    const shut =
      target?.closest("details.sm-deeper:not([open])") ??
      target?.querySelector(":scope > details.sm-deeper:not([open])");
    if (!shut) return;
    shut.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);

  addEventListener("DOMContentLoaded", () => {
    reveal();
    observer.disconnect();
    if (shown) apply();
    const button = document.querySelector(".sm-code-switch");
    const state = button.querySelector(".sm-code-state");
    const say = () => {
      state.textContent = shown ? "shown" : "folded";
    };
    say();
    button.addEventListener("click", () => {
      shown = !shown;
      // If storage is refused, the setting lasts for this page.
      globalThis.Shardmath?.storage.setting(KEY).set(shown ? "shown" : "folded");
      // Keep what the reader looks at in its place.
      const { left } = document.querySelector("article").getBoundingClientRect();
      const seen = document.elementFromPoint(left + 1, innerHeight / 3);
      const block = seen?.closest("article :is(.cell, section > *)");
      const before = block?.getBoundingClientRect().top;
      apply();
      say();
      if (block)
        scrollBy({ top: block.getBoundingClientRect().top - before, behavior: "instant" });
    });
  });
}
