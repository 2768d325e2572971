// The tries of a loop as a tree: each below its parent, with its idea, result and decision.

import { number, text } from "../format.js";
import { html } from "../view.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { compareAddress, runAddress } from "../data/router.js";
import { Icon } from "../ui/icon.js";
import { Ago } from "../ui/time.js";
import { RunLines } from "../work/run_link.js";
import { isEnded } from "./verbs.js";

const DEEPEST = 8; // deeper levels have no room
const VERDICTS = {
  baseline: ["target", "running", "baseline"],
  keep: ["circle-check", "finished", "kept"],
  drop: ["circle-slash", "stopped", "dropped"],
  stop: ["octagon-alert", "failed", "stopped"],
};
const STATES = {
  planned: ["circle-dashed", "stopped", "planned"],
  waiting: ["hourglass", "waiting", "waiting"],
  running: ["loader", "running", "running"],
  ended: ["circle-dashed", "stopped", "not decided yet"],
};

// Depth first, so that children follow their parent.
function inTreeOrder(iterations) {
  const childrenOf = (parent) => iterations.filter((one) => one.parent === parent);
  const known = new Set(iterations.map(({ number: one }) => one));
  const walk = (one, depth) => [
    { ...one, depth },
    ...childrenOf(one.number).flatMap((child) => walk(child, depth + 1)),
  ];
  return iterations.filter(({ parent }) => parent === null || !known.has(parent)).flatMap((root) => walk(root, 0));
}

export function WildTree({ wild, open }) {
  if (!wild.iterations.length) return html`<p class="muted">The first iteration is the baseline. It starts soon.</p>`;
  return html`<ol class="tree" aria-label="Iterations">
    ${inTreeOrder(wild.iterations).map(
      (one) =>
        html`<${Iteration}
          key=${one.number}
          one=${one}
          metric=${wild.metric}
          isBest=${one.number === wild.best?.number}
          open=${open?.filter(({ id }) => one.run_ids.includes(id)) ?? null}
        />`,
    )}
  </ol>`;
}

// A paused loop decides nothing: derive the state from the runs.
function stateOf(one, open) {
  if (!open) return one.status;
  if (open.length) return isGoing(open) ? one.status : "waiting";
  return one.status === "running" ? "ended" : one.status;
}

function Iteration({ one, metric, isBest, open }) {
  const state = stateOf(one, open);
  const [icon, kind, word] = VERDICTS[one.decision?.verdict] ?? STATES[state] ?? STATES.planned;
  const { result, decision } = one;
  return html`<li
    class="tree-node ${isBest ? "tree-best" : ""}"
    style=${{ marginLeft: `${Math.min(one.depth, DEEPEST) * 20}px` }}
  >
    <div class="tree-head">
      <span class="muted num">${one.number}</span>
      <span class="status status-${kind}">
        <${Icon} name=${icon} size="14" />
        ${word}
      </span>
      ${
        isBest &&
        html`<span class="status status-finished">
          <${Icon} name="trophy" size="14" />
          best
        </span>`
      }
      ${
        result?.mean !== null &&
        result?.mean !== undefined &&
        html`<span class="num tree-value" title=${result.text}>
          <span class="muted">${metric.key}</span> <strong title=${result.mean}>${number(result.mean)}</strong>
          ${
            result.n > 1 &&
            html`<span class="muted">
              ${" "}
              ± ${number(result.std)}, n = ${result.n}
            </span>`
          }
        </span>`
      }
      <span class="muted small tree-when">
        <${Ago} time=${one.ended_at ?? one.started_at} />
      </span>
    </div>
    <p>${one.hypothesis}</p>
    <p class="tree-change">
      ${Object.entries(one.change).map(
        ([name, value]) =>
          html`<code key=${name}>
            ${name}=${text(value)}
          </code>${" "}`,
      )}
      ${!Object.keys(one.change).length && html`<span class="muted small">no changes</span>`}
    </p>
    ${decision && html`<p class="muted">${decision.reason}</p>`}
    ${
      one.run_ids.length > 0 &&
      html`<p class="small">
        ${
          one.run_ids.length === 1
            ? html`<a href=${runAddress(one.run_ids[0])}>Open run</a>`
            : html`<a href=${compareAddress(one.run_ids)}>Compare ${one.run_ids.length} runs</a>`
        }
      </p>`
    }
    <${OpenRuns} runs=${open ?? []} />
  </li>`;
}

const OPEN = "ready,queued,launching,waiting,running";

// Return the unfinished runs of a loop, or null until the server responds.
export function useOpenRuns(wild) {
  const query = { sweep_id: wild?.sweep_id, status: OPEN, sort: "-priority", limit: 200 };
  const { data } = useFetched(wild && !isEnded(wild) && "runs", query, {
    refreshOn: eventTypes("run.status", "run.created", "run.deleted"),
  });
  return data ?? null;
}

const isGoing = (runs) => runs.some(({ status }) => status === "running");

export function waitingText(runs) {
  if (isGoing(runs)) return "Waiting for its runs to end.";
  return runs.length ? "Waiting for its runs to start." : "";
}

const OpenRuns = ({ runs }) =>
  runs.length > 0 &&
  html`<div class="tree-runs">
    <${RunLines} runs=${runs} reasons />
  </div>`;
