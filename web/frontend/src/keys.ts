// Keys that work on every page while nobody types: "/" goes to the search field.
const TYPING = "input, textarea, select, [contenteditable=true]";

/** True if a key belongs to what has the focus, or to the browser. */
export function isTaken(event: KeyboardEvent): boolean {
  const at = event.target instanceof Element ? event.target : null;
  return event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || Boolean(at?.closest(TYPING));
}

export function siteKeys(): void {
  document.addEventListener("keydown", (event) => {
    const field = document.querySelector<HTMLInputElement>(".bar [type=search]");
    if (event.key !== "/" || isTaken(event) || !field) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
}
