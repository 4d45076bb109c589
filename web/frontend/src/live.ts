// Watches a submission until its verdict: a stream of events, or asking again and again where streams don't get through.
// The verdict itself is a piece of page from the server, so it looks the same with and without this script.
import { say } from "./texts";

interface State {
  status: string;
  text: string;
  final: boolean;
  attempt: number;
  ahead: number;
  total: number | null;
  cases?: Case[];
}

interface Case {
  seq: number;
  status: string;
  text: string;
  name: string;
  message: string;
}

const POLL_MS = 700;
const STREAM_FAILURES = 3;
const ANSWER_MS = 15_000;

/** Follows the submission that `holder` shows, if it is still judged; replaces it by the verdict, then calls `ready`. */
export function follow(holder: HTMLElement, ready: (root: ParentNode) => void, ended: () => void = () => {}): void {
  const section = holder.querySelector<HTMLElement>("[data-live]");
  if (section) new Watch(holder, section, ready, ended).stream();
}

class Watch {
  private attempt = 0;
  private seen = 0;
  private failures = 0;
  private over = false;

  constructor(
    private readonly holder: HTMLElement,
    private readonly section: HTMLElement,
    private readonly ready: (root: ParentNode) => void,
    private readonly ended: () => void,
  ) {
    section.querySelector<HTMLFormElement>("[data-cancel]")?.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.cancel(event.currentTarget as HTMLFormElement);
    });
  }

  stream(): void {
    const source = new EventSource(this.section.dataset["events"] ?? "");
    source.addEventListener("state", (event) => this.state(JSON.parse(event.data as string) as State));
    source.addEventListener("case", (event) => this.case(JSON.parse(event.data as string) as Case));
    source.addEventListener("end", () => {
      source.close();
      void this.finish();
    });
    source.addEventListener("error", () => {
      if (!this.current()) return source.close();
      this.failures += 1;
      // A refused stream is closed for good; one that broke connects again by itself, up to a point.
      if (source.readyState === EventSource.CLOSED || this.failures >= STREAM_FAILURES) {
        source.close();
        void this.poll();
      }
    });
  }

  /** Asks for the end; that it came, or a verdict before it, tells the stream. */
  private async cancel(form: HTMLFormElement): Promise<void> {
    const button = form.querySelector("button");
    if (button) button.disabled = true;
    try {
      const answer = await fetch(form.action, {
        method: "POST",
        body: new FormData(form),
        headers: { Accept: "application/json" },
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
    } catch {
      if (button) button.disabled = false;
      this.tell(this.section.dataset["lost"] ?? "");
    }
  }

  private async poll(): Promise<void> {
    while (this.current() && !this.over) {
      try {
        const answer = await fetch(`${this.section.dataset["state"]}?after=${this.attempt}.${this.seen}`, {
          headers: { Accept: "application/json" },
          signal: AbortSignal.timeout(ANSWER_MS),
        });
        if (!answer.ok) throw new Error(`status ${answer.status}`);
        const state = (await answer.json()) as State;
        this.state(state);
        for (const item of state.cases ?? []) this.case(item);
        if (state.final) return void (await this.finish());
      } catch {
        this.tell(this.section.dataset["lost"] ?? "");
      }
      await new Promise((wake) => setTimeout(wake, POLL_MS));
    }
  }

  /** False once another submission has taken this one's place on the page. */
  private current(): boolean {
    return this.section.isConnected;
  }

  private state(state: State): void {
    this.failures = 0;
    if (state.attempt !== this.attempt) {
      this.attempt = state.attempt;
      this.seen = 0;
      this.dots().replaceChildren();
    }
    const badge = this.section.querySelector(".badge");
    if (badge && !state.final) {
      badge.className = `badge ${state.status}`;
      badge.textContent = state.text;
    }
    const before = (this.section.dataset["ahead"] ?? "").replace("{n}", String(state.ahead));
    this.tell(state.ahead ? before : state.status === "queued" ? (this.section.dataset["next"] ?? "") : "");
    const dots = this.dots();
    for (let n = dots.children.length; n < (state.total ?? 0); n++) {
      const dot = document.createElement("li");
      dot.className = "dot waiting";
      dots.append(dot);
    }
  }

  private case(item: Case): void {
    if (item.seq <= this.seen) return;
    this.seen = item.seq;
    const dots = this.dots();
    const dot = dots.children[item.seq - 1] ?? dots.appendChild(document.createElement("li"));
    dot.className = `dot ${item.status}`;
    dot.setAttribute("title", [item.name, item.text, item.message].filter(Boolean).join(" · "));
    dot.textContent = "";
    const words = document.createElement("span");
    words.className = "hidden-text";
    words.textContent = item.text;
    dot.append(words);
    this.tell(say("progress", { done: item.seq, total: dots.children.length }));
  }

  private async finish(): Promise<void> {
    this.over = true;
    for (let delay = 200; this.current(); delay = Math.min(delay * 2, 5000)) {
      try {
        const address = this.section.dataset["fragment"] ?? "";
        const answer = await fetch(address, { signal: AbortSignal.timeout(ANSWER_MS) });
        if (!answer.ok) throw new Error(`status ${answer.status}`);
        const html = await answer.text();
        if (!this.current()) return;
        this.holder.innerHTML = html;
        this.ready(this.holder);
        this.ended();
        return;
      } catch {
        this.tell(this.section.dataset["lost"] ?? "");
        await new Promise((wake) => setTimeout(wake, delay));
      }
    }
  }

  private dots(): Element {
    return this.section.querySelector("[data-dots]") ?? this.section.appendChild(document.createElement("ol"));
  }

  private tell(text: string): void {
    const outcome = this.section.querySelector("[data-outcome]");
    let place = outcome?.querySelector("[data-place]");
    if (outcome && !place) {
      place = document.createElement("span");
      place.setAttribute("data-place", "");
      outcome.append(place);
    }
    if (place) place.textContent = text;
  }
}
