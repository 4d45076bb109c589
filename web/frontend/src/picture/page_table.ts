// The picture of a paged batch: the page table with each request's tokens, who owns which page of the pool, and the
// arrays that say so; what the learner returned stands under what is right, and every difference carries a mark.
import { say } from "../texts";
import { isRecord, readScene, stretches, vector, type Json, type Req, type Scene } from "./model";
import { box, bracket, svg, text } from "./svg";

const CELL = 27;
const HIGH = 24;
const LEFT = 92;
const MAX_COLUMNS = 96;
const MAX_ROWS = 16;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

const letter = (i: number) => LETTERS[i % LETTERS.length] ?? "?";
const colour = (i: number) => `r${i % 6}`;

/** The parts of the figure, or nothing if the case is of another kind. */
export function drawPageTable(inputs: Json, expected: Json, got: Json): (Element | string)[] {
  const scene = readScene(inputs, expected);
  if (!scene || !isRecord(expected)) return [];
  const mine = isRecord(got) ? got : null;
  const right = stretches(vector(expected[scene.roles.pages]), vector(expected[scene.roles.cut]), scene.reqs.length);
  if (!right) return [];
  const yours = mine && stretches(vector(mine[scene.roles.pages]), vector(mine[scene.roles.cut]), scene.reqs.length);
  return [
    part(say("table"), tablePart(scene), scene.pageSize === 1 ? say("table_help_one") : say("table_help", { size: scene.pageSize })),
    part(scene.pageSize === 1 ? say("pool_tokens") : say("pool"), poolPart(scene, right, mine ? (yours ?? null) : undefined), ""),
    part(say("arrays"), arraysPart(scene, expected, mine), mine ? say("arrays_help") : ""),
    ...(mine && !yours ? [note(say("cut_unusable", { field: scene.roles.cut }))] : []),
  ];
}

function part(title: string, picture: SVGSVGElement, help: string): HTMLElement {
  const section = document.createElement("div");
  section.className = "part";
  const head = document.createElement("h4");
  head.textContent = title;
  const scroll = document.createElement("div");
  scroll.className = "wide";
  scroll.tabIndex = 0;
  picture.prepend(svg("title", {}, title));
  picture.setAttribute("role", "img");
  scroll.append(picture);
  section.append(head, scroll);
  if (help) section.append(note(help));
  return section;
}

function note(words: string): HTMLElement {
  const line = document.createElement("p");
  line.className = "help";
  line.textContent = words;
  return line;
}

function canvas(width: number, height: number, children: SVGElement[]): SVGSVGElement {
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, ...children);
}

/** The table's rows; a request's tokens in its colour, new ones framed, page borders as lines. */
function tablePart(scene: Scene): SVGSVGElement {
  const columns = Math.min(scene.table[0]?.length ?? 0, MAX_COLUMNS);
  const used = new Set(scene.reqs.map((r) => r.row));
  const rows = scene.table.map((_, i) => i).filter((i) => used.has(i) || scene.table.length <= MAX_ROWS);
  const children: SVGElement[] = [];
  const top = 18;
  for (let at = 0; at < columns; at++) {
    if (at % scene.pageSize === 0 || scene.pageSize === 1) {
      children.push(text(LEFT + at * CELL + CELL / 2, 9, at, "axis"));
    }
  }
  rows.forEach((row, line) => {
    const y = top + line * (HIGH + 6);
    const owners = scene.reqs.flatMap((r, i) => (r.row === row ? [i] : []));
    const whose = owners.length ? say("row_of", { row, letter: names(owners) }) : say("row", { row });
    children.push(text(0, y + HIGH / 2, whose, "label"));
    scene.table[row]?.slice(0, columns).forEach((value, at) => {
      const owner = owners.find((i) => at < (scene.reqs[i]?.length ?? 0));
      const req = owner === undefined ? undefined : scene.reqs[owner];
      const title = req ? tokenTitle(req, owner ?? 0, at) : say("token_unused");
      children.push(box(LEFT + at * CELL, y, CELL, HIGH, value, req ? tokenClass(req, owner ?? 0, at) : "free", title));
    });
    for (let at = scene.pageSize; scene.pageSize > 1 && at < columns; at += scene.pageSize) {
      const x = LEFT + at * CELL;
      children.push(svg("line", { x1: x, x2: x, y1: y - 2, y2: y + HIGH + 2, class: "border" }));
    }
  });
  return canvas(LEFT + columns * CELL + 2, top + rows.length * (HIGH + 6), children);
}

function tokenClass(req: Req, owner: number, at: number): string {
  return `${colour(owner)} ${at < req.cached ? "cached" : "new"}`;
}

function tokenTitle(req: Req, owner: number, at: number): string {
  return say(at < req.cached ? "token_cached" : "token_new", { letter: letter(owner), at });
}

