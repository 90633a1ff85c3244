// Starts the live figures and the answer fields of a page.

import { mountCheck } from "./check.js";
import { call, percent, running, start } from "./engine.js";
import { mountFunction } from "./functions.js";
import { address, linkOf, wanted } from "./link.js";
import { calm, mount } from "./live.js";
import { mountMachine } from "./machine.js";

const SOON = 300; // ms; an answer that comes sooner needs no message
const NEAR = "200% 0px"; // two screens above and below, so Python has time to start
const IN_VIEW = 0.6; // the share of a picture in view at which it counts as seen

/** Call Python, and `tell` the reader if it has to start first. */
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

/** A function that runs at most once. */
function once(run) {
  let result = null;
  return () => (result ??= run());
}

/** Call `run` when a reader approaches a control. */
function onReach(element, run) {
  for (const event of ["pointerover", "focusin"])
    element.addEventListener(event, run, { once: true });
}

/** Call `run` when a share of the element is in view, or it is within `rootMargin`. */
function onView(element, run, options) {
  const observer = new IntersectionObserver((entries) => {
    const { isIntersecting, intersectionRatio } = entries.at(-1);
    if (!isIntersecting || intersectionRatio < (options.threshold ?? 0)) return;
    observer.disconnect();
    run();
  }, options);
  observer.observe(element);
}

/**
 * Call `see` when the page has loaded and the element is in view, and `come` when a
 * reader who scrolls comes near. Readers who don't scroll do not start Python.
 */
function onApproach(element, see, come) {
  const seen = () => onView(element, see, {});
  if (document.readyState === "complete") seen();
  else addEventListener("load", seen);
  const near = () => onView(element, come, { rootMargin: NEAR });
  addEventListener("scroll", near, { once: true, passive: true });
}

/**
 * Play the page's first figure once, from its first step, when it is in view, but not
 * if motion is reduced, if a reader has used it, or if its answers are missing.
 * @param answers resolves to the answers that the page carries
 */
function playOnce(block, { player, settings }, answers) {
  if (!player || block !== document.querySelector(".sm-live") || calm()) return;
  let touched = false;
  const touch = ({ isTrusted }) => (touched ||= isTrusted);
  for (const event of ["pointerdown", "keydown", "input", "click"])
    block.addEventListener(event, touch, { capture: true });
  const begin = async () => {
    const { name, dataset, max } = player.slider;
    const steps = dataset.stops.split(" ").slice(0, Number(max) + 1).map(Number);
    const known = await answers();
    const carried = (step) => known[asked({ ...settings(), [name]: step })];
    if (!touched && steps.every(carried)) player.begin();
  };
  onView(block.querySelector(".sm-picture"), begin, { threshold: IN_VIEW });
}

/** The key of settings in the file of answers. */
const asked = (settings) => JSON.stringify(Object.values(settings));

const early = (pack) => start(pack).catch(() => {}); // moving a control shows errors

/** A message about settings in a link, which repeats only names of the figure. */
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
  // The answers that the page carries. Without them, Python computes all.
  const carried = once(async () => {
    try {
      const response = await fetch(new URL(block.dataset.answers, import.meta.url));
      return response.ok ? await response.json() : {};
    } catch {
      return {};
    }
  });
  const figure = mount(block, async (params, tell) => {
    const known = (await carried())[asked(params)];
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
  const whole = "whole" in block.dataset; // then Python is not needed
  const prepare = once(() => {
    carried();
    settle();
    return true;
  });
  const wake = once(() => {
    prepare();
    if (!whole) early(name);
    return true;
  });
  onReach(block, wake);
  if (navigator.connection?.saveData) return;
  onApproach(block, prepare, wake);
  if (!linked) playOnce(block, figure, carried);
}

/** Start what matches, one by one, so if one of them fails, the others still start. */
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
