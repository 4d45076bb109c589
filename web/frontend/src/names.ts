// Completion of the names that the problem gives: its parameters and outputs, and what its statement and its starter speak of.
import type { CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { pythonLanguage } from "@codemirror/lang-python";
import type { Extension } from "@codemirror/state";

export interface Name {
  label: string;
  kind: string;
}

const SHORTEST = 1;

/** A name with a dot is offered once its part before the dot has been typed. */
export function completeNames(names: Name[]): Extension {
  const options = names.map(({ label, kind }) => ({ label, type: kind, boost: 1 }));
  const complete = (context: CompletionContext): CompletionResult | null => {
    const before = context.matchBefore(/[A-Za-z_][\w.]*/);
    if (!before || (before.to - before.from < SHORTEST && !context.explicit)) return null;
    const dotted = before.text.includes(".");
    const fitting = options.filter((o) => o.label.includes(".") === dotted);
    return fitting.length ? { from: before.from, options: fitting, validFor: /^[\w.]*$/ } : null;
  };
  return pythonLanguage.data.of({ autocomplete: complete });
}
