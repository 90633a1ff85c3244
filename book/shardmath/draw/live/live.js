// A live figure: listens to its controls, asks Python, shows the answer.
// Python draws; this file is the same in Jupyter and on the page.

const QUIET = 800; // ms without a change before the result is read out
const TWEEN = 200; // ms that a moved thing takes to its new place
const RIDE = 450; // ms that it takes in a step of a sequence
const PACE = 700; // ms between two steps of a sequence that plays, at most
const LONGEST = 8000; // ms that a sequence plays from its beginning to its end
const MOVING = ["x", "y", "cx", "cy", "width", "height", "points", "d", "transform"];
const NUMBER = /-?\d+(?:\.\d+)?/g;
const PAUSE = "M5 3v10M11 3v10";

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * Switch on the controls of one block.
 * @param root the element that `shardmath.draw.live.block` describes
 * @param compute (settings, tell) => Promise of what Python's `answer` returns;
 *   tell(text, percent) shows a message while it takes
 * @returns {controls, settings(), set(settings), say(text), player}: `set` moves the
 *   controls by name, redraws, and returns what no control can take; `say` shows a
 *   message that stays until the reader moves something; `player` is that of `playing`,
 *   where the figure has a sequence
 */
export function mount(root, compute) {
  const part = (name) => root.querySelector(`.sm-${name}`);
  const controls = [...root.querySelectorAll("[name]")];
  const named = Object.fromEntries(controls.map((c) => [c.name, c]));
  const names = root.dataset.settings.split(" "); // in the order of the figure's record
  const settings = () => Object.fromEntries(names.map((n) => [n, value(named[n])]));
  const start = settings();
  const picture = part("picture");
  const plays = part("player")?.dataset.plays;
  let notice = "";
  let wanted = null;
  let busy = false;
  let key = null; // the slider that a key moved last, and the stop that it came from
  let timer;

  function tell(text, percent) {
    part("message").textContent = text || notice;
    part("progress")?.remove();
    if (percent === undefined) return;
    const progress = document.createElement("span"); // not read out at each step
    progress.className = "sm-progress";
    progress.ariaHidden = "true";
    progress.textContent = `${percent} %`;
    part("status").append(progress);
  }

  function show({ svg, line, table, summary, last, idle = {}, used = {} }) {
    if (plays && last !== null) hold(named[plays], last);
    if (!wanted) for (const [name, now] of Object.entries(used)) snap(named[name], now);
    for (const control of controls) allow(control, idle[control.name]);
    replace(picture, svg, plays ? Math.min(RIDE, pace(named[plays])) : TWEEN);
    part("line").innerHTML = line;
    if (part("numbers")) {
      part("numbers").hidden = !table;
      part("numbers").querySelector(".sm-readout").innerHTML = table;
    }
    tell("");
    clearTimeout(timer);
    if (player?.unasked()) return; // nobody waits to hear it
    timer = setTimeout(() => {
      part("said").textContent = summary;
    }, QUIET);
  }

  /** Move a control to the value that was drawn in place of the one asked for. */
  function snap(control, now) {
    const [asked, from] = [Number(control.value), key?.from];
    const stuck = key?.slider === control && stops(control).indexOf(now) === from;
    const next = asked + Math.sign(asked - from);
    // A key would come back to where it was for ever: it goes on to the next that goes.
    if (stuck && asked !== from && next >= 0 && next <= Number(control.max)) {
      control.value = next;
      label(control);
      wanted = settings();
    } else put(control, now);
  }

  async function update() {
    wanted = settings();
    if (busy) return busy; // the loop below will see it: the newest setting wins
    let done;
    busy = new Promise((resolve) => (done = resolve));
    root.setAttribute("aria-busy", "true");
    try {
      while (wanted) {
        const given = wanted;
        wanted = null;
        show(await compute(given, tell));
      }
    } catch (error) {
      wanted = null;
      tell(`${error.message} The picture keeps its last setting.`);
    }
    busy = false;
    root.removeAttribute("aria-busy");
    done();
  }

  function set(given) {
    notice = "";
    if (plays in given) player.choose();
    const refused = Object.keys(given).filter(
      (name) => !Object.hasOwn(named, name) || !put(named[name], given[name]),
    );
    update();
    return refused;
  }

  /** Move the slider to the stop of that number, as a hand would. */
  function move(slider, stop) {
    const before = slider.value;
    slider.value = stop;
    if (slider.value !== before)
      slider.dispatchEvent(new Event("input", { bubbles: true }));
  }

  root.addEventListener("input", (event) => {
    notice = "";
    label(event.target);
    update();
  });
  root.addEventListener("keydown", ({ target }) => {
    if (target.type === "range" && !busy)
      key = { slider: target, from: Number(target.value) };
  });
  root.addEventListener("pointerdown", () => (key = null));
  root.addEventListener("click", ({ target }) => {
    const { preset, do: action } = target.closest("button")?.dataset ?? {};
    if (preset) set(JSON.parse(preset));
    if (action === "reset") set(start);
  });
  drag(picture, (name, stop) => move(named[name], stop));
  const player = plays ? playing(root, named[plays], move, () => busy) : null;
  for (const fields of root.querySelectorAll("fieldset")) fields.disabled = false;
  part("note").remove();
  return {
    controls,
    settings,
    set,
    player,
    say(text) {
      notice = text;
      tell("");
    },
  };
}

