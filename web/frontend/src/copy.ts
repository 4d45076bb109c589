// A button beside what is shown once: it copies, and says that it has.
import { say } from "./texts";

const SAID_MS = 4000;

/** Gives everything marked data-copy its button; the attribute is what the button says. */
export function copyButtons(root: ParentNode): void {
  for (const shown of root.querySelectorAll<HTMLElement>("[data-copy]:not([data-copied])")) {
    shown.dataset["copied"] = "";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet copy";
    button.textContent = shown.dataset["copy"] ?? "";
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

/** What is copied: of a table its cells, which a spreadsheet or a letter takes as a table again. */
function textOf(shown: HTMLElement): string {
  if (!(shown instanceof HTMLTableElement)) return shown.textContent.trim();
  return [...shown.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join("\t")).join("\n");
}

/** Where the browser gives no clipboard (a page that did not come by HTTPS), the text is selected and copied as if by hand. */
async function copy(shown: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(textOf(shown));
    return true;
  } catch {
    window.getSelection()?.selectAllChildren(shown);
    return document.execCommand("copy");
  }
}
