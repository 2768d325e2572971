// A link to a sweep by name, if only the id is known; and a sweep as a line. Uses the list: a deleted sweep is not an
// error.

import { number } from "../format.js";
import { html } from "../view.js";
import { useFetched } from "../data/fetched.js";
import { sweepAddress } from "../data/router.js";
import { StatusBar } from "../ui/meter.js";
import { StatusLabel } from "./status.js";

const AMONG = 200; // newest sweeps to search

export function SweepLink({ id }) {
  const { data } = useFetched("sweeps", { limit: AMONG });
  return html`<a href=${sweepAddress(id)} title=${id}>
    ${data?.find((sweep) => sweep.id === id)?.name ?? id}
  </a>`;
}

export function SweepLine({ sweep }) {
  const { progress, best, metric } = sweep;
  const ended = (progress.finished ?? 0) + (progress.failed ?? 0) + (progress.stopped ?? 0) + (progress.lost ?? 0);
  return html`<li class="run-line sweep-line">
    <${StatusLabel} status=${sweep.status} reason=${sweep.status_reason} />
    <a href=${sweepAddress(sweep.id)} title=${sweep.goal || sweep.name}>
      ${sweep.name}
    </a>
    <span class="muted small">${sweep.method}</span>
    <${StatusBar} progress=${progress} />
    <span class="num muted sweep-line-count">
      ${ended} of ${progress.total}
    </span>
    <span class="num sweep-line-best">
      ${
        best &&
        metric &&
        html`<span class="muted">${metric.key}</span> <strong title=${best.mean}>${number(best.mean)}</strong>
        ${best.n > 1 && html`<span class="muted"> ± ${number(best.std)}</span>`}`
      }
    </span>
  </li>`;
}
