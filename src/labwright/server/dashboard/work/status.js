// A status has one color, one icon and one word everywhere. The colors are in style/base.css.

import { html } from "../view.js";
import { Icon } from "../ui/icon.js";

const ICONS = {
  ready: "circle-dashed",
  queued: "list",
  launching: "loader",
  waiting: "hourglass",
  running: "circle-play",
  finished: "circle-check",
  failed: "circle-x",
  stopped: "circle-slash",
  lost: "circle-question-mark",
};

// For sweeps, plans and loops: icon and color.
const WORDS = {
  draft: ["circle-dashed", "ready"],
  running: ["circle-play", "running"],
  executing: ["circle-play", "running"],
  waiting: ["hourglass", "waiting"],
  paused: ["circle-pause", "waiting"],
  completed: ["circle-check", "finished"],
  approved: ["check", "finished"],
  failed: ["circle-x", "failed"],
  stopped: ["circle-slash", "stopped"],
  archived: ["archive", "stopped"],
};

export function StatusLabel({ status, reason }) {
  const [icon, kind] = WORDS[status] ?? ["circle-question-mark", "stopped"];
  return html`<span class="status status-${kind}" title=${reason || undefined}>
    <${Icon} name=${icon} />
    <span class="status-word">${status}</span>
  </span>`;
}

export function Status({ run }) {
  const { status } = run;
  const word = run.stop_requested && status === "running" ? "stopping" : status;
  return html`<span class="status status-${status}" title=${run.status_reason || undefined}>
    <${Icon} name=${ICONS[status] ?? "circle-question-mark"} />
    <span class="status-word">${word}</span>
  </span>`;
}

// A short text that says why a run ended or waits.
export function reasonOf(run) {
  const parts = [];
  if (run.status_reason && run.status_reason !== "exit_code") parts.push(run.status_reason.replaceAll("_", " "));
  else if (run.error && !/^exit code/i.test(run.error)) parts.push(run.error);
  if (run.signal) parts.push(`signal ${run.signal}`);
  else if (run.exit_code) parts.push(`exit ${run.exit_code}`);
  return parts.join(" · ");
}
