// The page of one sweep: progress, results and their significance.

import { counted, number, text } from "../format.js";
import { html, useState } from "../view.js";
import { getBlob, saveBlob } from "../data/api.js";
import { useFetched } from "../data/fetched.js";
import { useKeys } from "../data/keyboard.js";
import { compareAddress, go, runAddress } from "../data/router.js";
import { pendingAlerts } from "../data/store.js";
import { useTitle } from "../data/window_title.js";
import { Code } from "../ui/code.js";
import { Copy } from "../ui/copy.js";
import { Icon } from "../ui/icon.js";
import { Problem, HintText } from "../ui/message.js";
import { StatusBar } from "../ui/meter.js";
import { Tabs } from "../ui/tabs.js";
import { Ago } from "../ui/time.js";
import { showError } from "../ui/toast.js";
import { Actor } from "../work/actor.js";
import { Alert } from "../work/alert.js";
import { RunLines } from "../work/run_link.js";
import { StatusLabel } from "../work/status.js";
import { SweepPictures } from "./pictures.js";
import { SweepVerbs } from "./verbs.js";

const CONFIGURATIONS = 500;
const RUNS = 200;
const LOGGED = 12;

export default function SweepPage({ id }) {
  const path = `sweeps/${encodeURIComponent(id)}`;
  const refreshOn = (event) => event.sweep_id === id;
  const sweep = useFetched(path, {}, { refreshOn });
  const hasMetric = Boolean(sweep.data?.metric);
  const results = useFetched(hasMetric && `${path}/results`, { limit: CONFIGURATIONS }, { refreshOn });
  const runs = useFetched("runs", { sweep_id: id, limit: RUNS, archived: "all" }, { refreshOn });
  useKeys({ Escape: () => go("#/sweeps") });
  useTitle(sweep.data?.name ?? "Sweep");
  if (sweep.problem && !sweep.data) return html`<${Problem} error=${sweep.problem} />`;
  if (!sweep.data) return html`<div class="loading" aria-busy="true"></div>`;
  const shown = sweep.data;
  const tabs = [
    {
      name: "overview",
      label: "Overview",
      show: () => html`<${Overview} sweep=${shown} results=${results.data} runs=${runs.data ?? []} />`,
    },
    hasMetric && {
      name: "configurations",
      label: "Configurations",
      show: () => html`<${Configurations} sweep=${shown} results=${results.data} />`,
    },
    { name: "runs", label: "Runs", show: () => html`<${Runs} sweep=${shown} runs=${runs.data} />` },
    { name: "details", label: "Details", show: () => html`<${Details} sweep=${shown} />` },
  ].filter(Boolean);
  return html`<div class="page run-page">
    <${Header} sweep=${shown} refresh=${sweep.refresh} />
    ${pendingAlerts.value
      .filter((alert) => alert.sweep_id === id)
      .map((alert) => html`<${Alert} key=${alert.id} alert=${alert} />`)}
    <${Tabs} tabs=${tabs} label="Sweep" />
  </div>`;
}

function Header({ sweep, refresh }) {
  const { progress } = sweep;
  const counts = ["running", "waiting", "queued", "finished", "failed", "lost", "stopped"]
    .filter((status) => progress[status])
    .map((status) => `${progress[status]} ${status}`);
  return html`<header class="run-head">
    <a class="back" href="#/sweeps">
      <${Icon} name="arrow-left" size="14" />
      Sweeps
    </a>
    <div class="run-title">
      <h1 title=${sweep.name}>${sweep.name}</h1>
      <${StatusLabel} status=${sweep.status} reason=${sweep.status_reason} />
      <${SweepVerbs} sweep=${sweep} refresh=${refresh} />
    </div>
    ${sweep.goal && html`<p>${sweep.goal}</p>`}
    ${sweep.status_reason && html`<p class="run-reason">${sweep.status_reason}</p>`}
    <div class="sweep-progress">
      <${StatusBar} progress=${progress} />
      <span class="muted num">
        ${counted(progress.total, "run")}: ${counts.join(", ") || "none yet"}
      </span>
    </div>
    <dl class="facts">
      <div>
        <dt>Id</dt>
        <dd>
          <${Copy} text=${sweep.id} label="Copy id" />
        </dd>
      </div>
      <div>
        <dt>Method</dt>
        <dd>${sweep.method}</dd>
      </div>
      ${
        sweep.metric &&
        html`<div>
          <dt>Metric</dt>
          <dd>
            ${sweep.metric.key}, ${sweep.metric.goal}
          </dd>
        </div>`
      }
      ${
        sweep.seeds.length > 0 &&
        html`<div>
          <dt>Seeds</dt>
          <dd class="num">${sweep.seeds.length}</dd>
        </div>`
      }
      ${
        sweep.parallel &&
        html`<div>
          <dt>Max parallel runs</dt>
          <dd class="num">${sweep.parallel}</dd>
        </div>`
      }
      <div>
        <dt>Created</dt>
        <dd>
          <${Ago} time=${sweep.created_at} /> by <${Actor} actor=${sweep.created_by} />
        </dd>
      </div>
      ${
        sweep.ended_at &&
        html`<div>
          <dt>Ended</dt>
          <dd>
            <${Ago} time=${sweep.ended_at} />
          </dd>
        </div>`
      }
    </dl>
  </header>`;
}

