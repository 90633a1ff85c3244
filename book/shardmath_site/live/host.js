// Brings the live figures and the answer fields of a page to life.

import { mountCheck } from "./check.js";
import { call, running, start } from "./engine.js";
import { mount } from "./live.js";

const SOON = 300; // ms: an answer that comes sooner needs no message

async function compute(name, params, tell) {
  const timer = setTimeout(() => {
    if (!running()) tell("Starting Python in this page (5 MB, only once) …");
  }, SOON);
  try {
    return await call("shardmath.live", "answer", { name, params });
  } finally {
    clearTimeout(timer);
  }
}

// Reaching for a control is soon enough: Python starts while the hand is on its way.
function startEarly(element) {
  for (const event of ["pointerover", "focusin"]) {
    element.addEventListener(event, () => start().catch(() => {}), { once: true });
  }
}

for (const block of document.querySelectorAll(".sm-live")) {
  const name = block.dataset.figure;
  mount(block, (params, tell) => compute(name, params, tell));
  startEarly(block.querySelector(".sm-controls"));
}

for (const block of document.querySelectorAll(".sm-check")) {
  mountCheck(block, call);
  startEarly(block);
}
