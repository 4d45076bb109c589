// Hints open step by step: the next one is there once the one before it has been opened.
const HINT = "details.hint";

function hintsOf(statement: ParentNode): HTMLDetailsElement[] {
  return [...statement.querySelectorAll<HTMLDetailsElement>(HINT)];
}

export function stepByStep(statement: ParentNode): void {
  const hints = hintsOf(statement);
  hints.forEach((hint, i) => {
    hint.hidden = i > 0;
    hint.addEventListener("toggle", () => {
      const next = hints[i + 1];
      if (hint.open && next) next.hidden = false;
    });
  });
}

/** Opens the first hint that is still closed, and shows it. */
export function openNext(statement: ParentNode): void {
  const next = hintsOf(statement).find((hint) => !hint.open);
  if (!next) return;
  next.hidden = false;
  next.open = true;
  next.querySelector("summary")?.focus();
  next.scrollIntoView({ block: "nearest" });
}
