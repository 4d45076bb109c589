// A button beside what is shown once: it copies, and says that it has.
import { say } from "./texts";

const SAID_MS = 4000;

/** Gives everything marked data-copy its button; the attribute says what it is, for who cannot see the two together. */
export function copyButtons(root: ParentNode): void {
  for (const shown of root.querySelectorAll<HTMLElement>("[data-copy]:not([data-copied])")) {
    shown.dataset["copied"] = "";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet copy";
    button.textContent = say("copy");
    button.setAttribute("aria-label", [say("copy"), shown.dataset["copy"]].filter(Boolean).join(" "));
    const said = document.createElement("span");
    said.className = "copied";
    said.setAttribute("role", "status");
    let timer: number | undefined;
    button.addEventListener("click", () => {
      void copy(shown).then((done) => {
        said.textContent = say(done ? "copied" : "not_copied");
        window.clearTimeout(timer);
        timer = window.setTimeout(() => (said.textContent = ""), SAID_MS);
      });
    });
    shown.after(" ", button, " ", said);
  }
}

/** Where the browser gives no clipboard (a page that did not come by HTTPS), the text is selected and copied as if by hand. */
async function copy(shown: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(shown.textContent.trim());
    return true;
  } catch {
    window.getSelection()?.selectAllChildren(shown);
    return document.execCommand("copy");
  }
}
