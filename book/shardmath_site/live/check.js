// An answer field: the same Python that grades the notebook judges what was typed.

const KEPT = { correct: "right", wrong: "wrong" }; // what a verdict is kept as
const SHOWN = { right: "correct", wrong: "wrong" };

// Absent where kept.js was not loaded: the field works, and nothing is remembered.
const answers = globalThis.Shardmath?.answers;

/**
 * @param block the element that `shardmath_site.question.form` describes
 * @param call (module, function, kwargs, pack) => Promise of what Python returns
 * @returns {pack}: the modules that the question needs
 */
export function mountCheck(block, call) {
  const { question } = block.dataset;
  const pack = `ch${question.slice(0, 2)}`;
  const form = block.querySelector("form");
  const field = form.elements.answer;
  const verdict = block.querySelector(".sm-verdict");
  let entry = { text: "", attempts: 0 };

  function say(text, kind = "") {
    verdict.dataset.verdict = kind;
    verdict.textContent = text;
  }

  async function judge() {
    const text = field.value.trim();
    verdict.ariaLive = "polite";
    say("Checking …");
    try {
      const kwargs = { question, answer: text, attempts: entry.attempts };
      const result = await call("shardmath.grading", "judge_number", kwargs, pack);
      const message = [result.message, result.hint].filter(Boolean).join("\n");
      const kept = KEPT[result.verdict];
      if (kept) {
        // Only a wrong answer is an attempt, and the same one twice is one.
        const isAttempt = kept === "wrong" && text !== entry.text;
        const attempts = isAttempt ? entry.attempts + 1 : entry.attempts;
        entry = { text, attempts, verdict: kept, message };
        answers?.put(question, entry);
      }
      say(message, result.verdict);
    } catch (error) {
      say(`${error.message} The answer can be checked in Jupyter.`, "invalid");
    }
  }

  /** Show what is kept, unannounced: the reader has done nothing here. */
  function restore(found = { text: "" }) {
    if (found.text !== entry.text || found.verdict !== entry.verdict) {
      if (field.value === entry.text) field.value = found.text; // else it is being edited
      verdict.ariaLive = "off";
      say(found.message ?? "", SHOWN[found.verdict]);
    }
    entry = { ...found, attempts: found.attempts ?? 0 };
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    judge();
  });
  document.addEventListener("shardmath:answer", ({ detail }) => {
    if (detail.question === question) restore(detail.entry);
  });
  verdict.ariaLive = "off";
  say("");
  restore(answers?.of(question));
  form.hidden = false;
  return { pack };
}
