import { curveOf } from "../sparklines.js";
import { isTerminal } from "../store.js";
import { html } from "../ui.js";

const WIDTH = 64;
const HEIGHT = 18;

export function Sparkline({ run, metric }) {
  const summary = run.summary[metric];
  const values = summary ? curveOf(metric, run.id, isTerminal(run)).value : [];
  if (values.length < 2) return null;
  const low = Math.min(...values);
  const range = Math.max(...values) - low || 1;
  const points = values.map((value, at) => `${((at / (values.length - 1)) * WIDTH).toFixed(1)},${(HEIGHT - 2 - ((value - low) / range) * (HEIGHT - 4)).toFixed(1)}`);
  return html`<svg class="sparkline" width=${WIDTH} height=${HEIGHT} viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${metric} over time">
    <polyline points=${points.join(" ")} fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round" /></svg>`;
}
