// Runs ruff, compiled to WebAssembly, beside the page: it is told where the module is, then texts, and answers with what ruff
// says about each.
import init, { PositionEncoding, Workspace } from "@astral-sh/ruff-wasm-web";

export interface Request {
  id: number;
  wasm: string;
  source: string;
}

/** One message of ruff. Lines and columns count from 1, columns in UTF-16 units as the editor has them. */
export interface Message {
  code: string | null;
  message: string;
  start_location: { row: number; column: number };
  end_location: { row: number; column: number };
}

export interface Answer {
  id: number;
  messages?: Message[];
  error?: string;
}

// Mistakes, not taste. An import that is not used yet is what every starter has.
const OPTIONS = { lint: { select: ["E71", "E72", "E9", "F"], ignore: ["F401"] } };

let workspace: Promise<Workspace> | undefined;

async function ready(wasm: string): Promise<Workspace> {
  await init({ module_or_path: wasm });
  return new Workspace(OPTIONS, PositionEncoding.Utf16);
}

addEventListener("message", (event: MessageEvent<Request>) => {
  const { id, wasm, source } = event.data;
  workspace ??= ready(wasm);
  workspace.then(
    (made) => postMessage({ id, messages: made.check(source) as Message[] } satisfies Answer),
    (error: unknown) => postMessage({ id, error: String(error) } satisfies Answer),
  );
});
