// The time as a signal: only what shows something that goes on reads it, so only that is drawn again each second.

import { isTerminal } from "../data/store.js";
import { ago, duration, exactTime } from "../format.js";
import { html, signal } from "../view.js";

const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

export const Ago = ({ time }) =>
  html`<time dateTime=${time} title=${exactTime(time)}>
    ${ago(time, now.value)}
  </time>`;

// How long it has been running, or how long it ran.
export function Duration({ run }) {
  if (!run.started_at) return html`<span class="num"></span>`;
  const end = isTerminal(run) && run.ended_at ? Date.parse(run.ended_at) : now.value;
  const seconds = (end - Date.parse(run.started_at)) / 1000;
  return html`<span class="num" title="${seconds.toFixed(3)} s">
    ${duration(isTerminal(run) ? seconds : Math.floor(seconds))}
  </span>`;
}
