// A draft for each problem, kept in this browser: what is typed is safe here at once, whatever becomes of the session.
// On a device that several accounts share, each has its own.
const whose = document.documentElement.dataset["user"];
const of = whose === undefined ? "" : `${whose}:`;
const key = (problem: string) => `draft:${of}${problem}`;
const base = (problem: string) => `draft-base:${of}${problem}`;

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

/** Which revision of the server's draft the text in this browser goes on from; 0 if none was seen. */
export function loadBase(problem: string): number {
  try {
    return Number(localStorage.getItem(base(problem)) ?? 0);
  } catch {
    return 0;
  }
}

export function saveBase(problem: string, revision: number): void {
  try {
    localStorage.setItem(base(problem), String(revision));
  } catch {
    // storage is switched off: there is no text either
  }
}
