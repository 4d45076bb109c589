// The lines between the panes of the problem page: dragged, or moved with the arrow keys, and remembered in this browser.
const WIDE = window.matchMedia("(min-width: 100rem)");
const KEPT = "panes";
const STEP = 2;
const BIG_STEP = 10;

// What a line moves: a custom property of the style sheet, in percent of its surroundings.
interface Split {
  property: string;
  vertical: boolean; // the line itself: it is dragged sideways
  least: number;
  most: number;
}

const STATEMENT: Split = { property: "--statement", vertical: true, least: 25, most: 65 };
const BESIDE: Split = { property: "--editor", vertical: true, least: 30, most: 70 };
const ABOVE: Split = { property: "--editor-height", vertical: false, least: 20, most: 85 };

function kept(): Record<string, number> {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "{}") as Record<string, number>;
  } catch {
    return {}; // storage is switched off, or holds something else
  }
}

function keep(property: string, value: number | null): void {
  const all = kept();
  if (value === null) delete all[property];
  else all[property] = value;
  try {
    localStorage.setItem(KEPT, JSON.stringify(all));
  } catch {
    // storage is switched off: the size lasts as long as this page
  }
}

class Line {
  constructor(
    private readonly line: HTMLElement,
    private readonly around: () => HTMLElement,
    private readonly current: () => Split,
  ) {
    line.hidden = false;
    line.addEventListener("keydown", (event) => this.key(event));
    line.addEventListener("dblclick", () => this.reset());
    line.addEventListener("pointerdown", (event) => this.drag(event));
    WIDE.addEventListener("change", () => this.show());
    this.show();
  }

  /** Puts what is remembered into effect. */
  private show(): void {
    const split = this.current();
    const value = kept()[split.property];
    this.apply(typeof value === "number" ? value : null);
    this.line.setAttribute("aria-orientation", split.vertical ? "vertical" : "horizontal");
    this.line.setAttribute("aria-valuemin", String(split.least));
    this.line.setAttribute("aria-valuemax", String(split.most));
  }

  private apply(value: number | null): void {
    const split = this.current();
    const root = document.documentElement.style;
    const bounded = value === null ? null : Math.min(split.most, Math.max(split.least, Math.round(value * 10) / 10));
    if (bounded === null) root.removeProperty(split.property);
    else root.setProperty(split.property, `${bounded}${split.vertical ? "%" : "vh"}`);
    this.line.setAttribute("aria-valuenow", String(Math.round(this.measured())));
  }

  /** Where the line is, in percent of what it divides. */
  private measured(): number {
    const box = this.around().getBoundingClientRect();
    if (!this.current().vertical) return (box.height / window.innerHeight) * 100;
    return ((this.line.getBoundingClientRect().left - box.left) / box.width) * 100;
  }

  private move(value: number): void {
    const { property, least, most } = this.current();
    const bounded = Math.min(most, Math.max(least, value));
    keep(property, bounded);
    this.apply(bounded);
  }

  private reset(): void {
    keep(this.current().property, null);
    this.apply(null);
  }

  private key(event: KeyboardEvent): void {
    const split = this.current();
    const now = kept()[split.property] ?? this.measured();
    const step = event.shiftKey ? BIG_STEP : STEP;
    const [less, more] = split.vertical ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
    if (event.key === less) this.move(now - step);
    else if (event.key === more) this.move(now + step);
    else if (event.key === "Home") this.move(split.least);
    else if (event.key === "End") this.move(split.most);
    else if (event.key === "Enter") this.reset();
    else return;
    event.preventDefault();
  }

  private drag(event: PointerEvent): void {
    event.preventDefault();
    this.line.focus();
    this.line.setPointerCapture(event.pointerId);
    const moved = (at: PointerEvent): void => {
      const box = this.around().getBoundingClientRect();
      if (this.current().vertical) this.move(((at.clientX - box.left) / box.width) * 100);
      else this.move(((at.clientY - box.top) / window.innerHeight) * 100);
    };
    const done = (): void => {
      this.line.removeEventListener("pointermove", moved);
      this.line.removeEventListener("pointerup", done);
      this.line.removeEventListener("pointercancel", done);
    };
    this.line.addEventListener("pointermove", moved);
    this.line.addEventListener("pointerup", done);
    this.line.addEventListener("pointercancel", done);
  }
}

/** `panes` holds statement and solution; `editor` is the box whose height counts where the result lies below it. */
export function resizable(panes: HTMLElement, editor: HTMLElement): void {
  for (const line of panes.querySelectorAll<HTMLElement>("[data-split]")) {
    const solution = line.parentElement ?? panes;
    if (line.dataset["split"] === "statement") new Line(line, () => panes, () => STATEMENT);
    else new Line(line, () => (WIDE.matches ? solution : editor), () => (WIDE.matches ? BESIDE : ABOVE));
  }
}
