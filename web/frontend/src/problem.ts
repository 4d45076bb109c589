// The problem page: editor with a draft, sending without leaving the page, live result, fresh history.
import { loadDraft, saveDraft } from "./draft";
import type { Editor } from "./editor";
import { enliven } from "./enliven";
import { helpDialog } from "./help";
import { openNext, stepByStep } from "./hints";
import { listen, siteKeys } from "./keys";
import { follow } from "./live";
import { resizable } from "./panes";
import { say } from "./texts";

const SAVE_AFTER_MS = 400;

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
const note = one<HTMLElement>("[data-draft]", form);
const restore = one<HTMLButtonElement>("[data-restore]", form);
const error = one<HTMLElement>("[data-error]", form);
const statement = one<HTMLElement>(".statement");
const results = one<HTMLElement>(".results");
const holder = one<HTMLElement>("[data-result]");
const past = one<HTMLElement>("[data-history]");
const file = one<HTMLInputElement>("input[type=file]", form);
const buttons = form.querySelectorAll<HTMLButtonElement>("button[type=submit]");

let timer: number | undefined;

function keep(text: string): void {
  const saved = saveDraft(problem, text === starter ? null : text);
  note.textContent = saved && text !== starter ? (box.dataset["saved"] ?? "") : "";
}

function changed(text: string): void {
  window.clearTimeout(timer);
  timer = window.setTimeout(() => keep(text), SAVE_AFTER_MS);
}

function complain(text: string): void {
  error.textContent = text;
  error.hidden = !text;
}

async function refreshHistory(): Promise<void> {
  const answer = await fetch(past.dataset["history"] ?? "");
  if (!answer.ok) return;
  past.innerHTML = await answer.text();
  enliven(past);
}

async function show(fragment: string): Promise<void> {
  const answer = await fetch(fragment);
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  holder.innerHTML = await answer.text();
  enliven(holder);
  follow(holder, enliven, () => void refreshHistory());
  if (holder.getBoundingClientRect().top > window.innerHeight) holder.scrollIntoView({ block: "center" });
  void refreshHistory();
}

async function send(editor: Editor, publicOnly: boolean): Promise<void> {
  window.clearTimeout(timer);
  const text = editor.text();
  keep(text);
  const body = new FormData();
  body.set("csrf_token", one<HTMLInputElement>("[name=csrf_token]", form).value);
  const chosen = file.files?.[0];
  if (chosen) body.set("file", chosen);
  else body.set("source", text);
  if (publicOnly) body.set("public_only", "1");
  const size = chosen ? chosen.size : new Blob([text]).size;
  const limit = Number(box.dataset["limit"]);
  if (size > limit) return complain(say("too_large", { size, limit }));
  buttons.forEach((b) => (b.disabled = true));
  complain("");
  try {
    const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
    const data = (await answer.json()) as { fragment?: string; error?: string };
    if (!answer.ok || !data.fragment) complain(data.error ?? say("not_sent"));
    else {
      file.value = "";
      await show(data.fragment);
    }
  } catch {
    complain(say("not_sent"));
  } finally {
    buttons.forEach((b) => (b.disabled = false));
  }
}

async function start(): Promise<void> {
  const { openEditor } = await import("./editor");
  const draft = box.dataset["fixed"] ? null : loadDraft(problem);
  const editor = openEditor(area, draft ?? area.value.replaceAll("\r\n", "\n"), {
    nonce: box.dataset["nonce"] ?? "",
    label: box.dataset["label"] ?? "",
    changed,
    submit: (publicOnly) => void send(editor, publicOnly),
  });
  if (draft !== null) note.textContent = box.dataset["saved"] ?? "";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const button = event.submitter as HTMLButtonElement | null;
    void send(editor, button?.name === "public_only");
  });
  restore.hidden = false;
  restore.addEventListener("click", () => {
    if (editor.text() !== starter && !window.confirm(restore.dataset["ask"])) return;
    editor.replace(starter);
    keep(starter);
    editor.focus();
  });
  listen({ e: () => editor.focus() });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
    event.preventDefault();
    void send(editor, event.shiftKey);
  });
  window.addEventListener("pagehide", () => keep(editor.text()));
  box.dataset["ready"] = "yes";
}

enliven(document);
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
follow(holder, enliven, () => void refreshHistory());
void start();
