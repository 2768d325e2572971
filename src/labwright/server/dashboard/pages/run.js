// One run: what it is, how it goes, what it says.

import { get, isAborted } from "../api.js";
import { bytes, duration, exactTime, text } from "../format.js";
import { useKeys } from "../keyboard.js";
import { Alert } from "../parts/alert.js";
import { Charts } from "../parts/charts.js";
import { Copy } from "../parts/copy.js";
import { Icon } from "../parts/icon.js";
import { Log } from "../parts/log.js";
import { Problem } from "../parts/message.js";
import { RunVerbs } from "../parts/run_verbs.js";
import { reasonOf, Status } from "../parts/status.js";
import { Ago, Duration } from "../parts/time.js";
import { go, runAddress } from "../router.js";
import { knownRun, loadRun, pendingAlerts, reloads, watchRun } from "../store.js";
import { html, useEffect, useState } from "../ui.js";

export default function RunPage({ id }) {
  const [problem, setProblem] = useState(null);
  const loads = reloads.value;
  const load = (abort) => loadRun(id, abort).then((found) => found.value.id !== id && go(runAddress(found.value.id)));
  const [, again] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    setProblem(null);
    load(abort.signal).then(
      () => again((count) => count + 1),
      (error) => !isAborted(error) && setProblem(error),
    );
    return () => abort.abort();
  }, [id, loads]);
  useEffect(() => watchRun(id), [id]);
  useKeys({ Escape: () => go("#/runs") });

  const run = knownRun(id)?.value;
  const { name, status } = run ?? {};
  useEffect(() => {
    document.title = run ? `${name} · ${status} · Labwright` : "Run · Labwright";
  }, [name, status]);
  if (problem && !run) return html`<${Problem} error=${problem} />`;
  if (!run) return html`<div class="loading" aria-busy="true"></div>`;
  return html`<div class="page run-page" key=${id}>
    <${Header} run=${run} />
    <${Alerts} run=${run} />
    <${Charts} run=${run} />
    <${Log} run=${run} />
    <${Details} run=${run} />
  </div>`;
}

function Header({ run }) {
  const reason = reasonOf(run);
  return html`<header class="run-head">
    <a class="back" href="#/runs"><${Icon} name="arrow-left" size="14" />Runs</a>
    <div class="run-title">
      <h1 title=${run.name}>${run.name}</h1>
      <${Status} run=${run} />
      <${RunVerbs} run=${run} />
    </div>
    ${(run.deleted || reason) && html`<p class="run-reason run-reason-${run.status}">${run.deleted ? "This run was deleted." : reason}</p>`}
    <dl class="facts">
      <${Fact} name="Id"><${Copy} text=${run.id} label="Copy the id" /></${Fact}>
      <${Fact} name="Duration"><${Duration} run=${run} /></${Fact}>
      <${Fact} name="Created"><${Ago} time=${run.created_at} /> by ${run.created_by}</${Fact}>
      ${run.ended_at && html`<${Fact} name="Ended"><${Ago} time=${run.ended_at} /></${Fact}>`}
      ${run.exit_code !== null && html`<${Fact} name="Exit"><span class="num">${run.exit_code}</span></${Fact}>`}
      ${run.gpu_uuids.length > 0 && html`<${Fact} name="GPUs"><span title=${run.gpu_uuids.join(", ")}>${run.gpu_uuids.length}</span></${Fact}>`}
      ${run.attempt > 1 && html`<${Fact} name="Attempt">${run.attempt}</${Fact}>`}
      ${run.node && html`<${Fact} name="Node">${run.node}</${Fact}>`}
      ${run.parent_run_id && html`<${Fact} name="Rerun of"><a href=${runAddress(run.parent_run_id)}>${run.parent_run_id}</a></${Fact}>`}
      ${run.tags.length > 0 && html`<${Fact} name="Tags">${run.tags.map((tag) => html`<span class="tag">${tag}</span>`)}</${Fact}>`}
      ${run.archived && html`<${Fact} name="List">archived</${Fact}>`}
    </dl>
  </header>`;
}

const Fact = ({ name, children }) => html`<div><dt>${name}</dt><dd>${children}</dd></div>`;

function Alerts({ run }) {
  const [answered, setAnswered] = useState([]);
  const open = pendingAlerts.value.filter((alert) => alert.run_id === run.id);
  const openIds = open.map((alert) => alert.id).join();
  useEffect(() => {
    const abort = new AbortController();
    get("alerts", { run_id: run.id, status: "resolved", limit: 20 }, abort.signal).then(setAnswered, () => {});
    return () => abort.abort();
  }, [run.id, openIds]);
  if (!open.length && !answered.length) return null;
  return html`<section class="alerts" aria-label="Alerts">
    ${open.map((alert) => html`<${Alert} key=${alert.id} alert=${alert} />`)}
    ${answered.length > 0 && html`<details><summary class="muted">${answered.length} answered ${answered.length === 1 ? "alert" : "alerts"}</summary>
      ${answered.map((alert) => html`<${Alert} key=${alert.id} alert=${alert} />`)}</details>`}
  </section>`;
}

function Details({ run }) {
  const names = [...Object.keys(run.env), ...run.secret_env].sort();
  const params = Object.entries({ ...run.params, ...(run.seed !== null && { seed: run.seed }) });
  return html`<section class="details" aria-label="Details">
    ${run.warnings.length > 0 && html`<div class="card"><h2>Warnings</h2>
      <ul class="warnings">${run.warnings.map((warning) => html`<li><${Icon} name="triangle-alert" size="14" />${warning}</li>`)}</ul></div>`}
    <div class="card"><h2>Command</h2>
      <pre class="command">${run.command}</pre>
      <p class="muted small">in <code>${run.workdir}</code></p></div>
    <div class="card"><h2>Parameters</h2>
      ${params.length ? html`<${Pairs} pairs=${params} />` : html`<p class="muted">None given. <code>labwright run --param lr=0.1 -- …</code> records one.</p>`}</div>
    <div class="card"><h2>Environment</h2>
      ${names.length ? html`<p class="names">${names.map((name) => html`<code class="tag" key=${name}>${name}</code> `)}</p>` : html`<p class="muted">Nothing added to the server's.</p>`}</div>
    <div class="card"><h2>Facts</h2><${Pairs} pairs=${factsOf(run)} /></div>
    ${run.notes && html`<div class="card"><h2>Notes</h2><p class="notes">${run.notes}</p></div>`}
  </section>`;
}

const Pairs = ({ pairs }) => html`<table class="pairs"><tbody>${pairs.map(
  ([name, value]) => html`<tr key=${name}><th scope="row">${name}</th><td>${text(value)}</td></tr>`,
)}</tbody></table>`;

function factsOf(run) {
  const { usage, snapshot } = run;
  return [
    ["queued", exactTime(run.queued_at)],
    ["started", exactTime(run.started_at)],
    ["ended", exactTime(run.ended_at)],
    ["processor time", usage.cpu_seconds === undefined ? "" : duration(usage.cpu_seconds)],
    ["most memory", usage.max_memory_mb ? bytes(usage.max_memory_mb * 1e6) : ""],
    ["git commit", snapshot?.git_commit ? `${snapshot.git_commit.slice(0, 8)}${snapshot.dirty ? " with changes" : ""}` : ""],
    ["launcher", run.launcher ?? ""],
    ["folder", run.run_dir ?? ""],
  ].filter(([, value]) => value);
}
