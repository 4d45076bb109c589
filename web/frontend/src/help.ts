// The list of keys: opened by its button or by "?"; it also says whether single keys are on.
import { setSingleKeys, singleKeys } from "./keys";

/** Returns what opens the list. */
export function helpDialog(): () => void {
  const dialog = document.querySelector<HTMLDialogElement>("[data-help]");
  const button = document.querySelector<HTMLButtonElement>("[data-help-open]");
  const choice = dialog?.querySelector<HTMLInputElement>("[data-single-keys]");
  if (!dialog || !button || !choice) throw new Error("the page lacks its list of keys");
  const open = (): void => {
    choice.checked = singleKeys();
    dialog.showModal();
  };
  choice.addEventListener("change", () => setSingleKeys(choice.checked));
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside the list
  });
  button.hidden = false;
  button.addEventListener("click", open);
  return open;
}
