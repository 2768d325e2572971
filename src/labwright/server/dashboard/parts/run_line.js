// A run as one line, live: for lists that are not the big table.

import { number } from "../format.js";
import { progressOf } from "../progress.js";
import { runAddress } from "../router.js";
import { isTerminal, knownRun, putRun, watchRun } from "../store.js";
import { batch, html, useEffect, useMemo } from "../ui.js";
import { Meter } from "./meter.js";
import { useNames } from "./run_link.js";
import { reasonOf, Status } from "./status.js";
import { Ago, Duration } from "./time.js";

export function RunLines({ runs, metric, reasons = false }) {
  useMemo(() => batch(() => runs.forEach((run) => knownRun(run.id) || putRun(run))), [runs]);
  return html`<ul class="lines">${runs.map(({ id }) => html`<${RunLine} key=${id} id=${id} metric=${metric} reasons=${reasons} />`)}</ul>`;
}

function RunLine({ id, metric, reasons }) {
  const run = knownRun(id).value;
  useEffect(() => watchRun(id), [id]);
  const done = isTerminal(run) ? null : progressOf(run);
  const reason = reasons ? reasonOf(run) : "";
  const named = useNames(reason);
  return html`<li class="run-line">
    <${Status} run=${run} />
    <a href=${runAddress(id)} title=${run.name}>${run.name}</a>
    ${done !== null && html`<${Meter} value=${done} label="Progress" />`}
    ${reason && html`<span class="muted run-line-why" title=${reason}>${named}</span>`}
    ${metric && run.summary[metric] && html`<span class="num" title="${metric} = ${run.summary[metric].last}"><span class="muted">${metric}</span> ${number(run.summary[metric].last)}</span>`}
    <span class="num muted run-line-time">${run.started_at && !isTerminal(run) ? html`<${Duration} run=${run} />` : html`<${Ago} time=${run.ended_at ?? run.created_at} />`}</span>
  </li>`;
}
