// Sets formulas. It reads one JSON request per line, and writes one JSON answer per line.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const katex = createRequire(import.meta.url)(process.argv[2]);

const answer = ({ tex, display }) => {
  try {
    return { html: katex.renderToString(tex, { displayMode: display, strict: false }) };
  } catch (error) {
    return { error: error.message };
  }
};

for await (const line of createInterface({ input: process.stdin }))
  console.log(JSON.stringify(answer(JSON.parse(line))));
