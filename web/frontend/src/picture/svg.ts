// Small tools for drawing: elements with attributes (no style attributes: the page's policy forbids them).
const SVG = "http://www.w3.org/2000/svg";

type Attributes = Record<string, string | number | undefined>;

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (SVGElement | string)[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

export function text(x: number, y: number, words: string | number, className = ""): SVGTextElement {
  return svg("text", { x, y, class: className }, String(words));
}

/** A box with a value in it; `title` is what a pointer that rests on it is told. */
export function box(
  x: number,
  y: number,
  width: number,
  height: number,
  words: string | number,
  className: string,
  title?: string,
): SVGGElement {
  const group = svg(
    "g",
    { class: `box ${className}` },
    svg("rect", { x, y, width, height, rx: 3 }),
    text(x + width / 2, y + height / 2, words, "in"),
  );
  if (title) group.prepend(svg("title", {}, title));
  return group;
}

/** A bracket under or over a stretch, with a word at its middle. Nothing for an empty stretch but a tick. */
export function bracket(x1: number, x2: number, y: number, up: boolean, words: string, className: string): SVGGElement {
  const d = up ? 5 : -5;
  const path = x2 > x1 ? `M${x1} ${y} v${-d} H${x2} v${d}` : `M${x1} ${y - d} v${d * 2}`;
  return svg(
    "g",
    { class: `bracket ${className}` },
    svg("path", { d: path }),
    text((x1 + x2) / 2, y + (up ? -12 : 13), words, "in"),
  );
}
