// A draft for each problem, kept in this browser only.
const key = (problem: string) => `draft:${problem}`;

export function loadDraft(problem: string): string | null {
  try {
    return localStorage.getItem(key(problem));
  } catch {
    return null; // storage is switched off: there are no drafts
  }
}

/** Keeps the text (null: forgets it); false if the browser does not let us. */
export function saveDraft(problem: string, text: string | null): boolean {
  try {
    if (text === null) localStorage.removeItem(key(problem));
    else localStorage.setItem(key(problem), text);
    return true;
  } catch {
    return false;
  }
}
