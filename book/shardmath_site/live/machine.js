// The reader's machine: a chip that is chosen once is used by every figure that has it.

// A chip's name. Absent if storage.js was not loaded; then nothing is remembered.
const stored = globalThis.Shardmath?.storage?.setting("shardmath.machine.v1");
const remembered = () => stored?.get() ?? null;

/**
 * Remember the chip that is chosen in `block`, and show which one it is.
 * @param linked whether a link has set this figure, which then keeps its settings
 * @returns a function that sets the figure to the reader's machine
 */
export function mountMachine(block, figure, linked) {
  const list = block.querySelector("[data-machine]");
  if (!list) return () => {};
  const usual = list.value;
  const note = document.createElement("p");
  note.className = "sm-machine";
  let touched = linked;

  function button(text, act) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", act);
    return made;
  }
  const change = button("change", () => list.focus());
  const forget = button("forget", () => {
    stored?.forget();
    note.remove();
    figure.set({ [list.name]: usual });
    list.focus();
  });

  function tell(machine) {
    note.replaceChildren(`Your machine: ${machine} (`, change, " / ", forget, ")");
    block.querySelector(".sm-status").append(note);
  }
  list.addEventListener("change", () => {
    stored?.set(list.value);
    if (remembered() === list.value) tell(list.value);
  });
  block.addEventListener("input", () => (touched = true));

  return () => {
    const machine = remembered();
    if (![...list.options].some((option) => option.value === machine)) return;
    if (!touched) figure.set({ [list.name]: machine });
    if (list.value === machine) tell(machine);
  };
}
