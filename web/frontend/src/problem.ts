// The problem page: editor with a draft, sending without leaving the page, live result, fresh history.
import { loadBase, loadDraft, saveBase, saveDraft } from "./draft";
import type { Editor } from "./editor";
import { enliven } from "./enliven";
import { ownFileButtons } from "./file";
import { helpDialog } from "./help";
import { openNext, stepByStep } from "./hints";
import { listen, siteKeys } from "./keys";
import { follow } from "./live";
import type { Name } from "./names";
import { resizable } from "./panes";
import { type Kept, Sync } from "./sync";
import { say } from "./texts";
import { localTime } from "./times";

const SAVE_AFTER_MS = 400;
const ANSWER_MS = 30_000; // the site keeps a submission in less than a second; longer than this, it is not there

function one<T extends Element>(selector: string, root: ParentNode = document): T {
  const found = root.querySelector<T>(selector);
  if (!found) throw new Error(`the page lacks ${selector}`);
  return found;
}

const form = one<HTMLFormElement>("#submit");
const box = one<HTMLElement>("[data-editor]", form);
const area = one<HTMLTextAreaElement>("textarea", box);
const starter = one<HTMLTemplateElement>("[data-starter]", box).content.textContent ?? "";
const problem = one<HTMLElement>("[data-problem]").dataset["problem"] ?? "";
const note = one<HTMLElement>("[data-draft-note]", form);
const newer = one<HTMLElement>("[data-newer]", form);
const restore = one<HTMLButtonElement>("[data-restore]", form);
const error = one<HTMLElement>("[data-error]", form);
const statement = one<HTMLElement>(".statement");
const results = one<HTMLElement>(".results");
const holder = one<HTMLElement>("[data-result]");
const past = one<HTMLElement>("[data-history]");
const file = one<HTMLInputElement>("input[type=file]", form);
const instead = one<HTMLButtonElement>("[data-no-file]", form);
const buttons = form.querySelectorAll<HTMLButtonElement>("button[type=submit]");

let timer: number | undefined;
let sending = false;

const token = one<HTMLInputElement>("[name=csrf_token]", form).value;
const sync = new Sync(box.dataset["draft"] ?? "", token, Number(box.dataset["revision"]), {
  saved: (revision) => {
    saveBase(problem, revision);
    note.textContent = box.dataset["synced"] ?? "";
  },
  failed: () => (note.textContent = box.dataset["saved"] ?? ""),
  conflict: (kept) => ask(kept),
});
let editor: Editor | undefined;

let dirty = false; // something was typed that is not kept yet

/** Keeps the text in this browser, at once; false if the browser does not let us. */
function keepHere(text: string): boolean {
  dirty = false;
  saveBase(problem, sync.revision); // another window may have written its own
  return saveDraft(problem, text === starter ? null : text);
}

function keep(text: string): void {
  const saved = keepHere(text);
  note.textContent = saved && text !== starter ? (box.dataset["saved"] ?? "") : "";
  sync.change(text === starter ? null : text);
}

/** Asks which of two drafts to go on with; until then nothing is saved on the server. */
function ask(kept: Kept): void {
  sync.hold();
  one<HTMLElement>("[data-newer-time]", newer).textContent = localTime(new Date(kept.saved_at * 1000));
  one<HTMLButtonElement>("[data-take]", newer).onclick = () => {
    editor?.replace(kept.text);
    settle(kept.revision);
  };
  one<HTMLButtonElement>("[data-mine]", newer).onclick = () => settle(kept.revision);
  newer.hidden = false;
}

function settle(revision: number): void {
  newer.hidden = true;
  keep(editor?.text() ?? starter);
  sync.settle(revision);
  saveBase(problem, revision);
  editor?.focus();
}

function changed(text: string): void {
  dirty = true;
  window.clearTimeout(timer);
  timer = window.setTimeout(() => keep(text), SAVE_AFTER_MS);
}

/** What the editor opens with: the draft of the server, or the one in this browser where that goes on from it. */
function opening(): string {
  const served = area.value.replaceAll("\r\n", "\n");
  const revision = Number(box.dataset["revision"]);
  const here = box.dataset["fixed"] ? null : loadDraft(problem);
  if (here === null || here === served) {
    saveBase(problem, revision);
    return served;
  }
  if (loadBase(problem) === revision) sync.change(here);
  else ask({ revision, saved_at: Number(box.dataset["savedAt"]), text: served });
  return here;
}

interface Link {
  href: string;
  text: string;
}

