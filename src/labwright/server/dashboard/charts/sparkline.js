// Small curves beside the rows of the table: asked for by the page's visible rows, many at a time, kept for a while.

import { get } from "../data/api.js";
import { isTerminal } from "../data/store.js";
import { toNumber } from "../format.js";
import { html, signal } from "../view.js";

const POINTS = 48;
const TOGETHER = 25;
const GATHER_MS = 80;
const FRESH_MS = 4000; // of a run that still logs
const curves = new Map(); // "key\nrun" → { signal, at }
let asked = new Map(); // key → set of run ids
let timer = 0;

// A signal of the drawable values, filled in when they are there.
function curveOf(key, runId, ended) {
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
      const { runs } = await get("metrics/compare", {
        key,
        run_ids: ids.join(","),
        max_points: POINTS,
        groups: false,
      });
      for (const run of runs) {
        const curve = curves.get(`${key}\n${run.run_id}`);
        if (curve) curve.signal.value = run.values.map(toNumber).filter(Number.isFinite);
      }
    } catch {
      ids.forEach((id) => curves.delete(`${key}\n${id}`)); // asked for again when the row is next drawn
    }
  }
}

const chunks = (items, size) =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, n) => items.slice(n * size, (n + 1) * size));

const WIDTH = 64;
const HEIGHT = 18;

export function Sparkline({ run, metric }) {
  const summary = run.summary[metric];
  const values = summary ? curveOf(metric, run.id, isTerminal(run)).value : [];
  if (values.length < 2) return null;
  const low = Math.min(...values);
  const range = Math.max(...values) - low || 1;
  const points = values.map(
    (value, at) =>
      `${((at / (values.length - 1)) * WIDTH).toFixed(1)},${(HEIGHT - 2 - ((value - low) / range) * (HEIGHT - 4)).toFixed(1)}`,
  );
  return html`<svg
    class="sparkline"
    width=${WIDTH}
    height=${HEIGHT}
    viewBox="0 0 ${WIDTH} ${HEIGHT}"
    role="img"
    aria-label="${metric} over time"
  >
    <polyline
      points=${points.join(" ")}
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linejoin="round"
    />
  </svg>`;
}
