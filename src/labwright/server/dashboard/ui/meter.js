import { html } from "../view.js";

// A bar from 0 to 1 with an accessible label.
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

const STATUSES = ["finished", "running", "launching", "waiting", "queued", "ready", "failed", "lost", "stopped"];

// One bar for many runs, with a part per status.
export function StatusBar({ progress }) {
  const total = progress.total || 1;
  const parts = STATUSES.filter((status) => progress[status]);
  const text = parts.map((status) => `${progress[status]} ${status}`).join(", ") || "no runs yet";
  return html`<span class="status-bar" role="img" aria-label=${text} title=${text}>
    ${parts.map(
      (status) =>
        html`<span key=${status} class="part-${status}" style=${{ flexGrow: progress[status] / total }}></span>`,
    )}
  </span>`;
}
