// Compare several runs: curves, a table, a scatter plot.

import { counted, number, text } from "../format.js";
import { html, signal, useEffect, useMemo, useState } from "../view.js";
import { isAborted } from "../data/api.js";
import { useFetched } from "../data/fetched.js";
import { compareAddress, go, route, runAddress, setQuery } from "../data/router.js";
import { recall, remember } from "../data/storage.js";
import { knownRun, loadRun, putRun, resync, watchRun } from "../data/store.js";
import { useTitle } from "../data/window_title.js";
import { Icon } from "../ui/icon.js";
import { Message, Problem } from "../ui/message.js";
import { Tabs } from "../ui/tabs.js";
import { showError } from "../ui/toast.js";
import { ChartControls, chartOptions } from "../charts/chart_options.js";
import { colorAt } from "../charts/plot.js";
import { metricsOf, nameOf, valueOf, withoutSeed } from "../work/run_columns.js";
import { Status } from "../work/status.js";
import { CompareChart } from "./curves.js";
import { Scatter } from "./scatter.js";

const AT_ONCE = 24;
const mean = signal(recall("mean", true));

export default function ComparePage() {
  useTitle("Compare");
  const ids = useMemo(
    () => (route.value.query.get("runs") ?? "").split(",").filter(Boolean).slice(0, 200),
    [route.value.query.get("runs")],
  );
  const { runs, absent, problem } = useRuns(ids);
  if (!ids.length) return html`<${Nothing} />`;
  if (ids.every((id) => absent.includes(id))) return html`<${AllGone} />`;
  if (!runs.length && problem) return html`<${Problem} error=${problem} />`;
  if (!runs.length) return html`<div class="loading" aria-busy="true"></div>`;
  return html`<${Compared} runs=${runs} />`;
}

// Return the runs, the ids that do not exist, and the first other error.
function useRuns(ids) {
  const [failures, setFailures] = useState([]);
  const connections = resync.value; // load missing runs again after a reconnect
  useEffect(() => {
    const abort = new AbortController();
    const missing = ids.filter((id) => !knownRun(id));
    const load = (id) =>
      loadRun(id, abort.signal).then(
        () => null,
        (error) => ({ id, error }),
      );
    Promise.all(missing.map(load)).then((answers) => {
      const failed = answers.filter((answer) => answer && !isAborted(answer.error));
      failed.forEach(({ error }) => error.status && showError(error));
      setFailures(failed);
    });
    const stops = ids.map(watchRun);
    return () => {
      abort.abort();
      stops.forEach((stop) => stop());
    };
  }, [ids, connections]);
  const isAbsent = ({ error }) => error.status === 404;
  return {
    runs: ids.map((id) => knownRun(id)?.value).filter(Boolean),
    absent: failures.filter(isAbsent).map(({ id }) => id),
    problem: failures.find((failure) => !isAbsent(failure))?.error,
  };
}

const AllGone = () =>
  html`<${Message} icon="git-compare" title="These runs no longer exist">
    <p class="muted">
      They were deleted or belong to another project. Choose others in the <a href="#/runs">runs table</a>.
    </p>
  </${Message}>`;

function Nothing() {
  const { data } = useFetched("runs", { status: "finished", limit: 5 });
  const offer = () => {
    data.forEach((run) => knownRun(run.id) || putRun(run));
    go(compareAddress(data.map(({ id }) => id)));
  };
  return html`<div class="page">
    <header class="page-head">
      <h1>Compare</h1>
    </header>
    <${Message} icon="git-compare" title="Choose runs to compare">
      <p class="muted">
        Select them in the <a href="#/runs">runs table</a> (<kbd>x</kbd> selects a row), then click Compare.
      </p>
      ${data?.length > 1 && html`<button onClick=${offer}>Compare the last ${data.length} finished runs</button>`}
    </${Message}>
  </div>`;
}

function Compared({ runs }) {
  const names = runs.map(({ id }) => id).join();
  const colors = useMemo(() => colorsOf(runs), [names, mean.value]);
  const metrics = [...new Set(runs.flatMap(metricsOf))].sort();
  const params = [
    ...new Set(runs.flatMap((run) => [...Object.keys(run.params), ...(run.seed === null ? [] : ["seed"])])),
  ].sort();
  const columns = [...params.map((key) => `p:${key}`), ...metrics.map((key) => `m:${key}`), "duration"];
  const tabs = [
    {
      name: "curves",
      label: "Curves",
      show: () => html`<${Curves} runs=${runs} metrics=${metrics} colors=${colors} />`,
    },
    {
      name: "table",
      label: "Table",
      show: () => html`<${Differences} runs=${runs} params=${params} metrics=${metrics} colors=${colors} />`,
    },
    {
      name: "scatter",
      label: "Scatter",
      show: () =>
        html`<${Scatter} runs=${runs} columns=${columns.filter((column) => column !== "duration")} colors=${colors} />`,
    },
  ];
  const without = (id) =>
    setQuery({
      runs: runs
        .map((run) => run.id)
        .filter((other) => other !== id)
        .join(","),
    });
  return html`<div class="page run-page">
    <header class="run-head">
      <h1>Compare ${counted(runs.length, "run")}</h1>
      <ul class="legend">
        ${runs.map(
          (run) =>
            html`<li key=${run.id}>
              <span class="swatch" style=${{ background: `var(${colors.get(run.id)})` }}></span>
              <a href=${runAddress(run.id)} title=${run.name}>
                ${run.name}
              </a>
              <button class="bare" aria-label="Remove ${run.name}" onClick=${() => without(run.id)}>
                <${Icon} name="x" size="12" />
              </button>
            </li>`,
        )}
      </ul>
    </header>
    <${Tabs} tabs=${tabs} label="Comparison" />
  </div>`;
}