const stops = (slider) => slider.dataset.stops.split(" ").map(Number);

function value(control) {
  return control.type === "range" ? stops(control)[control.value] : control.value;
}

/** Set a control; false where it can not take the value. */
function put(control, wanted) {
  if (control.type === "range") {
    const stop = stops(control).indexOf(wanted);
    if (stop < 0) return false;
    control.max = Math.max(control.max, stop); // the answer says how far it goes
    control.value = stop;
  } else {
    if (![...control.options].some((option) => option.value === wanted)) return false;
    control.value = wanted;
  }
  label(control);
  return true;
}

function label(control) {
  if (control.type !== "range") return;
  const text = control.dataset.texts.split("|")[control.value];
  control.setAttribute("aria-valuetext", text);
  control.closest(".sm-control").querySelector(".sm-value").textContent = text;
}

/** Switch a control off that has no effect, and say `why`; on where there is no reason. */
function allow(control, why = "") {
  const place = control.closest(".sm-control");
  if (place.title === why) return;
  place.title = why;
  place.querySelector(".sm-why").textContent = why;
  for (const part of place.querySelectorAll("input, select, button"))
    part.disabled = Boolean(why);
}

/** Hold a slider to the steps that there are. */
function hold(slider, last) {
  slider.max = stops(slider).findLastIndex((stop) => stop <= last);
  label(slider);
}

// Motion -------------------------------------------------------------------------------

const running = new WeakMap(); // picture → its frame

/** Put `svg` in place; what has the same key moves there from its old place, in `ms`. */
function replace(picture, svg, ms) {
  const keyed = () => picture.querySelectorAll("[data-key]");
  const old = new Map([...keyed()].map((element) => [element.dataset.key, element]));
  picture.innerHTML = svg;
  cancelAnimationFrame(running.get(picture));
  if (calm()) return;
  const moves = [...keyed()].flatMap((element) => {
    const before = old.get(element.dataset.key);
    if (before?.tagName !== element.tagName) return [];
    return MOVING.map((name) => between(element, name, before.getAttribute(name)));
  });
  const begun = performance.now();
  const frame = (now) => {
    const share = Math.min(1, Math.max(0, (now - begun) / ms));
    for (const step of moves) step?.(1 - (1 - share) ** 3);
    if (share < 1) running.set(picture, requestAnimationFrame(frame));
  };
  if (moves.some(Boolean)) running.set(picture, requestAnimationFrame(frame));
}

/** How an attribute goes from `from` to what it is; null where that means nothing. */
function between(element, name, from) {
  const to = element.getAttribute(name);
  if (!from || !to || from === to) return null;
  if (from.replace(NUMBER, "#") !== to.replace(NUMBER, "#")) return null;
  const [starts, ends] = [from, to].map((text) => text.match(NUMBER).map(Number));
  return (share) => {
    const now = ends.map((end, n) => end - (end - starts[n]) * (1 - share));
    element.setAttribute(name, share < 1 ? to.replace(NUMBER, () => now.shift()) : to);
  };
}

/** What says `data-drag` moves the slider of that name along `data-drag-at`, places
 *  on a line as "x", or in the plane as "x,y". */
