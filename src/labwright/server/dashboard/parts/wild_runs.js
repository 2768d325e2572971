// What a loop waits for: the runs of the idea at hand, and of each that does not run yet, why.

import { useFetched, wakesOn } from "../fetched.js";
import { html } from "../ui.js";
import { RunLines } from "./run_line.js";
import { isEnded } from "./wild_verbs.js";

const OPEN = "ready,queued,launching,waiting,running";

// Its runs that have not ended; null until the server has told.
export function useOpenRuns(wild) {
  const query = { sweep_id: wild?.sweep_id, status: OPEN, sort: "-priority", limit: 200 };
  const { data } = useFetched(wild && !isEnded(wild) && "runs", query, { wakes: wakesOn("run.status", "run.created", "run.deleted") });
  return data ?? null;
}

export const isGoing = (runs) => runs.some(({ status }) => status === "running");

export function waitingWords(runs) {
  if (isGoing(runs)) return "Waits for its runs to end.";
  return runs.length ? "Waits for its runs to begin." : "";
}

export const OpenRuns = ({ runs }) => runs.length > 0 && html`<div class="tree-runs"><${RunLines} runs=${runs} reasons /></div>`;
