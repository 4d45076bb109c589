// Ruff's messages in the gutter. The worker and its module are loaded after the first change, not with the page.
import { type Diagnostic, linter, lintGutter } from "@codemirror/lint";
import type { Extension, Text } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import type { Answer, Message, Request } from "./ruff-worker";

const AFTER_MS = 700;
const RULE = /^[A-Z]+\d+$/; // other codes, or none, are of programs that do not parse
const PATIENCE_MS = 30_000; // the first answer waits for 3 MB to come

class Ruff {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, (messages: Message[]) => void>();
  private last = 0;
  private broken = false;

  constructor(
    worker: string,
    private readonly wasm: string,
  ) {
    this.worker = new Worker(worker, { type: "module" });
    this.worker.addEventListener("message", (event: MessageEvent<Answer>) => {
      if (event.data.error) this.giveUp(event.data.error);
      this.settle(event.data.id, event.data.messages ?? []);
    });
    this.worker.addEventListener("error", (event) => this.giveUp(event.message));
  }

  check(source: string): Promise<Message[]> {
    if (this.broken) return Promise.resolve([]);
    const id = ++this.last;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      window.setTimeout(() => this.settle(id, []), PATIENCE_MS);
      this.worker.postMessage({ id, wasm: this.wasm, source } satisfies Request);
    });
  }

  private settle(id: number, messages: Message[]): void {
    this.waiting.get(id)?.(messages);
    this.waiting.delete(id);
  }

  /** The editor works without it: the reason is for those who look into the console. */
  private giveUp(reason: string): void {
    console.warn(`ruff does not run here: ${reason}`);
    this.broken = true;
    this.worker.terminate();
    for (const id of [...this.waiting.keys()]) this.settle(id, []);
  }
}

function position(doc: Text, place: { row: number; column: number }): number {
  const line = doc.line(Math.min(Math.max(place.row, 1), doc.lines));
  return Math.min(line.from + place.column - 1, line.to);
}

/** `worker` and `wasm` are the addresses of the built files. */
export function ruffMessages(worker: string, wasm: string): Extension {
  let ruff: Ruff | undefined;
  let changed = false;
  const check = async (view: EditorView): Promise<Diagnostic[]> => {
    if (!changed) return [];
    ruff ??= new Ruff(worker, wasm);
    const doc = view.state.doc;
    const messages = await ruff.check(doc.toString());
    return messages.map((m) => {
      const from = position(doc, m.start_location);
      return {
        from,
        to: Math.max(from, position(doc, m.end_location)),
        severity: m.code && RULE.test(m.code) && !m.code.startsWith("E9") ? "warning" : "error",
        message: m.message,
        source: m.code ? `ruff ${m.code}` : "ruff",
      };
    });
  };
  return [
    EditorView.updateListener.of((update) => {
      changed ||= update.docChanged;
    }),
    linter(check, { delay: AFTER_MS }),
    lintGutter(),
  ];
}
