// Staff pages that show a moving state: the part marked data-refresh="SECONDS" is fetched anew while the page is looked at.
// A fault leaves what is there; the next try comes by itself.
import { enliven } from "./enliven";

export function keepFresh(part: HTMLElement): void {
  const seconds = Number(part.dataset.refresh);
  const look = async (): Promise<void> => {
    // Not under the hands of somebody who is choosing or typing in it.
    if (document.hidden || part.contains(document.activeElement)) return;
    const answer = await fetch(location.href, { signal: AbortSignal.timeout(10_000) });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-refresh]");
    if (fresh) {
      part.replaceChildren(...fresh.childNodes);
      enliven(part);
    }
  };
  setInterval(() => void look().catch((error: unknown) => console.warn("not refreshed", error)), seconds * 1000);
}
