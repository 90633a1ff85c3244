// A small editor for Python, bundled as editor.js (bundle.mjs), loaded when first used.

import {
  acceptCompletion,
  autocompletion,
  completionKeymap,
  startCompletion,
} from "@codemirror/autocomplete";
import {
  defaultKeymap,
  history,
  historyKeymap,
  indentLess,
  indentMore,
  insertNewlineAndIndent,
} from "@codemirror/commands";
import { pythonLanguage } from "@codemirror/lang-python";
import {
  HighlightStyle,
  bracketMatching,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { StyleModule } from "style-mod";

const LEAVING = 10_000; // ms between Escape and the Tab that leaves
const LEAVE = "Escape, then Tab leaves it.";

// The page's policy forbids the style element that CodeMirror would write.
const sheet = new CSSStyleSheet();
const mounted = new Set();
StyleModule.mount = (root, modules) => {
  const fresh = modules.filter((module) => !mounted.has(module));
  for (const module of fresh) mounted.add(module);
  if (fresh.length)
    sheet.replaceSync([...mounted].map((module) => module.getRules()).join("\n"));
  if (!root.adoptedStyleSheets.includes(sheet))
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
};

const theme = EditorView.theme({
  "&": {
    backgroundColor: "var(--sm-plate, #f3f4f5)",
    border: "1px solid var(--sm-muted, #6b7280)",
    borderRadius: "4px",
    color: "inherit",
    fontSize: "1rem", // 16 px, so phones do not zoom in
  },
  "&.cm-focused": { outline: "2px solid var(--sm-math, #1257d6)", outlineOffset: "2px" },
  ".cm-scroller": { fontFamily: "var(--sm-code, monospace)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "currentColor", padding: "0.4rem 0" },
  ".cm-content:focus-visible": { outline: "none !important" }, // the editor has one
  ".cm-gutters": {
    backgroundColor: "var(--sm-plate, #f3f4f5)", // long lines go below it
    border: "0",
    color: "var(--sm-muted, #59636e)",
    paddingRight: "0.4rem",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--sm-paper, #fff)",
    border: "1px solid var(--sm-muted, #6b7280)",
    borderRadius: "4px",
    color: "inherit",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": {
    fontFamily: "var(--sm-code, monospace)",
    maxWidth: "min(36rem, 90vw)",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "0.25rem 0.6rem" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--sm-math, #1257d6)",
    color: "var(--sm-paper, #fff)",
  },
  "&.cm-focused .cm-matchingBracket": {
    backgroundColor: "color-mix(in srgb, currentColor 18%, transparent)",
  },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "transparent" },
});

const colours = syntaxHighlighting(
  HighlightStyle.define([
    {
      tag: [tags.keyword, tags.operatorKeyword, tags.bool, tags.null],
      color: "var(--sm-hue5, #6a4fb3)",
    },
    { tag: [tags.string, tags.special(tags.string)], color: "var(--sm-hue1, #2c7a3f)" },
    { tag: tags.number, color: "var(--sm-hue6, #7a4a21)" },
    { tag: tags.comment, color: "var(--sm-muted, #59636e)", fontStyle: "italic" },
    {
      tag: tags.definition(tags.function(tags.variableName)),
      color: "var(--sm-math, #1257d6)",
    },
  ]),
);

/** Complete names after a word or a point; elsewhere Tab indents. */
function completeHere(view) {
  const { head, empty } = view.state.selection.main;
  const before = view.state.sliceDoc(Math.max(0, head - 1), head);
  return empty && /[\w.]/.test(before) && startCompletion(view);
}

/**
 * An editor for Python at the end of `parent`.
 * @param doc its initial text
 * @param selection where its cursor is: {anchor, head}
 * @param label its name for screen readers; how to leave it is added
 * @param onRun called with the text on Ctrl/Cmd+Enter
 * @param onChange called with the text after each change
 * @param complete (text, position) => {from, options: [{label, type, detail}]} or null,
 *   or a promise of it: completions at the position, which Tab requests
 * @param singleLine a prompt: Enter runs, Shift+Enter starts a line, without numbers
 * @param keys {key: () => whether it was handled}, before all others, such as "ArrowUp"
 * @returns {text(), set(text), focus(), destroy()}
 */
export function mountEditor(
  parent,
  { doc = "", selection, label, onRun, onChange, complete, singleLine = false, keys = {} },
) {
  const run = (view) => {
    onRun?.(view.state.doc.toString());
    return true;
  };
  const leave = (view) => {
    view.setTabFocusMode(LEAVING);
    return true;
  };
  const names = async ({ state, pos }) => (await complete(state.doc.toString(), pos)) ?? null;
  const own = Object.entries(keys).map(([key, act]) => ({ key, run: () => act() }));
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc,
      selection,
      extensions: [
        Prec.highest(keymap.of(own)),
        // Before the completion's keys, with which Enter takes the chosen name.
        complete
          ? autocompletion({ activateOnTyping: false, icons: false, override: [names] })
          : [],
        keymap.of([
          { key: "Mod-Enter", run },
          ...(singleLine
            ? [
                { key: "Enter", run },
                { key: "Shift-Enter", run: insertNewlineAndIndent },
              ]
            : []),
          ...(complete ? [{ key: "Tab", run: acceptCompletion }, ...completionKeymap] : []),
          ...(complete ? [{ key: "Tab", run: completeHere }] : []),
          { key: "Tab", run: indentMore, shift: indentLess },
          ...historyKeymap,
          ...defaultKeymap.filter(({ key }) => key !== "Mod-Enter"),
          { key: "Escape", run: leave },
        ]),
        history(),
        singleLine ? [] : lineNumbers(),
        pythonLanguage,
        indentUnit.of("    "),
        indentOnInput(),
        bracketMatching(),
        colours,
        theme,
        EditorView.contentAttributes.of({
          "aria-label": `${label}. ${LEAVE}`,
          autocapitalize: "off",
          autocorrect: "off",
          spellcheck: "false",
          tabindex: "0",
        }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange?.(update.state.doc.toString());
        }),
      ],
    }),
  });
  view.dom.addEventListener("keydown", (event) => {
    // The page's keyboard shortcuts, such as "/", must not apply here.
    if (event.key.length === 1 && !event.ctrlKey && !event.metaKey) event.stopPropagation();
  });
  return {
    text: () => view.state.doc.toString(),
    set(text) {
      const changes = { from: 0, to: view.state.doc.length, insert: text };
      view.dispatch({ changes, selection: { anchor: text.length } });
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
