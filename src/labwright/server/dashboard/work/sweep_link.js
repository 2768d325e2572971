// A sweep by its name, where only its id is at hand. From the list: one that is not there any more is no error.

import { useFetched } from "../data/fetched.js";
import { sweepAddress } from "../data/router.js";
import { number } from "../format.js";
import { html } from "../view.js";
import { StatusBar } from "../ui/meter.js";
import { StatusWord } from "./status.js";

const AMONG = 200; // the newest of the project

export function SweepLink({ id }) {
  const { data } = useFetched("sweeps", { limit: AMONG });
  return html`<a href=${sweepAddress(id)} title=${id}>
    ${data?.find((sweep) => sweep.id === id)?.name ?? id}
  </a>`;
}

// A sweep as one line: what it asks, how far it is, its best so far.

export function SweepLine({ sweep }) {
  const { progress, best, metric } = sweep;
  const ended = (progress.finished ?? 0) + (progress.failed ?? 0) + (progress.stopped ?? 0) + (progress.lost ?? 0);
  return html`<li class="run-line sweep-line">
    <${StatusWord} status=${sweep.status} reason=${sweep.status_reason} />
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
