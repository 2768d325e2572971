// The workflow as a graph. Each step is to the right of its inputs. An edge that crosses other columns gets a free lane
// there, so that it does not seem to end at a box.

import { text } from "../format.js";
import { html, useMemo, useState } from "../view.js";
import { useFetched } from "../data/fetched.js";
import { Code } from "../ui/code.js";
import { Problem } from "../ui/message.js";

const BOX = { width: 204, height: 52 };
const GAP = { x: 70, y: 24 };
const LANE = 12;
const EDGE = 16;

function layout({ steps, edges }) {
  const columnOf = columns(steps, edges);
  const last = Math.max(...columnOf.values());
  const heights = new Map(); // `step column` → y of the step's center, or of its lane
  const ends = [];
  for (let column = 0; column <= last; column += 1) ends.push(fill(column, { steps, edges, columnOf, heights }));
  const at = new Map(
    steps.map(({ id }) => [
      id,
      { x: xOf(columnOf.get(id)), y: heights.get(spot(id, columnOf.get(id))) - BOX.height / 2 },
    ]),
  );
  const lines = edges.map((edge) => ({ key: edge.join(" "), path: lineOf(edge, columnOf, heights) }));
  return { at, lines, width: xOf(last) + BOX.width + EDGE, height: Math.max(...ends) - GAP.y + EDGE };
}

const spot = (id, column) => `${id} ${column}`;
const xOf = (column) => EDGE + column * (BOX.width + GAP.x);

// A step's column is one more than the largest column of its inputs. Cycles are drawn, too.
function columns(steps, edges) {
  const found = new Map();
  const column = (id, path = new Set()) => {
    if (found.has(id) || path.has(id)) return found.get(id) ?? 0;
    const before = edges.filter(([, to]) => to === id).map(([from]) => column(from, new Set([...path, id])) + 1);
    found.set(id, Math.max(0, ...before));
    return found.get(id);
  };
  for (const { id } of steps) column(id);
  return found;
}

// Place the boxes and lanes of a column from the top, near the height of their sources, so that few edges cross.
function fill(column, { steps, edges, columnOf, heights }) {
  const before = (id) => heights.get(spot(id, column - 1));
  const sources = (id) =>
    edges.filter(([from, to]) => to === id && columnOf.get(from) < column).map(([from]) => before(from));
  const passes = (id) =>
    columnOf.get(id) < column && edges.some(([from, to]) => from === id && columnOf.get(to) > column);
  const boxes = steps
    .filter(({ id }) => columnOf.get(id) === column)
    .map(({ id }) => ({ id, height: BOX.height, target: mean(sources(id)) }));
  const lanes = steps.filter(({ id }) => passes(id)).map(({ id }) => ({ id, height: LANE, target: before(id) }));
  let y = EDGE;
  for (const { id, height } of [...boxes, ...lanes].sort((one, other) => one.target - other.target)) {
    heights.set(spot(id, column), y + height / 2);
    y += height + GAP.y;
  }
  return y;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

function lineOf([from, to], columnOf, heights) {
  const place = (id, column) => ({ x: xOf(column), y: heights.get(spot(id, column)) });
  const rightOf = ({ x, y }) => ({ x: x + BOX.width, y });
  let here = rightOf(place(from, columnOf.get(from)));
  let path = `M${here.x} ${here.y}`;
  for (let column = columnOf.get(from) + 1; column < columnOf.get(to); column += 1) {
    const lane = place(from, column);
    path += `${bend(here, lane)}H${lane.x + BOX.width}`;
    here = rightOf(lane);
  }
  return path + bend(here, place(to, columnOf.get(to)));
}

function bend(from, to) {
  const half = Math.max(24, (to.x - from.x) / 2);
  return `C${from.x + half} ${from.y} ${to.x - half} ${to.y} ${to.x} ${to.y}`;
}

const MAX_NAME = 22; // characters that fit into a box

export function PlanGraph({ plan }) {
  const { data, problem, refresh } = useFetched(
    `plans/${encodeURIComponent(plan.id)}/workflow`,
    {},
    { refreshOn: (event) => event.data.plan_id === plan.id },
  );
  const [open, setOpen] = useState("");
  const placed = useMemo(() => data && layout(data), [data]);
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  const states = new Map((plan.planning?.steps ?? []).map(({ step, status }) => [step, status]));
  const step = data.steps.find(({ id }) => id === open) ?? data.steps[0];
  return html`<section class="stack" aria-label="Workflow">
    <div class="wide-figure" tabindex="0" role="region" aria-label="Graph">
      <svg
        class="graph"
        width=${placed.width}
        height=${placed.height}
        viewBox="0 0 ${placed.width} ${placed.height}"
        role="group"
        aria-label="${data.steps.length} steps"
      >
        ${placed.lines.map(({ key, path }) => html`<path key=${key} class="graph-edge" d=${path} />`)}
        ${data.steps.map(
          (one) =>
            html`<${Box}
              key=${one.id}
              step=${one}
              place=${placed.at.get(one.id)}
              state=${states.get(one.id) ?? ""}
              isOpen=${one === step}
              onOpen=${() => setOpen(one.id)}
            />`,
        )}
      </svg>
    </div>
    <${Step} step=${step} />
    <${Grid} grid=${data.grid} />
  </section>`;
}

function Box({ step, place, state, isOpen, onOpen }) {
  const onKeyDown = (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), onOpen());
  return html`<g
    class="graph-box graph-${state} ${isOpen ? "graph-open" : ""}"
    transform="translate(${place.x} ${place.y})"
    role="button"
    tabindex="0"
    aria-pressed=${String(isOpen)}
    onClick=${onOpen}
    onKeyDown=${onKeyDown}
  >
    <title>${step.id}</title>
    <rect width=${BOX.width} height=${BOX.height} rx="8" />
    <text x="12" y="22" class="graph-name">
      ${step.id.length > MAX_NAME ? `${step.id.slice(0, MAX_NAME - 1)}…` : step.id}
    </text>
    <text x="12" y="40" class="tick">
      ${step.kind}
      ${state && ` · ${state}`}
    </text>
  </g>`;
}

const Step = ({ step }) =>
  html`<div class="card stack" aria-label="Step">
    <h2>${step.id}</h2>
    <p>${step.responsibility}</p>
    ${step.command && html`<${Code} text=${step.command} language="bash" label="Command" />`}
    <table class="pairs">
      <tbody>
        ${Object.entries(step.inputs).map(
          ([name, source]) =>
            html`<tr key="i ${name}">
              <th scope="row">input ${name}</th>
              <td>
                from <code>${source}</code>
              </td>
            </tr>`,
        )}
        ${Object.entries(step.outputs).map(
          ([name, type]) =>
            html`<tr key="o ${name}">
              <th scope="row">output ${name}</th>
              <td>
                <code>${type}</code>
              </td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;

const Grid = ({ grid }) =>
  html`<div class="card">
    <h2>Parameters</h2>
    <table class="pairs">
      <tbody>
        ${grid.parameters.map(
          ({ flag, name, values }) =>
            html`<tr key=${name}>
              <th scope="row">${flag || name}</th>
              <td>${values.map(text).join(", ")}</td>
            </tr>`,
        )}
        ${
          grid.seeds.length > 0 &&
          html`<tr>
            <th scope="row">seeds</th>
            <td>${grid.seeds.join(", ")}</td>
          </tr>`
        }
        <tr>
          <th scope="row">metric</th>
          <td>
            ${grid.metric.name}, ${grid.metric.direction}
          </td>
        </tr>
      </tbody>
    </table>
  </div>`;