function Overview({ sweep, results, runs }) {
  if (!sweep.metric)
    return html`<p class="hint-line">This sweep has no metric, so there is no best run. See the Runs tab.</p>`;
  if (!results) return html`<div class="loading" aria-busy="true"></div>`;
  const { best, verdict } = results;
  return html`<div class="sweep-top">
    <div class="card">
      <h2>
        <${Icon} name="trophy" size="14" /> Best so far
      </h2>
      ${
        best
          ? html`<p class="best-value num">
            <strong title=${best.mean}>${number(best.mean)}</strong>
            ${best.n > 1 && html`${" "}<span class="muted">± ${number(best.std)}, n = ${best.n}</span>`}
          </p>
          <p class="names">
            ${Object.entries(best.params).map(
              ([name, value]) =>
                html`<code class="tag" key=${name}>
                  ${name}=${text(value)}
                </code>${" "}`,
            )}
          </p>
          <p>
            <a href=${runAddress(best.run_id)}>Open the best run</a>
          </p>`
          : html`<${NoBest} sweep=${sweep} runs=${runs} />`
      }
    </div>
    <div class="card verdict verdict-${verdict.kind}">
      <h2>Significance</h2>
      <p>
        <${HintText} text=${verdict.text} />
      </p>
    </div>
  </div>
  <${SweepPictures} sweep=${sweep} results=${results} />`;
}

