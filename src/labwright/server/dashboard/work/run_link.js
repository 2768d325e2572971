// A run by its name, where only its id is at hand: alone, or within a sentence.

import { get } from "../data/api.js";
import { runAddress } from "../data/router.js";
import { isTerminal, knownRun, putRun, resync, watchRun } from "../data/store.js";
import { number } from "../format.js";
import { batch, html, signal, useEffect, useMemo } from "../view.js";
import { Meter } from "../ui/meter.js";
import { Ago, Duration } from "../ui/time.js";
import { progressOf } from "./progress.js";
import { reasonOf, Status } from "./status.js";

const ID = /(run-[0-9a-z]{10})\b/;
const GATHER_MS = 50; // a page names many at a time: they are asked for with one question
const AT_ONCE = 200;

const answers = new Map(); // id → signal of what the server said: the run, or null where there is none
const wanted = new Set();

export function RunLink({ id }) {
  const [run] = useRuns([id]);
  if (run === null) return html`<code>${id}</code>`; // deleted, or of another project
  return html`<a href=${runAddress(id)} title=${id}>
    ${run?.name ?? id}
  </a>`;
}

const parts = (words) => words.split(ID); // every second one is an id

export const WithRuns = ({ words }) =>
  parts(words).map((part, at) => (at % 2 ? html`<${RunLink} key=${at} id=${part} />` : part));

// For lists, where a link a line to each of the same few runs would be too much.
export function useNames(words) {
  const found = parts(words);
  const runs = useRuns(found.filter((_, at) => at % 2));
  return found.map((part, at) => (at % 2 ? (runs[(at - 1) / 2]?.name ?? part) : part)).join("");
}

// As the store has them, else as the server says; undefined until it did.
function useRuns(ids) {
  const again = resync.value; // what could not be had while the server was gone is asked for again
  useEffect(() => ids.filter((id) => !knownRun(id)).forEach(want), [ids.join(), again]);
  return ids.map((id) => knownRun(id)?.value ?? answerOf(id).value);
}

function answerOf(id) {
  if (!answers.has(id)) answers.set(id, signal(undefined));
  return answers.get(id);
}

function want(id) {
  if (!wanted.size) setTimeout(askForWanted, GATHER_MS);
  wanted.add(id);
}

async function askForWanted() {
  const ids = [...wanted].slice(0, AT_ONCE);
  ids.forEach((id) => wanted.delete(id));
  if (wanted.size) setTimeout(askForWanted, GATHER_MS);
  try {
    const runs = await get("runs", { ids: ids.join(","), archived: "all", limit: AT_ONCE });
    batch(() => {
      runs.forEach((run) => knownRun(run.id) || putRun(run));
      ids.forEach((id) => (answerOf(id).value = runs.find((run) => run.id === id) ?? null));
    });
  } catch (error) {
    if (error.status && error.status !== 401) throw error; // else the banner or the sign-in tells; asked again after it
  }
}

// A run as one line, live: for lists that are not the big table.

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
      ${run.started_at && !isTerminal(run) ? html`<${Duration} run=${run} />` : html`<${Ago} time=${run.ended_at ?? run.created_at} />`}
    </span>
  </li>`;
}
