// Relative times and durations. The clock is a signal, so that only components that show it are drawn every second.

import { ago, duration, exactTime } from "../format.js";
import { html, signal } from "../view.js";
import { isTerminal } from "../data/store.js";

const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

export const Ago = ({ time }) =>
  html`<time dateTime=${time} title=${exactTime(time)}>
    ${ago(time, now.value)}
  </time>`;

// How long a run has been running, or how long it took.
export function Duration({ run }) {
  if (!run.started_at) return html`<span class="num"></span>`;
  const end = isTerminal(run) && run.ended_at ? Date.parse(run.ended_at) : now.value;
  const seconds = (end - Date.parse(run.started_at)) / 1000;
  return html`<span class="num" title="${seconds.toFixed(3)} s">
    ${duration(isTerminal(run) ? seconds : Math.floor(seconds))}
  </span>`;
}
