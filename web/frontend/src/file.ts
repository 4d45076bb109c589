// The browser's own button for files speaks the browser's language. Ours lies under it: the field itself stays, unseen, on
// top, so that it is pressed, reached with Tab and dropped on as ever.
import { say } from "./texts";

export function ownFileButtons(): void {
  for (const field of document.querySelectorAll<HTMLInputElement>("input[type=file]")) {
    const holder = document.createElement("span");
    holder.className = "own-file";
    const face = document.createElement("span");
    face.className = "face";
    const name = document.createElement("span");
    name.className = "name";
    for (const part of [face, name]) part.setAttribute("aria-hidden", "true"); // the field says it itself
    field.replaceWith(holder);
    holder.append(field, face, name);
    const show = (): void => {
      const chosen = field.files?.[0];
      face.textContent = say(chosen ? "other_file" : "choose_file");
      name.textContent = chosen?.name ?? "";
    };
    field.addEventListener("change", show);
    show();
  }
}
