// An answer field: the same Python that grades the notebook judges what was typed.

const KEPT = { correct: "right", wrong: "wrong" }; // verdict → how it is stored
const SHOWN = { right: "correct", wrong: "wrong" };

// Absent if progress.js was not loaded. The field then works without remembering.
const answers = globalThis.Shardmath?.answers;

/**
 * @param block the element that `shardmath_site.question` writes for a number
 * @param call (tell, module, function, kwargs, pack) => Promise of what Python returns;
 *   calls `tell(text)` while Python starts
 * @returns {pack}: the name of the pack with the modules that the question needs
 */
export function mountCheck(block, call) {
  const { question } = block.dataset;
  const pack = `ch${question.slice(0, 2)}`;
  const form = block.querySelector("form");
  const field = form.elements.answer;
  const verdict = block.querySelector(".sm-verdict");
  let entry = { text: "", attempts: 0 };
  let judged = { answer: "", kind: "" };

  /** Say `text`: of a `kind` of verdict, on an `answer`. */
  function say(text, kind = "", answer = "") {
    judged = { answer, kind };
    if (verdict.textContent !== text) verdict.textContent = text; // or it is read again
    mark();
  }

  /** Mark a verdict as such while its answer is in the field. */
  function mark() {
    const isPast = judged.kind && field.value.trim() !== judged.answer;
    verdict.dataset.verdict = isPast ? "past" : judged.kind;
  }

  async function judge() {
    const text = field.value.trim();
    verdict.ariaLive = "polite";
    say("Checking …");
    try {
      const kwargs = { question, answer: text, attempts: entry.attempts };
      const asked = ["shardmath.exercises", "judge_number", kwargs, pack];
      const result = await call((text) => say(text), ...asked);
      const message = [result.message, result.hint].filter(Boolean).join("\n");
      const kept = KEPT[result.verdict];
      if (kept) {
        // Only wrong answers count as attempts, and repeating one doesn't count.
        const isAttempt = kept === "wrong" && text !== entry.text;
        const attempts = isAttempt ? entry.attempts + 1 : entry.attempts;
        entry = { text, attempts, verdict: kept, message };
        answers?.put(question, entry);
      }
      say(message, result.verdict, text);
    } catch (error) {
      say(`${error.message} The answer can be checked in Jupyter.`, "invalid", text);
    }
  }

  /** Show the stored answer, unannounced, because the reader has done nothing here. */
  function restore(found = { text: "" }) {
    if (found.text !== entry.text || found.verdict !== entry.verdict) {
      if (field.value === entry.text) field.value = found.text; // or it is being edited
      verdict.ariaLive = "off";
      say(found.message ?? "", SHOWN[found.verdict], found.text);
    }
    entry = { ...found, attempts: found.attempts ?? 0 };
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    judge();
  });
  field.addEventListener("input", mark);
  document.addEventListener("shardmath:answer", ({ detail }) => {
    if (detail.question === question) restore(detail.entry);
  });
  verdict.ariaLive = "off";
  say("");
  restore(answers?.of(question));
  form.hidden = false;
  return { pack };
}