// Finished runs without the metric: it probably has another name or is not logged.
function NoBest({ sweep, runs }) {
  const { key } = sweep.metric;
  const done = runs.filter(({ status }) => status === "finished");
  if (!done.length) return html`<p class="muted">No run has finished with ${key} yet.</p>`;
  const ended = `${counted(done.length, "run")} finished, but none`;
  const logged = [...new Set(done.flatMap(({ summary }) => Object.keys(summary)))];
  if (logged.includes(key))
    return html`<p>
      ${ended} has a finite value of <code>${key}</code>.
    </p>`;
  return html`<p>
    ${ended} logged <code>${key}</code>.
  </p>
  ${
    logged.length > 0 &&
    html`<p>
      Logged metrics:${" "}
      ${logged.slice(0, LOGGED).map(
        (name) =>
          html`<code class="tag" key=${name}>
            ${name}
          </code>${" "}`,
      )}
    </p>`
  }
  <p class="muted">
    Log it in the script:${" "}
    <code>
      ${`import labwright; labwright.log({"`}
      ${key}
      ${`": value}, step=step)`}
    </code>
    . If the script prints <code>${key}=0.5</code>, set <code>key_value = true</code> under${" "}
    <code>[metrics]</code> in${" "}
    <code>labwright.toml</code> and restart the server.
  </p>`;
}

function Runs({ sweep, runs }) {
  if (!runs) return html`<div class="loading" aria-busy="true"></div>`;
  return html`<section class="stack" aria-label="Runs">
    <p>
      <a href="#/runs?sweep=${encodeURIComponent(sweep.id)}">Open in the runs table</a>
      ${runs.length === RUNS && html`<span class="muted"> (newest ${RUNS} shown)</span>`}
    </p>
    ${
      runs.length
        ? html`<${RunLines} runs=${runs} metric=${sweep.metric?.key} reasons />`
        : html`<p class="muted">No runs yet.</p>`
    }
  </section>`;
}

function Details({ sweep }) {
  const given = {
    parameters: sweep.parameters,
    seeds: sweep.seeds,
    max_runs: sweep.max_runs,
    early_stop: sweep.early_stop,
    budget: sweep.budget,
    sampling_seed: sweep.sampling_seed,
  };
  return html`<section class="stack" aria-label="Details">
    ${
      sweep.warnings.length > 0 &&
      html`<ul class="warnings">
        ${sweep.warnings.map(
          (warning) =>
            html`<li>
              <${Icon} name="triangle-alert" size="14" />
              ${warning}
            </li>`,
        )}
      </ul>`
    }
    <h2>Command</h2>
    <${Code} text=${sweep.base_command} language="bash" label="Command" />
    <h2>Search space</h2>
    <${Code} text=${JSON.stringify(given, null, 2)} language="json" label="Parameters" />
  </section>`;
}

// Results by configuration: mean ± std over seeds, best first.

const AT_ONCE = 100;

function Configurations({ sweep, results }) {
  const [limit, setLimit] = useState(AT_ONCE);
  if (!results) return html`<div class="loading" aria-busy="true"></div>`;
  const { configurations } = results;
  const names = [...new Set(configurations.flatMap(({ params }) => Object.keys(params)))];
  const save = () =>
    getBlob(`sweeps/${encodeURIComponent(sweep.id)}/results/export`, { format: "csv" }).then(
      (blob) => saveBlob(blob, `${sweep.name}.csv`),
      showError,
    );
  const best = configurations
    .slice(0, 8)
    .flatMap(({ run_ids: ids }) => ids)
    .slice(0, 50);
  return html`<section class="stack" aria-label="Configurations">
    <div class="controls">
      <a href=${compareAddress(best)}>Compare best runs</a>
      <button onClick=${save}>
        <${Icon} name="download" size="14" />
        Download (CSV)
      </button>
    </div>
    <div class="wide" tabindex="0" role="region" aria-label="Table by configuration">
      <table class="grid-table">
        <thead>
          <tr>
            <th scope="col" class="num">
              #
            </th>
            ${names.map(
              (name) =>
                html`<th scope="col" class="num" key=${name}>
                  ${name}
                </th>`,
            )}
            <th scope="col" class="num">
              ${sweep.metric.key}
            </th>
            <th scope="col" class="num">
              std
            </th>
            <th scope="col" class="num">
              n
            </th>
            <th scope="col">Runs</th>
            <th></th>
          </tr>
        </thead>
        <tbody>
          ${configurations.slice(0, limit).map(
            (one, at) =>
              html`<tr key=${one.config_hash} class=${at === 0 && one.mean !== null ? "best" : ""}>
                <td class="num muted">${at + 1}</td>
                ${names.map(
                  (name) =>
                    html`<td class="num" key=${name}>
                      ${
                        typeof one.params[name] === "number"
                          ? number(one.params[name])
                          : one.params[name] === undefined
                            ? ""
                            : text(one.params[name])
                      }
                    </td>`,
                )}
                <td class="num" title=${one.mean}>
                  <strong>${number(one.mean)}</strong>
                </td>
                <td class="num muted" title=${one.std}>
                  ${one.n > 1 ? `± ${number(one.std)}` : ""}
                </td>
                <td class="num">${one.n}</td>
                <td>
                  <${StatusBar} progress=${{ total: one.run_ids.length, ...one.progress }} />
                </td>
                <td>
                  <a href=${compareAddress(one.run_ids)} aria-label="Runs of configuration ${at + 1}">
                    Runs
                  </a>
                </td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${
      configurations.length > limit &&
      html`<button onClick=${() => setLimit(limit + AT_ONCE)}>
        Show more (${configurations.length - limit} left)
      </button>`
    }
    ${
      results.total > configurations.length &&
      html`<p class="muted">
        Best ${configurations.length} of ${results.total}. The download contains all.
      </p>`
    }
  </section>`;
}
