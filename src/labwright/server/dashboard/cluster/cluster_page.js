// The cluster: GPUs, cores, Slurm, and the queue.

import { bytes, duration } from "../format.js";
import { html, useState } from "../view.js";
import { post } from "../data/api.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { runAddress } from "../data/router.js";
import { isPerson, mayWrite } from "../data/session.js";
import { useTitle } from "../data/window_title.js";
import { Icon } from "../ui/icon.js";
import { Problem } from "../ui/message.js";
import { Meter } from "../ui/meter.js";
import { Ago } from "../ui/time.js";
import { useVerb } from "../ui/verb.js";
import { Gpus } from "../work/gpus.js";
import { RunLines } from "../work/run_link.js";
import { GpuTraces } from "./gpu_traces.js";

const REFRESH_MS = 3000;
const TYPES = { local_gpu: "Local GPUs", slurm: "Slurm", cpu_only: "No GPU" };
const runs = { refreshOn: eventTypes("run.status", "run.created") };

export default function ClusterPage() {
  useTitle("Cluster");
  const { data, problem, refresh } = useFetched(
    "cluster",
    {},
    { refreshOn: eventTypes("cluster."), every: REFRESH_MS },
  );
  const queue = useFetched("runs", { status: "queued,waiting,launching", limit: 200, sort: "-priority" }, runs);
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  const { cluster } = data;
  return html`<div class="page run-page">
    <header class="run-head">
      <div class="run-title">
        <h1>Cluster</h1>
        <${Health} status=${cluster.status} />
        <${Verbs} cluster=${cluster} refresh=${refresh} />
      </div>
      <${Facts} cluster=${cluster} />
    </header>
    ${
      cluster.gpus.length > 0 &&
      html`<section class="stack" aria-label="GPUs">
        <h2>GPUs</h2>
        <div class="gpu-grid">
          <${Gpus} gpus=${cluster.gpus} />
        </div>
      </section>
      <${GpuTraces} gpus=${cluster.gpus} />`
    }
    ${cluster.partitions.length > 0 && html`<${Partitions} partitions=${cluster.partitions} />`}
    ${cluster.nodes.length > 0 && html`<${Nodes} nodes=${cluster.nodes} />`}
    <section class="stack queue" aria-label="Queue">
      <h2>Queue</h2>
      ${
        queue.data?.length
          ? html`<p class="muted small">Higher priority first, then first come, first served. Sweeps take turns.</p>
          <${RunLines} runs=${queue.data} reasons />`
          : html`<p class="muted">The queue is empty. New runs start immediately.</p>`
      }
    </section>
    <details class="evidence">
      <summary>Detection details</summary>
      <table class="pairs">
        <tbody>
          ${cluster.evidence.map(
            ({ looked_at: what, said }) =>
              html`<tr key=${what}>
                <th scope="row">${what}</th>
                <td>${said}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </details>
  </div>`;
}

const HEALTH = {
  healthy: ["finished", "circle-check"],
  degraded: ["waiting", "triangle-alert"],
  offline: ["failed", "circle-x"],
};

function Health({ status }) {
  const [kind, icon] = HEALTH[status] ?? ["stopped", "circle-question-mark"];
  return html`<span class="status status-${kind}">
    <${Icon} name=${icon} />
    ${status}
  </span>`;
}

function Facts({ cluster }) {
  const { recommended } = cluster;
  const facts = [
    ["Type", TYPES[cluster.type]],
    ["Source", cluster.source === "manual" ? "configured manually" : "detected"],
    ["Host", cluster.head_node],
    cluster.type === "slurm" && ["Nodes", cluster.node_count],
    ["Cores", cluster.cpu_count],
    ["Memory", bytes(cluster.memory_total_mb * 1024 * 1024)],
    ["GPUs", cluster.gpu_count],
    ["Max parallel runs", `${recommended.max_parallel}${cluster.parallel_by_hand ? " (manual)" : ""}`],
    ["gpuwrap", recommended.gpuwrap.replaceAll("_", " ")],
    ["Other users", cluster.shared_machine ? "yes" : "no"],
  ].filter(Boolean);
  return html`<dl class="facts">
    ${facts.map(
      ([name, value]) =>
        html`<div key=${name}>
          <dt>${name}</dt>
          <dd class="num">${value}</dd>
        </div>`,
    )}
    <div>
      <dt>Last detected</dt>
      <dd>
        <${Ago} time=${cluster.last_detected_at} />
      </dd>
    </div>
  </dl>`;
}

function Verbs({ cluster, refresh }) {
  const [busy, run] = useVerb({ refresh });
  const [isOpen, setOpen] = useState(false);
  const act = async (path, body, done) => {
    if (await run(() => post(path, body), { done })) setOpen(false);
  };
  if (!mayWrite()) return null;
  return html`<div class="verbs" role="group" aria-label="Cluster actions">
    <button disabled=${busy} onClick=${() => act("cluster/detect", {}, "Detected again.")}>
      <${Icon} name="rotate-cw" size="14" />
      Detect
    </button>
    ${
      isPerson() &&
      html`<button aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}>
        <${Icon} name="pencil" size="14" />
        Configure manually
      </button>`
    }
  </div>
  ${
    isOpen &&
    html`<${ManualForm}
      cluster=${cluster}
      busy=${busy}
      onSave=${(body) => act("cluster", body, "Saved until the next detection.")}
    />`
  }`;
}

function ManualForm({ cluster, busy, onSave }) {
  const [draft, setDraft] = useState({
    type: cluster.type,
    max_parallel: cluster.parallel_by_hand,
    shared_machine: cluster.shared_machine,
  });
  const submit = (event) => {
    event.preventDefault();
    onSave(draft);
  };
  return html`<form class="card by-hand" onSubmit=${submit} aria-label="Configure manually">
    <label class="field">
      Type
      <select onChange=${(event) => setDraft({ ...draft, type: event.currentTarget.value })}>
        ${Object.entries(TYPES).map(
          ([name, label]) =>
            html`<option value=${name} selected=${name === draft.type}>
              ${label}
            </option>`,
        )}
      </select>
    </label>
    <label class="field">
      Max parallel runs
      <input
        type="number"
        min="1"
        max="100000"
        placeholder=${cluster.parallel_by_hand ? "recommended" : cluster.recommended.max_parallel}
        value=${draft.max_parallel ?? ""}
        onInput=${(event) => setDraft({ ...draft, max_parallel: Number(event.currentTarget.value) || null })}
      />
    </label>
    <label>
      <input
        type="checkbox"
        checked=${draft.shared_machine}
        onChange=${(event) => setDraft({ ...draft, shared_machine: event.currentTarget.checked })}
      />${" "}
      Other users on this machine
    </label>
    <button class="primary" disabled=${busy}>
      Save
    </button>
  </form>`;
}

// Table heads; numeric columns are right-aligned.
const heads = (texts, numbers, more = []) =>
  [...texts, ...numbers, ...more].map(
    (name) =>
      html`<th key=${name} scope="col" class=${numbers.includes(name) ? "num" : ""}>
        ${name}
      </th>`,
  );

const Partitions = ({ partitions }) =>
  html`<section class="stack" aria-label="Partitions">
    <h2>Partitions</h2>
    <div class="wide" tabindex="0" role="region" aria-label="Partitions">
      <table class="grid-table">
        <thead>
          <tr>${heads(["Name", "State"], ["Time limit", "Nodes", "Unhealthy", "Cores", "GPUs"])}</tr>
        </thead>
        <tbody>
          ${partitions.map(
            (one) =>
              html`<tr key=${one.name}>
                <th scope="row">
                  ${one.name}
                  ${one.default ? " (default)" : ""}
                </th>
                <td>${one.state}</td>
                <td class="num">${one.time_limit_seconds ? duration(one.time_limit_seconds) : "none"}</td>
                <td class="num">${one.nodes}</td>
                <td class="num">${one.nodes_unwell}</td>
                <td class="num">${one.cpus}</td>
                <td class="num">${one.gpus}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`;

const NODES_AT_ONCE = 50;

// Nodes, unhealthy ones first, with the project's runs on them.
function Nodes({ nodes }) {
  const { data: active } = useFetched("runs", { status: "running,waiting", limit: 1000 }, runs);
  const [all, setAll] = useState(false);
  const ours = Map.groupBy(active ?? [], (run) => run.node);
  const sorted = [...nodes].sort((a, b) => a.is_well - b.is_well);
  const shown = all ? sorted : sorted.slice(0, NODES_AT_ONCE);
  return html`<section class="stack" aria-label="Nodes">
    <h2>Nodes</h2>
    <div class="wide" tabindex="0" role="region" aria-label="Nodes">
      <table class="grid-table">
        <thead>
          <tr>
            ${heads(["Name", "State", "Partitions"], ["Cores used", "GPUs used", "Memory"], ["Project runs"])}
          </tr>
        </thead>
        <tbody>
          ${shown.map((node) => html`<${NodeRow} key=${node.name} node=${node} runs=${ours.get(node.name) ?? []} />`)}
        </tbody>
      </table>
    </div>
    ${
      shown.length < nodes.length &&
      html`<div>
        <button onClick=${() => setAll(true)}>Show all ${nodes.length} nodes</button>
      </div>`
    }
  </section>`;
}

const NODE_KINDS = {
  idle: ["finished", "circle-check"],
  mixed: ["running", "play"],
  allocated: ["running", "play"],
  completing: ["running", "play"],
};

function NodeRow({ node, runs }) {
  const [kind, icon] = node.is_well
    ? (NODE_KINDS[node.state.replace(/\W+$/, "")] ?? ["stopped", "circle-question-mark"])
    : ["failed", "circle-x"];
  return html`<tr>
    <th scope="row">${node.name}</th>
    <td>
      <span class="status status-${kind}">
        <${Icon} name=${icon} />
        ${node.state}
      </span>
      ${node.reason && html`<span class="muted node-reason">${node.reason}</span>`}
    </td>
    <td>${node.partitions.join(", ")}</td>
    <td class="num">
      <${InUse} used=${node.cpus_allocated} all=${node.cpus} label="Cores used on ${node.name}" />
    </td>
    <td class="num">
      <${InUse} used=${node.gpus_allocated} all=${node.gpus} label="GPUs used on ${node.name}" />
    </td>
    <td class="num">${bytes(node.memory_mb * 1024 * 1024)}</td>
    <td>
      ${runs.map(
        (run, at) =>
          html`${at > 0 && ", "}
          <a key=${run.id} href=${runAddress(run.id)}>
            ${run.name}
          </a>`,
      )}
    </td>
  </tr>`;
}

// Without a total, or if Slurm does not report the use, show only the number.
function InUse({ used, all, label }) {
  if (!all || used === null) return all;
  return html`<span class="node-use">
    <${Meter} value=${used / all} label=${label} />
    ${used} of ${all}
  </span>`;
}
