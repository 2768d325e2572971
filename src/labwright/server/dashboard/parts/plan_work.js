// What a plan is at while it is rehearsed or executed: its sweeps and how far they are, and steps that have not ended, with the reason if one waits.

import { useFetched, wakesOn } from "../fetched.js";
import { html } from "../ui.js";
import { RunLines } from "./run_line.js";
import { SweepLine } from "./sweep_line.js";

const SWEEPS = 200; // among the newest of the project
const OPEN = "ready,queued,launching,waiting,running";

export function PlanWork({ plan }) {
  const sweeps = useFetched("sweeps", { limit: SWEEPS }, { wakes: wakesOn("sweep.", "run.status") });
  const runs = useFetched("runs", { plan_id: plan.id, status: OPEN, limit: SWEEPS }, { wakes: wakesOn("run.status", "run.created") });
  const own = (sweeps.data ?? []).filter((sweep) => sweep.plan_id === plan.id).reverse();
  const steps = (runs.data ?? []).filter((run) => !run.sweep_id);
  if (!own.length && !steps.length) return null;
  return html`<section class="panel plan-work" aria-label="Its runs"><h2>Its runs</h2>
    ${own.length > 0 && html`<ul class="lines">${own.map((sweep) => html`<${SweepLine} key=${sweep.id} sweep=${sweep} />`)}</ul>`}
    ${steps.length > 0 && html`<${RunLines} runs=${steps} reasons />`}</section>`;
}
