// A live figure: listens to its controls, asks Python, shows the answer.
// Python draws; this file is the same in Jupyter and on the page.

const QUIET = 800; // ms without a change before the result is read out

/**
 * Switch on the controls of one block.
 * @param root the element that `shardmath.live.block` describes
 * @param compute (settings, tell) => Promise of {svg, table, summary};
 *   tell(text) shows a message while it takes
 */
export function mount(root, compute) {
  const part = (name) => root.querySelector(`.sm-${name}`);
  const controls = [...root.querySelectorAll("[name]")];
  const tell = (text) => {
    part("message").textContent = text;
  };
  let wanted = null;
  let busy = false;
  let timer;

  function show({ svg, table, summary }) {
    part("picture").innerHTML = svg;
    part("readout").innerHTML = table;
    tell("");
    clearTimeout(timer);
    timer = setTimeout(() => {
      part("said").textContent = summary;
    }, QUIET);
  }

  async function update() {
    wanted = Object.fromEntries(controls.map((c) => [c.name, value(c)]));
    if (busy) return; // the loop below will see it: the newest setting wins
    busy = true;
    root.setAttribute("aria-busy", "true");
    try {
      while (wanted) {
        const settings = wanted;
        wanted = null;
        show(await compute(settings, tell));
      }
    } catch (error) {
      wanted = null;
      tell(`${error.message} The picture keeps its last setting.`);
    }
    busy = false;
    root.removeAttribute("aria-busy");
  }

  root.addEventListener("input", (event) => {
    label(event.target);
    update();
  });
  part("controls").disabled = false;
  part("note").remove();
}

function value(control) {
  if (control.type !== "range") return control.value;
  return Number(control.dataset.stops.split(" ")[control.value]);
}

function label(control) {
  if (control.type !== "range") return;
  const text = control.dataset.texts.split("|")[control.value];
  control.setAttribute("aria-valuetext", text);
  control.closest(".sm-control").querySelector(".sm-value").textContent = text;
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
