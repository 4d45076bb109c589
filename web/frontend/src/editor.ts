// The editor: CodeMirror with Python in place of the form's text area, which stays the form's field.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { ruffMessages } from "./lint";
import { completeNames, type Name } from "./names";
import { tags } from "@lezer/highlight";

// Classes, not colours: the style sheet has them for both themes, shared with code that the server renders.
const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], class: "c-k" },
  { tag: [tags.string, tags.special(tags.string)], class: "c-s" },
  { tag: [tags.comment], class: "c-c1" },
  { tag: [tags.number, tags.bool, tags.null], class: "c-mi" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], class: "c-nf" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName)], class: "c-fn" },
  { tag: [tags.meta], class: "c-nd" },
  { tag: [tags.invalid], class: "c-err" },
]);

export interface Editor {
  text(): string;
  replace(text: string): void;
  focus(): void;
}

/** Puts the editor in front of `area`. `submit` runs on Ctrl+Enter, with Shift for the public cases only; Escape then Tab leaves the editor by keyboard. */
export function openEditor(
  area: HTMLTextAreaElement,
  text: string,
  options: { nonce: string; names: Name[]; phrases: Record<string, string>; ruff: { worker: string; wasm: string }; label: string; leave: string; changed: (text: string) => void; submit: (publicOnly: boolean) => void },
): Editor {
  const extensions: Extension[] = [
    EditorView.cspNonce.of(options.nonce),
    lineNumbers(),
    highlightSpecialChars(),
    history(),
    drawSelection(),
    EditorState.allowMultipleSelections.of(true),
    indentOnInput(),
    indentUnit.of("    "),
    EditorState.tabSize.of(4),
    syntaxHighlighting(colours),
    bracketMatching(),
    closeBrackets(),
    autocompletion(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    highlightSelectionMatches(),
    python(),
    completeNames(options.names),
    ruffMessages(options.ruff.worker, options.ruff.wasm),
    keymap.of([
      { key: "Mod-Enter", run: () => (options.submit(false), true) },
      { key: "Shift-Mod-Enter", run: () => (options.submit(true), true) },
      ...closeBracketsKeymap,
      ...defaultKeymap,
      ...searchKeymap,
      ...historyKeymap,
      ...completionKeymap,
      indentWithTab,
    ]),
    EditorState.phrases.of(options.phrases),
    EditorView.contentAttributes.of({ "aria-label": options.label, "aria-describedby": options.leave, spellcheck: "false" }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) options.changed(update.state.doc.toString());
    }),
  ];
  const view = new EditorView({ state: EditorState.create({ doc: text, extensions }) });
  area.hidden = true;
  area.before(view.dom);
  return {
    text: () => view.state.doc.toString(),
    replace: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    focus: () => view.focus(),
  };
}
