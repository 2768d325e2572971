// The workflow as the IR has it: steps in columns, each to the right of what feeds it.

import { useFetched } from "../fetched.js";
import { text } from "../format.js";
import { BOX, layout } from "../graph_layout.js";
import { html, useMemo, useState } from "../ui.js";
import { Code } from "./code.js";
import { Problem } from "./message.js";

const LONGEST_NAME = 22; // that a box has room for

export function PlanGraph({ plan }) {
  const { data, problem, refresh } = useFetched(`plans/${encodeURIComponent(plan.id)}/workflow`, {}, { wakes: (event) => event.data.plan_id === plan.id });
  const [open, setOpen] = useState("");
  const placed = useMemo(() => data && layout(data), [data]);
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  const states = new Map((plan.planning?.steps ?? []).map(({ step, status }) => [step, status]));
  const step = data.steps.find(({ id }) => id === open) ?? data.steps[0];
  return html`<section class="stack" aria-label="Workflow">
    <div class="wide-figure" tabindex="0" role="region" aria-label="Graph"><svg class="graph" width=${placed.width} height=${placed.height} viewBox="0 0 ${placed.width} ${placed.height}" role="group" aria-label="${data.steps.length} steps">
      ${placed.lines.map(({ key, path }) => html`<path key=${key} class="graph-edge" d=${path} />`)}
      ${data.steps.map((one) => html`<${Box} key=${one.id} step=${one} place=${placed.at.get(one.id)} state=${states.get(one.id) ?? ""} isOpen=${one === step} onOpen=${() => setOpen(one.id)} />`)}
    </svg></div>
    <${Step} step=${step} /><${Grid} grid=${data.grid} />
  </section>`;
}

function Box({ step, place, state, isOpen, onOpen }) {
  const onKeyDown = (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), onOpen());
  return html`<g class="graph-box graph-${state} ${isOpen ? "graph-open" : ""}" transform="translate(${place.x} ${place.y})" role="button" tabindex="0" aria-pressed=${String(isOpen)} onClick=${onOpen} onKeyDown=${onKeyDown}>
    <title>${step.id}</title><rect width=${BOX.width} height=${BOX.height} rx="8" /><text x="12" y="22" class="graph-name">${step.id.length > LONGEST_NAME ? `${step.id.slice(0, LONGEST_NAME - 1)}…` : step.id}</text><text x="12" y="40" class="tick">${step.kind}${state && ` · ${state}`}</text></g>`;
}

const Step = ({ step }) => html`<div class="card stack" aria-label="Step"><h2>${step.id}</h2><p>${step.responsibility}</p>
  ${step.command && html`<${Code} text=${step.command} language="bash" label="Command" />`}
  <table class="pairs"><tbody>${Object.entries(step.inputs).map(([name, source]) => html`<tr key="i ${name}"><th scope="row">takes ${name}</th><td>from <code>${source}</code></td></tr>`)}
    ${Object.entries(step.outputs).map(([name, type]) => html`<tr key="o ${name}"><th scope="row">gives ${name}</th><td><code>${type}</code></td></tr>`)}</tbody></table></div>`;

const Grid = ({ grid }) => html`<div class="card"><h2>What is tried</h2><table class="pairs"><tbody>
  ${grid.parameters.map(({ flag, name, values }) => html`<tr key=${name}><th scope="row">${flag || name}</th><td>${values.map(text).join(", ")}</td></tr>`)}
  ${grid.seeds.length > 0 && html`<tr><th scope="row">seeds</th><td>${grid.seeds.join(", ")}</td></tr>`}
  <tr><th scope="row">judged by</th><td>${grid.metric.name}, ${grid.metric.direction}</td></tr></tbody></table></div>`;