/** Says what went wrong; `link` leads to where it can be mended. */
function complain(text: string, link?: Link): void {
  error.textContent = text;
  error.hidden = !text;
  if (!link) return;
  const way = document.createElement("a");
  way.href = link.href;
  way.textContent = link.text;
  error.append(" ", way);
}

async function refreshHistory(): Promise<void> {
  const answer = await fetch(past.dataset["history"] ?? "", { signal: AbortSignal.timeout(ANSWER_MS) });
  if (!answer.ok) return;
  past.innerHTML = await answer.text();
  enliven(past);
}

/** The list of what was sent: where it cannot be had now, the old one stays. */
function history(): void {
  refreshHistory().catch((reason: unknown) => console.warn("the list is not fresh", reason));
}

async function show(fragment: string): Promise<void> {
  const answer = await fetch(fragment, { signal: AbortSignal.timeout(ANSWER_MS) });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  holder.innerHTML = await answer.text();
  enliven(holder);
  follow(holder, enliven, history);
  if (holder.getBoundingClientRect().top > window.innerHeight) holder.scrollIntoView({ block: "center" });
  history();
}

/** Locks the buttons while one submission is on its way. They keep the focus, which a disabled button would lose. */
function lock(on: boolean): void {
  sending = on;
  buttons.forEach((b) => b.setAttribute("aria-disabled", String(on)));
}

async function send(editor: Editor, publicOnly: boolean): Promise<void> {
  if (sending) return;
  window.clearTimeout(timer);
  const text = editor.text();
  keep(text);
  const body = new FormData();
  body.set("csrf_token", token);
  const chosen = file.files?.[0];
  if (chosen) body.set("file", chosen);
  else body.set("source", text);
  if (publicOnly) body.set("public_only", "1");
  const size = chosen ? chosen.size : new Blob([text]).size;
  const limit = Number(box.dataset["limit"]);
  if (size > limit) return complain(say("too_large", { size, limit }));
  lock(true);
  complain("");
  let taken: string | undefined;
  try {
    const headers = { Accept: "application/json" };
    const answer = await fetch(form.action, { method: "POST", body, headers, signal: AbortSignal.timeout(ANSWER_MS) });
    const data = (await answer.json()) as { fragment?: string; error?: string; link?: Link };
    taken = data.fragment;
    if (!answer.ok || !taken) return complain(data.error ?? say("not_sent"), data.link);
    noFile();
    await show(taken);
  } catch {
    complain(say(taken ? "not_shown" : "not_sent"));
  } finally {
    lock(false);
  }
}

function noFile(): void {
  file.value = "";
  file.dispatchEvent(new Event("change"));
}

async function start(): Promise<void> {
  const { openEditor } = await import("./editor");
  const text = opening();
  const opened = openEditor(area, text, {
    nonce: box.dataset["nonce"] ?? "",
    label: box.dataset["label"] ?? "",
    leave: "leave-editor",
    names: JSON.parse(one<HTMLElement>("[data-names]", box).textContent ?? "[]") as Name[],
    phrases: JSON.parse(one<HTMLElement>("[data-phrases]", box).textContent ?? "{}") as Record<string, string>,
    ruff: { worker: box.dataset["ruffWorker"] ?? "", wasm: box.dataset["ruffWasm"] ?? "" },
    changed,
    submit: (publicOnly) => void send(opened, publicOnly),
  });
  editor = opened;
  if (!box.dataset["fixed"] && text !== starter) note.textContent = box.dataset["saved"] ?? "";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const button = event.submitter as HTMLButtonElement | null;
    void send(opened, button?.name === "public_only");
  });
  file.addEventListener("change", () => (instead.hidden = !file.files?.length));
  instead.addEventListener("click", () => {
    noFile();
    file.focus();
  });
  restore.hidden = false;
  restore.addEventListener("click", () => {
    if (opened.text() !== starter && !window.confirm(restore.dataset["ask"])) return;
    opened.replace(starter);
    keep(starter);
    opened.focus();
  });
  listen({ e: () => opened.focus() });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
    event.preventDefault();
    void send(opened, event.shiftKey);
  });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden" && dirty) keep(opened.text());
    if (document.visibilityState === "hidden") void sync.flush();
  });
  window.addEventListener("pagehide", () => {
    if (dirty) keepHere(opened.text());
  });
  box.dataset["ready"] = "yes";
}

enliven(document);
ownFileButtons();
siteKeys();
resizable(one<HTMLElement>(".panes"), box);
stepByStep(statement);
listen({
  h: () => openNext(statement),
  r: () => {
    results.scrollIntoView({ block: "nearest" });
    results.focus({ preventScroll: true });
  },
  "?": helpDialog(),
});
follow(holder, enliven, history);
void start();
