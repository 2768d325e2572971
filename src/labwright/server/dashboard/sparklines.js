// Small curves beside the rows of the table: asked for by the page's visible rows, many at a time, kept for a while.

import { get } from "./api.js";
import { toNumber } from "./format.js";
import { signal } from "./ui.js";

const POINTS = 48;
const TOGETHER = 25;
const GATHER_MS = 80;
const FRESH_MS = 4000; // of a run that still logs
const curves = new Map(); // "key\nrun" → { signal, at }
let asked = new Map(); // key → set of run ids
let timer = 0;

// A signal of the drawable values, filled in when they are there.
export function curveOf(key, runId, ended) {
  const name = `${key}\n${runId}`;
  let found = curves.get(name);
  if (!found) curves.set(name, (found = { signal: signal([]), at: 0 }));
  if (!found.at || (!ended && Date.now() - found.at > FRESH_MS)) {
    found.at = Date.now();
    if (!asked.has(key)) asked.set(key, new Set());
    asked.get(key).add(runId);
    timer ||= setTimeout(fetchAsked, GATHER_MS);
  }
  return found.signal;
}

async function fetchAsked() {
  const batches = [...asked].flatMap(([key, ids]) => chunks([...ids], TOGETHER).map((some) => [key, some]));
  asked = new Map();
  timer = 0;
  for (const [key, ids] of batches) {
    try {
      const { runs } = await get("metrics/compare", { key, run_ids: ids.join(","), max_points: POINTS, groups: false });
      for (const run of runs) {
        const curve = curves.get(`${key}\n${run.run_id}`);
        if (curve) curve.signal.value = run.values.map(toNumber).filter(Number.isFinite);
      }
    } catch {
      ids.forEach((id) => curves.delete(`${key}\n${id}`)); // asked for again when the row is next drawn
    }
  }
}

const chunks = (items, size) => Array.from({ length: Math.ceil(items.length / size) }, (_, n) => items.slice(n * size, (n + 1) * size));
