// Pictures as PNG: node cards.mjs NODE_MODULES < {"file.png": "<svg …>", …}
// Text is set in KaTeX's fonts, which the site has anyway.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const modules = process.argv[2];
const folder = join(modules, "@resvg", "resvg-wasm");
const { initWasm, Resvg } = await import(pathToFileURL(join(folder, "index.mjs")));
await initWasm(readFileSync(join(folder, "index_bg.wasm")));

const FONTS = ["SansSerif-Regular", "SansSerif-Bold", "Main-Regular", "AMS-Regular"];
const fontBuffers = FONTS.map((name) =>
  readFileSync(join(modules, "katex", "dist", "fonts", `KaTeX_${name}.ttf`)),
);
const sans = "KaTeX_SansSerif";
const font = { fontBuffers, defaultFontFamily: sans, sansSerifFamily: sans };

for (const [file, svg] of Object.entries(JSON.parse(readFileSync(0, "utf8"))))
  writeFileSync(file, new Resvg(svg, { font }).render().asPng());
