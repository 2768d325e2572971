// The GPUs of this machine: holder, utilization and memory.

import { cardMemory } from "../format.js";
import { html } from "../view.js";
import { Meter } from "../ui/meter.js";
import { RunLink } from "./run_link.js";

export const Gpus = ({ gpus }) =>
  html`<ul class="gpus">
    ${gpus.map(
      (gpu) =>
        html`<li key=${gpu.uuid} class="gpu">
          <div class="gpu-name">
            <strong>GPU ${gpu.index}</strong>${" "}
            <span class="muted" title=${gpu.uuid}>
              ${gpu.name}
            </span>
          </div>
          <${Holder} gpu=${gpu} />
          <label class="gpu-meter">
            Utilization <${Meter} value=${gpu.utilization / 100} label="Utilization" />
            <span class="num">${gpu.utilization} %</span>
          </label>
          <label class="gpu-meter">
            Memory <${Meter} value=${gpu.memory_used_mb / gpu.memory_total_mb} label="Memory used" />
            <span class="num">
              ${cardMemory(gpu.memory_used_mb)} of ${cardMemory(gpu.memory_total_mb)}
            </span>
          </label>
        </li>`,
    )}
  </ul>`;

function Holder({ gpu }) {
  const { lease, processes } = gpu;
  if (lease?.run_id)
    return html`<div class="gpu-holder">
      used by <${RunLink} id=${lease.run_id} /> <span class="muted">${lease.user}</span>
    </div>`;
  if (lease) return html`<div>used by ${lease.user || "another process"}</div>`;
  if (processes.length) {
    const names = processes.map(({ user, name, pid }) => `${user || "unknown"}: ${name || pid}`).join(", ");
    return html`<div class="gpu-foreign" title=${names}>
      in use without a lease: ${names}
    </div>`;
  }
  return html`<div class="muted">free</div>`;
}
