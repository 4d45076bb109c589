// Keeps the draft on the server as well: a little after the last change, one request at a time, and never over a text that
// this page has not seen.
const AFTER_MS = 2000;
const AGAIN_MS = 15_000;

/** The draft as the server has it. */
export interface Kept {
  revision: number;
  saved_at: number;
  text: string;
}

export interface Listener {
  /** The text is on the server; `revision` names it from now on. */
  saved(revision: number): void;
  /** It could not be put there: it is in this browser only. */
  failed(): void;
  /** Somebody, maybe this very person in another window, has saved another text. Nothing is saved until `settle`. */
  conflict(kept: Kept): void;
}

export class Sync {
  private pending = false;
  private busy = false;
  private asking = false;
  private text: string | null = null;
  private timer: number | undefined;

  /** `seen`: the revision that this page began with; 0 if there was no draft. */
  constructor(
    private readonly address: string,
    private readonly token: string,
    private seen: number,
    private readonly listener: Listener,
  ) {}

  /** The revision that this page's text goes on from. */
  get revision(): number {
    return this.seen;
  }

  /** The text is now this one (null: the starter again). */
  change(text: string | null, delay = AFTER_MS): void {
    this.text = text;
    this.pending = true;
    window.clearTimeout(this.timer);
    if (!this.asking) this.timer = window.setTimeout(() => void this.flush(), delay);
  }

  /** The reader was asked, and goes on from that revision with the text that the page has. */
  settle(revision: number): void {
    this.seen = revision;
    this.asking = false;
    void this.flush();
  }

  /** Stops saving until `settle`. */
  hold(): void {
    this.asking = true;
    window.clearTimeout(this.timer);
  }

  async flush(): Promise<void> {
    if (!this.pending || this.busy || this.asking) return;
    window.clearTimeout(this.timer);
    this.pending = false;
    this.busy = true;
    let delay = AFTER_MS;
    const body = new FormData();
    body.set("csrf_token", this.token);
    body.set("seen", String(this.seen));
    if (this.text !== null) body.set("text", new Blob([this.text]), "draft.py");
    try {
      const headers = { Accept: "application/json" };
      const answer = await fetch(this.address, { method: "PUT", body, headers, signal: AbortSignal.timeout(AGAIN_MS) });
      if (answer.status === 409) {
        this.pending = true;
        this.hold();
        this.listener.conflict((await answer.json()) as Kept);
      } else if (answer.ok) {
        this.seen = ((await answer.json()) as Kept).revision;
        this.listener.saved(this.seen);
      } else if (answer.status === 413) this.listener.failed(); // too long to be kept: trying again would not help
      else throw new Error(`status ${answer.status}`);
    } catch {
      this.pending = true;
      delay = AGAIN_MS;
      this.listener.failed();
    } finally {
      this.busy = false;
    }
    if (this.pending && !this.asking) {
      window.clearTimeout(this.timer);
      this.timer = window.setTimeout(() => void this.flush(), delay);
    }
  }
}
