// The workflow as the IR has it: steps in columns, each to the right of what feeds it.

import { useFetched } from "../fetched.js";
import { text } from "../format.js";
import { html, useMemo, useState } from "../ui.js";
import { Code } from "./code.js";
import { Problem } from "./message.js";

const BOX = { width: 190, height: 52, gapX: 70, gapY: 24, edge: 16 };

export function PlanGraph({ plan }) {
  const { data, problem, refresh } = useFetched(`plans/${encodeURIComponent(plan.id)}/workflow`, {}, { wakes: (event) => event.data.plan_id === plan.id });
  const [open, setOpen] = useState("");
  const placed = useMemo(() => data && placesOf(data), [data]);
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  const states = new Map((plan.planning?.steps ?? []).map(({ step, status }) => [step, status]));
  const step = data.steps.find(({ id }) => id === open) ?? data.steps[0];
  return html`<section class="stack" aria-label="Workflow">
    <div class="wide-figure" tabindex="0" role="region" aria-label="Graph"><svg class="graph" width=${placed.width} height=${placed.height} viewBox="0 0 ${placed.width} ${placed.height}" role="group" aria-label="${data.steps.length} steps">
      ${data.edges.map(([from, to]) => html`<path key="${from} ${to}" class="graph-edge" d=${curve(placed.at.get(from), placed.at.get(to))} />`)}
      ${data.steps.map((one) => html`<${Box} key=${one.id} step=${one} place=${placed.at.get(one.id)} state=${states.get(one.id) ?? ""} isOpen=${one === step} onOpen=${() => setOpen(one.id)} />`)}
    </svg></div>
    <${Step} step=${step} /><${Grid} grid=${data.grid} />
  </section>`;
}

// Column: one more than the furthest of what feeds it.
function placesOf({ steps, edges }) {
  const columns = new Map();
  const column = (id, path = new Set()) => {
    if (columns.has(id) || path.has(id)) return columns.get(id) ?? 0;
    const before = edges.filter(([, to]) => to === id).map(([from]) => column(from, new Set([...path, id])) + 1);
    columns.set(id, Math.max(0, ...before));
    return columns.get(id);
  };
  const rows = new Map();
  const at = new Map();
  for (const { id } of steps) {
    const x = column(id);
    const y = rows.get(x) ?? 0;
    rows.set(x, y + 1);
    at.set(id, { x: BOX.edge + x * (BOX.width + BOX.gapX), y: BOX.edge + y * (BOX.height + BOX.gapY) });
  }
  const places = [...at.values()];
  return { at, width: Math.max(...places.map(({ x }) => x)) + BOX.width + BOX.edge, height: Math.max(...places.map(({ y }) => y)) + BOX.height + BOX.edge };
}

function curve(from, to) {
  const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x, to.y + BOX.height / 2];
  const bend = Math.max(24, (x2 - x1) / 2);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

function Box({ step, place, state, isOpen, onOpen }) {
  const onKeyDown = (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), onOpen());
  return html`<g class="graph-box graph-${state} ${isOpen ? "graph-open" : ""}" transform="translate(${place.x} ${place.y})" role="button" tabindex="0" aria-pressed=${String(isOpen)} onClick=${onOpen} onKeyDown=${onKeyDown}>
    <rect width=${BOX.width} height=${BOX.height} rx="8" /><text x="12" y="22" class="graph-name">${step.id.length > 24 ? `${step.id.slice(0, 23)}…` : step.id}</text><text x="12" y="40" class="tick">${step.kind}${state && ` · ${state}`}</text></g>`;
}

const Step = ({ step }) => html`<div class="card stack" aria-label="Step"><h2>${step.id}</h2><p>${step.responsibility}</p>
  ${step.command && html`<${Code} text=${step.command} language="bash" label="Command" />`}
  <table class="pairs"><tbody>${Object.entries(step.inputs).map(([name, source]) => html`<tr key="i ${name}"><th scope="row">takes ${name}</th><td>from <code>${source}</code></td></tr>`)}
    ${Object.entries(step.outputs).map(([name, type]) => html`<tr key="o ${name}"><th scope="row">gives ${name}</th><td><code>${type}</code></td></tr>`)}</tbody></table></div>`;

const Grid = ({ grid }) => html`<div class="card"><h2>What is tried</h2><table class="pairs"><tbody>
  ${grid.parameters.map(({ flag, name, values }) => html`<tr key=${name}><th scope="row">${flag || name}</th><td>${values.map(text).join(", ")}</td></tr>`)}
  ${grid.seeds.length > 0 && html`<tr><th scope="row">seeds</th><td>${grid.seeds.join(", ")}</td></tr>`}
  <tr><th scope="row">judged by</th><td>${grid.metric.name}, ${grid.metric.direction}</td></tr></tbody></table></div>`;