// Runs that differ only in their seed share a color while they are drawn as one band.
function colorsOf(runs) {
  const groups = new Map();
  return new Map(
    runs.map((run) => {
      const origin = run.sweep_id ?? withoutSeed(run.command);
      const group = mean.value && run.config_hash ? `${run.config_hash} ${origin}` : run.id;
      if (!groups.has(group)) groups.set(group, colorAt(groups.size));
      return [run.id, groups.get(group)];
    }),
  );
}

function Curves({ runs, metrics, colors }) {
  const zoom = useMemo(() => signal(null), [chartOptions.value.by]);
  const [query, setQueryText] = useState("");
  const [limit, setLimit] = useState(AT_ONCE);
  const found = metrics.filter((key) => key.toLowerCase().includes(query.toLowerCase()));
  const setMean = (on) => {
    mean.value = on;
    remember("mean", on);
  };
  if (!metrics.length) return html`<${Message} icon="git-compare" title="These runs have no metrics" />`;
  return html`<section aria-label="Curves">
    <header class="section-head">
      ${
        metrics.length > 6 &&
        html`<input
          type="search"
          class="small-input"
          placeholder="Filter metrics"
          aria-label="Filter metrics"
          onInput=${(event) => setQueryText(event.currentTarget.value)}
        />`
      }
      <${ChartControls} zoom=${zoom}>
        <label>
          <input
            type="checkbox"
            checked=${mean.value}
            onChange=${(event) => setMean(event.currentTarget.checked)}
          />${" "}
          Mean ± std over seeds
        </label>
      </${ChartControls}>
    </header>
    <div class="chart-grid">
      ${found.slice(0, limit).map(
        (metric) =>
          html`<${CompareChart}
            key=${metric}
            metric=${metric}
            runs=${runs}
            colors=${colors}
            mean=${mean.value}
            zoom=${zoom}
          />`,
      )}
    </div>
    ${
      found.length > limit &&
      html`<button onClick=${() => setLimit(limit + AT_ONCE)}>
        Show ${Math.min(AT_ONCE, found.length - limit)} more of ${found.length - limit}
      </button>`
    }
  </section>`;
}

function Differences({ runs, params, metrics, colors }) {
  const [onlyDifferent, setOnly] = useState(false);
  const rows = [...params.map((key) => `p:${key}`), ...metrics.map((key) => `m:${key}`)];
  const differs = (column) => new Set(runs.map((run) => JSON.stringify(valueOf(run, column)))).size > 1;
  return html`<section class="stack" aria-label="Table">
    <label>
      <input
        type="checkbox"
        checked=${onlyDifferent}
        onChange=${(event) => setOnly(event.currentTarget.checked)}
      />${" "}
      Only differences
    </label>
    <div class="wide" tabindex="0" role="region" aria-label="Parameters and results">
      <table class="grid-table">
        <thead>
          <tr>
            <th></th>
            ${runs.map(
              (run) =>
                html`<th scope="col" key=${run.id}>
                  <span class="swatch" style=${{ background: `var(${colors.get(run.id)})` }}></span>${" "}
                  <a href=${runAddress(run.id)}>${run.name}</a>
                </th>`,
            )}
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">status</th>
            ${runs.map(
              (run) =>
                html`<td key=${run.id}>
                  <${Status} run=${run} />
                </td>`,
            )}
          </tr>
          ${rows
            .filter((column) => !onlyDifferent || differs(column))
            .map(
              (column) =>
                html`<tr key=${column} class=${column.startsWith("p:") && differs(column) ? "differs" : ""}>
                  <th scope="row" title=${nameOf(column)}>
                    ${nameOf(column)}
                  </th>
                  ${runs.map((run) => html`<${Cell} key=${run.id} value=${valueOf(run, column)} />`)}
                </tr>`,
            )}
        </tbody>
      </table>
    </div>
  </section>`;
}

const Cell = ({ value }) =>
  html`<td class="num" title=${value === undefined ? undefined : text(value)}>
    ${typeof value === "number" ? number(value) : value === undefined ? "" : text(value)}
  </td>`;
