// Small curves in the runs table. The visible rows request them in batches; they are cached for a while.

import { toNumber } from "../format.js";
import { html, signal } from "../view.js";
import { get } from "../data/api.js";
import { isTerminal } from "../data/store.js";

const POINTS = 48;
const BATCH = 25;
const GATHER_MS = 80;
const FRESH_MS = 4000; // for active runs
const curves = new Map(); // "key\nrun" → { signal, at }
let requested = new Map(); // key → set of run ids
let timer = 0;

// Return a signal with the values, filled when they arrive.
function curveOf(key, runId, ended) {
  const name = `${key}\n${runId}`;
  let found = curves.get(name);
  if (!found) curves.set(name, (found = { signal: signal([]), at: 0 }));
  if (!found.at || (!ended && Date.now() - found.at > FRESH_MS)) {
    found.at = Date.now();
    if (!requested.has(key)) requested.set(key, new Set());
    requested.get(key).add(runId);
    timer ||= setTimeout(fetchRequested, GATHER_MS);
  }
  return found.signal;
}

async function fetchRequested() {
  const batches = [...requested].flatMap(([key, ids]) => chunks([...ids], BATCH).map((some) => [key, some]));
  requested = new Map();
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
      ids.forEach((id) => curves.delete(`${key}\n${id}`)); // requested again when the row is next drawn
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
  const points = values.map((value, at) => {
    const x = (at / (values.length - 1)) * WIDTH;
    const y = HEIGHT - 2 - ((value - low) / range) * (HEIGHT - 4);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
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
