import { now } from "../clock.js";
import { ago, duration, exactTime } from "../format.js";
import { isTerminal } from "../store.js";
import { html } from "../ui.js";

export const Ago = ({ time }) => html`<time dateTime=${time} title=${exactTime(time)}>${ago(time, now.value)}</time>`;

// How long it has been running, or how long it ran.
export function Duration({ run }) {
  if (!run.started_at) return html`<span class="num"></span>`;
  const end = isTerminal(run) && run.ended_at ? Date.parse(run.ended_at) : now.value;
  const seconds = (end - Date.parse(run.started_at)) / 1000;
  return html`<span class="num" title="${seconds.toFixed(3)} s">${duration(isTerminal(run) ? seconds : Math.floor(seconds))}</span>`;
}
