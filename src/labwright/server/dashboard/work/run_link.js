// Links to runs by name, if only the id is known; and runs as lines of a list.

import { number } from "../format.js";
import { batch, html, signal, useEffect, useMemo } from "../view.js";
import { get } from "../data/api.js";
import { runAddress } from "../data/router.js";
import { isTerminal, knownRun, putRun, resync, watchRun } from "../data/store.js";
import { Meter } from "../ui/meter.js";
import { Ago, Duration } from "../ui/time.js";
import { progressOf } from "./progress.js";
import { reasonOf, Status } from "./status.js";

const ID = /(run-[0-9a-z]{10})\b/;
const GATHER_MS = 50; // collect ids for one request
const AT_ONCE = 200;

const answers = new Map(); // id → signal with the run, or null if it does not exist
const requested = new Set();

export function RunLink({ id }) {
  const [run] = useRuns([id]);
  if (run === null) return html`<code>${id}</code>`; // deleted, or from another project
  return html`<a href=${runAddress(id)} title=${id}>
    ${run?.name ?? id}
  </a>`;
}

const parts = (text) => text.split(ID); // every second part is an id

export const LinkedRuns = ({ text }) =>
  parts(text).map((part, at) => (at % 2 ? html`<${RunLink} key=${at} id=${part} />` : part));

// Replace ids by names without links, for lists.
export function useNames(text) {
  const found = parts(text);
  const runs = useRuns(found.filter((_, at) => at % 2));
  return found.map((part, at) => (at % 2 ? (runs[(at - 1) / 2]?.name ?? part) : part)).join("");
}

// Return runs from the store or the server; undefined until they are known.
function useRuns(ids) {
  const again = resync.value; // request missing runs again after a reconnect
  useEffect(() => ids.filter((id) => !knownRun(id)).forEach(request), [ids.join(), again]);
  return ids.map((id) => knownRun(id)?.value ?? answerOf(id).value);
}

function answerOf(id) {
  if (!answers.has(id)) answers.set(id, signal(undefined));
  return answers.get(id);
}

function request(id) {
  if (!requested.size) setTimeout(fetchRequested, GATHER_MS);
  requested.add(id);
}

async function fetchRequested() {
  const ids = [...requested].slice(0, AT_ONCE);
  ids.forEach((id) => requested.delete(id));
  if (requested.size) setTimeout(fetchRequested, GATHER_MS);
  try {
    const runs = await get("runs", { ids: ids.join(","), archived: "all", limit: AT_ONCE });
    batch(() => {
      runs.forEach((run) => knownRun(run.id) || putRun(run));
      ids.forEach((id) => (answerOf(id).value = runs.find((run) => run.id === id) ?? null));
    });
  } catch (error) {
    // Otherwise the banner or the sign-in page shows it; retried later.
    if (error.status && error.status !== 401) throw error;
  }
}

export function RunLines({ runs, metric, reasons = false }) {
  useMemo(() => batch(() => runs.forEach((run) => knownRun(run.id) || putRun(run))), [runs]);
  return html`<ul class="lines">
    ${runs.map(({ id }) => html`<${RunLine} key=${id} id=${id} metric=${metric} reasons=${reasons} />`)}
  </ul>`;
}

function RunLine({ id, metric, reasons }) {
  const run = knownRun(id).value;
  useEffect(() => watchRun(id), [id]);
  const done = isTerminal(run) ? null : progressOf(run);
  const reason = reasons ? reasonOf(run) : "";
  const named = useNames(reason);
  return html`<li class="run-line">
    <${Status} run=${run} />
    <a href=${runAddress(id)} title=${run.name}>
      ${run.name}
    </a>
    ${done !== null && html`<${Meter} value=${done} label="Progress" />`}
    ${
      reason &&
      html`<span class="muted run-line-why" title=${reason}>
        ${named}
      </span>`
    }
    ${
      metric &&
      run.summary[metric] &&
      html`<span class="num" title="${metric} = ${run.summary[metric].last}">
        <span class="muted">${metric}</span> ${number(run.summary[metric].last)}
      </span>`
    }
    <span class="num muted run-line-time">
      ${
        run.started_at && !isTerminal(run)
          ? html`<${Duration} run=${run} />`
          : html`<${Ago} time=${run.ended_at ?? run.created_at} />`
      }
    </span>
  </li>`;
}
