// Keys that work while nobody types. Single ones can be switched off: a voice that dictates presses them unasked.
const TYPING = "input, textarea, select, [contenteditable=true], dialog";
const KEPT = "single-keys";

export type Action = () => void;

/** True unless the reader has switched single keys off. */
export function singleKeys(): boolean {
  try {
    return localStorage.getItem(KEPT) !== "off";
  } catch {
    return true; // storage is switched off, so the choice cannot have been made
  }
}

export function setSingleKeys(on: boolean): void {
  try {
    if (on) localStorage.removeItem(KEPT);
    else localStorage.setItem(KEPT, "off");
  } catch {
    // storage is switched off: the keys stay as they are
  }
}

/** Has `actions[key]` run when that key is pressed and nothing else has a use for it. */
export function listen(actions: Record<string, Action>): void {
  document.addEventListener("keydown", (event) => {
    const action = actions[event.key];
    const at = event.target instanceof Element ? event.target : null;
    // For a frame after it closed, the focus is still in a dialog that nobody sees.
    const typing = at?.closest(TYPING) && !at.closest("dialog:not([open])");
    const taken = event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing;
    if (!action || taken || !singleKeys() || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    action();
  });
}

export function siteKeys(): void {
  listen({
    "/": () => {
      const field = document.querySelector<HTMLInputElement>(".bar [type=search]");
      field?.focus();
      field?.select();
    },
  });
}