function drag(picture, move) {
  let held = null;
  picture.addEventListener("pointerdown", (event) => {
    held = event.target.closest("[data-drag]")?.dataset.drag;
    if (!held) return;
    event.preventDefault();
    picture.setPointerCapture(event.pointerId); // the picture stays, its parts do not
    follow(event);
  });
  picture.addEventListener("pointermove", (event) => held && follow(event));
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"])
    picture.addEventListener(end, () => (held = null));

  function follow({ clientX, clientY }) {
    const handle = picture.querySelector(`[data-drag="${held}"]`);
    if (!handle) return;
    const svg = handle.ownerSVGElement;
    const { left, top, width } = svg.getBoundingClientRect();
    const units = svg.viewBox.baseVal.width / width;
    const [x, y] = [(clientX - left) * units, (clientY - top) * units];
    const away = handle.dataset.dragAt.split(" ").map((place) => {
      const [across, down = y] = place.split(",").map(Number);
      return Math.hypot(across - x, down - y);
    });
    move(held, away.indexOf(Math.min(...away)));
  }
}

/** Milliseconds between two of the slider's steps. */
const pace = (slider) => Math.min(PACE, LONGEST / (Number(slider.max) + 1));

/**
 * The buttons that play a slider's stops, one by one, while they can be seen. Until a
 * reader has chosen a step, they play from the first.
 * @returns {slider, begin(), unasked(), choose()}: `begin` plays it without a reader's
 *   wish, and `unasked` is true while that goes on; `choose` says that a step is chosen
 */
function playing(root, slider, move, answered) {
  const button = (name) => root.querySelector(`[data-play="${name}"]`);
  const icon = button("play").querySelector("path");
  const [name, shape] = [button("play").ariaLabel, icon.getAttribute("d")];
  let timer = null;
  let fresh = true; // no reader has chosen a step yet
  let unasked = false;

  function stop() {
    clearTimeout(timer);
    timer = null;
    unasked = false;
    button("play").ariaLabel = name;
    icon.setAttribute("d", shape);
  }
  async function step() {
    if (document.hidden || Number(slider.value) >= Number(slider.max)) return stop();
    move(slider, Number(slider.value) + 1);
    await answered();
    if (timer) timer = setTimeout(step, pace(slider));
  }
  function play(wait) {
    button("play").ariaLabel = name.replace("Play", "Pause");
    icon.setAttribute("d", PAUSE);
    if (fresh || Number(slider.value) >= Number(slider.max)) move(slider, 0);
    fresh = false;
    timer = setTimeout(step, wait);
  }
  button("play").addEventListener("click", () => (timer ? stop() : play(0)));
  for (const [which, by] of [["back", -1], ["step", 1]])
    button(which).addEventListener("click", () => {
      stop();
      fresh = false;
      move(slider, Number(slider.value) + by);
    });
  root.addEventListener("input", ({ isTrusted, target }) => {
    if (!isTrusted) return;
    stop();
    if (target === slider) fresh = false;
  });
  root.addEventListener("click", ({ target }) => {
    if (target.closest('[data-do="reset"]')) fresh = true;
  });
  root.addEventListener("pointerdown", ({ target }) => {
    const taken = target.closest("[data-drag], [data-preset], [data-do]");
    if (target.closest("[data-drag]")) fresh = false;
    if (taken || (unasked && !target.closest(".sm-player"))) stop();
  });
  root.addEventListener("keydown", ({ target }) => {
    if (unasked && !target.closest(".sm-player")) stop();
  });
  new IntersectionObserver(([entry]) => {
    if (!entry.isIntersecting) stop();
  }).observe(root.querySelector(".sm-picture"));
  return {
    slider,
    begin() {
      play(pace(slider));
      unasked = true;
    },
    unasked: () => unasked,
    choose: () => (fresh = false),
  };
}

// The host in Jupyter: the kernel answers.
function render({ model, el }) {
  const waiting = new Map();
  let last = 0;
  const onMessage = ({ id, result, error }) => {
    const promise = waiting.get(id);
    if (!promise) return; // another view of this figure asked
    waiting.delete(id);
    if (error) promise.reject(new Error(error));
    else promise.resolve(result);
  };
  model.on("msg:custom", onMessage);
  el.innerHTML = model.get("html");
  el.querySelector('[data-do="link"]').remove(); // a page's address, not a notebook's
  const view = crypto.randomUUID?.() ?? String(Math.random());
  mount(
    el.firstElementChild,
    (settings) =>
      new Promise((resolve, reject) => {
        const id = `${view} ${++last}`;
        waiting.set(id, { resolve, reject });
        model.send({ id, settings });
      }),
  );
  return () => model.off("msg:custom", onMessage);
}

export default { render };
