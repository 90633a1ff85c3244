// Brings the live figures and the answer fields of a page to life.

import { mountCheck } from "./check.js";
import { call, percent, running, start } from "./engine.js";
import { mountFunction } from "./functions.js";
import { address, linkOf, wanted } from "./link.js";
import { mount } from "./live.js";
import { mountMachine } from "./machine.js";

const SOON = 300; // ms: an answer that comes sooner needs no message
const NEAR = "200% 0px"; // two screens above and below: time for Python to start

/** Call Python, and `tell` the reader while it has to start first. */
async function telling(tell, ...asked) {
  let isTold = false;
  const timer = setInterval(() => {
    if (!running()) tell("Starting Python in this page (3.5 MB, only once) …", percent());
    else if (isTold) tell("Python has started and is at work …");
    isTold ||= !running();
  }, SOON);
  try {
    return await call(...asked);
  } finally {
    clearInterval(timer);
  }
}

/** A function that is called once, at most. */
function once(run) {
  let result = null;
  return () => (result ??= run());
}

/** Call `run` when a reader reaches for a control, while the hand is on its way. */
function onReach(element, run) {
  for (const event of ["pointerover", "focusin"])
    element.addEventListener(event, run, { once: true });
}

/** Call `run` when the page has loaded and the element is seen, or near on the way. */
function onApproach(element, run) {
  const watch = (rootMargin) => {
    const observer = new IntersectionObserver(
      ([entry]) => {
        if (!entry.isIntersecting) return;
        observer.disconnect();
        run();
      },
      { rootMargin },
    );
    observer.observe(element);
  };
  if (document.readyState === "complete") watch("0px");
  else addEventListener("load", () => watch("0px"));
  // Who only looks in, and does not scroll, brings nothing.
  addEventListener("scroll", () => watch(NEAR), { once: true, passive: true });
}

const early = (pack) => start(pack).catch(() => {}); // who moves a control is told

/** What to say of settings in a link; only the figure's own names are repeated. */
function refusal(refused, controls) {
  const own = controls.map(({ name }) => name).filter((name) => refused.includes(name));
  const names = own.map((name) => `“${name}”`).join(" and ");
  const strange = refused.length - own.length;
  return [
    own.length && `The link gives ${names} a value that the figure does not offer.`,
    strange && "The link names a setting that the figure does not have.",
  ]
    .filter(Boolean)
    .join(" ");
}

function mountFigure(block, place) {
  const name = block.dataset.figure;
  // The answers that the page carries; without them Python gives all.
  const carried = once(async () => {
    try {
      const response = await fetch(new URL(block.dataset.answers, import.meta.url));
      return response.ok ? await response.json() : {};
    } catch {
      return {};
    }
  });
  const figure = mount(block, async (params, tell) => {
    const known = (await carried())[JSON.stringify(Object.values(params))];
    if (known) return known;
    return telling(tell, "shardmath.draw.live", "answer", { name, params }, name);
  });

  function follow() {
    const linked = wanted(location.hash, place, figure.controls);
    if (!linked) return false;
    const refused = figure.set(linked);
    if (refused.length) figure.say(refusal(refused, figure.controls));
    block.scrollIntoView();
    return true;
  }

  block.querySelector('[data-do="link"]')?.addEventListener("click", async () => {
    const url = new URL(linkOf(place, figure.settings()), location.href);
    history.replaceState(null, "", url);
    try {
      await navigator.clipboard.writeText(url.href);
      figure.say("The link to this setting is copied.");
    } catch {
      figure.say("The link to this setting is in the address bar.");
    }
  });
  addEventListener("hashchange", follow);
  const linked = follow();
  const settle = mountMachine(block, figure, linked);
  const whole = "whole" in block.dataset; // then Python is asked for nothing
  const wake = once(() => {
    carried();
    if (!whole) early(name);
    settle();
    return true;
  });
  onReach(block, wake);
  if (!navigator.connection?.saveData) onApproach(block, wake);
}

/** Start what matches, one by one: where one of them fails, the others still start. */
function mountEach(selector, mountOne) {
  for (const block of document.querySelectorAll(selector))
    try {
      mountOne(block);
    } catch (error) {
      console.error(error);
      block.querySelector(".sm-message, .sm-verdict").textContent =
        "This could not start: an error in the page's script.";
    }
}

const seen = {};
mountEach(".sm-live", (block) => {
  const name = block.dataset.figure;
  seen[name] = (seen[name] ?? 0) + 1;
  mountFigure(block, address(name, seen[name]));
});

mountEach('.sm-check[data-kind="number"]', (block) => {
  const { pack } = mountCheck(block, telling);
  onReach(block, () => early(pack));
});

mountEach('.sm-check[data-kind="function"]', (block) => {
  const { pack, reach } = mountFunction(block, telling);
  onReach(block, () => {
    early(pack);
    reach();
  });
});
