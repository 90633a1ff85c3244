// An answer field: the same Python that grades the notebook judges what was typed.

const KEY = "shardmath.answers.v1"; // {question: {text, attempts}}

// Storage may be refused (private windows, file://): the field works without it.
function remembered() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
}

function remember(question, entry) {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...remembered(), [question]: entry }));
  } catch {
    // not kept
  }
}

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
  const entry = { text: "", attempts: 0, ...remembered()[question] };

  function say(text, kind = "") {
    verdict.dataset.verdict = kind;
    verdict.textContent = text;
  }

  async function judge() {
    const text = field.value.trim();
    say("Checking …");
    try {
      const kwargs = { question, answer: text, attempts: entry.attempts };
      const result = await call("shardmath.grading", "judge_number", kwargs, pack);
      // Only a wrong answer is an attempt, and the same one twice is one.
      if (result.verdict === "wrong" && text !== entry.text) entry.attempts += 1;
      if (result.verdict !== "invalid") entry.text = text;
      remember(question, entry);
      say([result.message, result.hint].filter(Boolean).join("\n"), result.verdict);
    } catch (error) {
      say(`${error.message} The answer can be checked in Jupyter.`, "invalid");
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    judge();
  });
  field.value = entry.text;
  form.hidden = false;
  say("");
  return { pack };
}
