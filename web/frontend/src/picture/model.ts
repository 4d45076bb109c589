// Reads what a case is about out of its values. What a learner returned may be anything, so every reader of it gives
// "nothing there" in place of failing.
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** One request of a batch: its row, tokens computed before this step, tokens after it. */
export interface Req {
  row: number;
  cached: number;
  length: number;
}

export interface Scene {
  table: number[][];
  pageSize: number;
  reqs: Req[];
  /** Names of the fields that hold the cut of the queries, the cut of the pages, the pages, the rest. */
  roles: Roles;
}

export interface Roles {
  queries: string;
  cut: string;
  pages: string;
  others: string[];
  countsNew: boolean;
}

const ROLES: Roles[] = [
  { queries: "qo_indptr", cut: "kv_indptr", pages: "kv_indices", others: ["kv_last_page_len"], countsNew: true },
  {
    queries: "cu_seqlens_q_cpu",
    cut: "cu_seqlens_k_cpu",
    pages: "indices",
    others: ["last_page_len_cpu", "seq_lens_cpu"],
    countsNew: false,
  },
];

export function isRecord(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The elements of a tensor or list with one axis; null for anything else. */
export function vector(value: Json | undefined): number[] | null {
  const data = isRecord(value) && isRecord(value["tensor"]) ? value["tensor"]["data"] : value;
  return Array.isArray(data) && data.every((x) => typeof x === "number") ? (data as number[]) : null;
}

function matrix(value: Json | undefined): number[][] | null {
  const data = isRecord(value) && isRecord(value["tensor"]) ? value["tensor"]["data"] : value;
  if (!Array.isArray(data)) return null;
  const rows = data.map((row) => vector(row));
  return rows.every((row) => row !== null) ? (rows as number[][]) : null;
}

function int(value: Json | undefined): number | null {
  return typeof value === "number" && Number.isInteger(value) ? value : null;
}

/** A request is written (row, new tokens, length) where the roles count new tokens, else (row, cached, length). */
function request(value: Json, roles: Roles): Req | null {
  const parts = isRecord(value) ? ["table_idx", "cached_len", "device_len"].map((name) => value[name]) : value;
  if (!Array.isArray(parts)) return null;
  const [row, second, length] = parts.map((v) => int(v));
  if (row == null || second == null || length == null) return null;
  return { row, cached: roles.countsNew && Array.isArray(value) ? length - second : second, length };
}

function requests(value: Json | undefined, roles: Roles): (Req | null)[] {
  return Array.isArray(value) ? value.map((v) => request(v, roles)) : [];
}

/** The scene of a case, or null if its inputs are of another kind. */
export function readScene(inputs: Json, expected: Json): Scene | null {
  if (!isRecord(inputs) || !isRecord(expected)) return null;
  const table = matrix(inputs["page_table"]);
  const roles = ROLES.find((r) => r.cut in expected && r.pages in expected);
  if (!table?.length || !roles) return null;
  // A padded batch goes on with requests that only fill it up; the arrays have them too.
  const reqs = [...requests(inputs["reqs"], roles), ...requests(inputs["padding"], roles)];
  if (!reqs.length || reqs.some((r) => r === null)) return null;
  // The graft's view of the pool has pages of one token, whatever the engine's page size is.
  const pageSize = roles.pages === "indices" ? 1 : (int(inputs["page_size"]) ?? 1);
  return { table, pageSize: Math.max(1, pageSize), reqs: reqs as Req[], roles };
}

/** `values` cut by `cut`: one stretch a request. Null if the cut is none: too short, falling, or past the end. */
export function stretches(values: number[] | null, cut: number[] | null, count: number): number[][] | null {
  if (!values || !cut || cut.length !== count + 1) return null;
  const rising = cut.every((at, i) => Number.isInteger(at) && at >= 0 && at <= values.length && at >= (cut[i - 1] ?? 0));
  return rising ? cut.slice(1).map((end, i) => values.slice(cut[i] ?? 0, end)) : null;
}