/** The pages of the pool, each with those who read it: as it should be and, under it, as the learner's arrays say. */
function poolPart(scene: Scene, right: number[][], yours: number[][] | null | undefined): SVGSVGElement {
  const inTable = scene.table.flat().map((v) => Math.floor(v / scene.pageSize));
  const count = Math.min(Math.max(0, ...inTable, ...right.flat()) + 1, MAX_COLUMNS);
  const readers = (lists: number[][], page: number) =>
    lists.flatMap((pages, i) => pages.filter((p) => p === page).map(() => i));
  const children: SVGElement[] = [text(0, 18 + HIGH / 2, say("right"), "label")];
  if (yours) children.push(text(0, 52 + HIGH / 2, say("yours"), "label"));
  for (let page = 0; page < count; page++) {
    const x = LEFT + page * CELL;
    const want = readers(right, page);
    children.push(text(x + CELL / 2, 9, page, "axis"));
    children.push(box(x, 18, CELL, HIGH, names(want), want[0] === undefined ? "free" : colour(want[0])));
    if (!yours) continue;
    const have = readers(yours, page);
    const same = have.join() === want.join();
    const state = same ? "same" : have.length ? "differs" : "lacking";
    const owner = have[0] === undefined ? "free" : colour(have[0]);
    children.push(box(x, 52, CELL, HIGH, same ? names(have) : names(have) || "∅", `${owner} ${state}`));
    if (!same) children.push(text(x + CELL / 2, 86, "✗", "cross"));
  }
  return canvas(LEFT + count * CELL + 2, yours ? 96 : 18 + HIGH + 2, children);
}

function names(owners: number[]): string {
  return owners.length > 2 ? `${letter(owners[0] ?? 0)}…` : owners.map(letter).join("");
}

/** Each array in boxes: the right one, then the learner's under it. The pages carry brackets that say whose they are. */
function arraysPart(scene: Scene, expected: { [key: string]: Json }, got: { [key: string]: Json } | null): SVGSVGElement {
  const { queries, cut, pages, others } = scene.roles;
  const children: SVGElement[] = [];
  let y = 0;
  let width = 0;
  const fields = [cut, pages, queries, ...others].filter((name) => vector(expected[name]));
  for (const field of fields) {
    const want = vector(expected[field]) ?? [];
    const have = got ? vector(got[field]) : undefined;
    children.push(text(0, y + 8, field, "field"));
    y += 20;
    if (field === pages) y += drawBrackets(children, vector(expected[cut]), want.length, y, true);
    children.push(text(0, y + HIGH / 2, say("right"), "label"));
    want.slice(0, MAX_COLUMNS).forEach((value, i) => {
      children.push(box(LEFT + i * CELL, y, CELL, HIGH, value, elementClass(scene, expected, field, i), `${field}[${i}] = ${value}`));
    });
    y += HIGH + 4;
    if (got) {
      children.push(text(0, y + HIGH / 2, say("yours"), "label"));
      if (have === null) children.push(text(LEFT, y + HIGH / 2, say(field in got ? "not_drawable" : "missing"), "label cross"));
      else drawYours(children, field, want, have ?? [], y);
      y += HIGH + 12;
      if (field === pages) y += drawBrackets(children, vector(got[cut]), (have ?? []).length, y - 8, false);
    }
    width = Math.max(width, want.length, have?.length ?? 0);
    y += 8;
  }
  return canvas(LEFT + Math.min(width, MAX_COLUMNS) * CELL + 14, y, children);
}

function drawYours(children: SVGElement[], field: string, want: number[], have: number[], y: number): void {
  for (let i = 0; i < Math.min(Math.max(want.length, have.length), MAX_COLUMNS); i++) {
    const x = LEFT + i * CELL;
    const value = have[i];
    const same = value === want[i];
    const state = same ? "same" : value === undefined ? "lacking" : "differs";
    const title = `${field}[${i}]: ${say("right")} ${want[i] ?? "—"}, ${say("yours")} ${value ?? "—"}`;
    children.push(box(x, y, CELL, HIGH, value ?? "∅", state, title));
    if (!same) children.push(text(x + CELL / 2, y + HIGH + 6, "✗", "cross"));
  }
}

/** Brackets over (or under) the boxes of the pages by a cut; returns the height used. */
function drawBrackets(children: SVGElement[], cut: number[] | null, length: number, y: number, up: boolean): number {
  if (!cut) return 0;
  for (let i = 0; i + 1 < cut.length; i++) {
    const from = Math.min(Math.max(cut[i] ?? 0, 0), length);
    const to = Math.min(Math.max(cut[i + 1] ?? 0, 0), length);
    if (to > MAX_COLUMNS) break;
    const [x1, x2] = [LEFT + from * CELL + 2, LEFT + to * CELL - (to > from ? 2 : 0)];
    children.push(bracket(x1, x2, up ? y + 20 : y + 10, up, letter(i), colour(i)));
  }
  return 24;
}

/** A page belongs to the request in whose stretch it lies; other arrays have one element a request, cuts none. */
function elementClass(scene: Scene, expected: { [key: string]: Json }, field: string, index: number): string {
  if (scene.roles.others.includes(field)) return colour(index);
  if (field !== scene.roles.pages) return "plain";
  const cut = vector(expected[scene.roles.cut]) ?? [];
  const owner = cut.findIndex((end, i) => i > 0 && index < end) - 1;
  return owner < 0 ? "plain" : colour(owner);
}
