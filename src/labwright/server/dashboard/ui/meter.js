import { html } from "../view.js";

// A bar from 0 to 1, with its name for those who cannot see it.
export function Meter({ value, label, kind = "" }) {
  const percent = Math.round(Math.max(0, Math.min(1, value)) * 100);
  return html`<span
    class="meter ${kind}"
    role="meter"
    aria-label=${label}
    aria-valuenow=${percent}
    aria-valuemin="0"
    aria-valuemax="100"
    title="${label}: ${percent} %"
  >
    <span class="meter-fill" style=${{ width: `${percent}%` }}></span>
  </span>`;
}

const SHOWN = ["finished", "running", "launching", "waiting", "queued", "ready", "failed", "lost", "stopped"];

// What became of many runs, as one bar with a part for each status.
export function StatusBar({ progress }) {
  const total = progress.total || 1;
  const parts = SHOWN.filter((status) => progress[status]);
  const words = parts.map((status) => `${progress[status]} ${status}`).join(", ") || "no runs yet";
  return html`<span class="status-bar" role="img" aria-label=${words} title=${words}>
    ${parts.map(
      (status) =>
        html`<span key=${status} class="part-${status}" style=${{ flexGrow: progress[status] / total }}></span>`,
    )}
  </span>`;
}
