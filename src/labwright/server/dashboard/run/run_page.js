// The page of one run.

import { html, useEffect, useState } from "../view.js";
import { get, isAborted } from "../data/api.js";
import { useKeys } from "../data/keyboard.js";
import { go, planAddress, runAddress } from "../data/router.js";
import { isPerson } from "../data/session.js";
import { isTerminal, knownRun, loadRun, pendingAlerts, resync, watchRun } from "../data/store.js";
import { useTitle } from "../data/window_title.js";
import { Copy } from "../ui/copy.js";
import { Icon } from "../ui/icon.js";
import { Lazy, Problem } from "../ui/message.js";
import { Meter } from "../ui/meter.js";
import { Tabs } from "../ui/tabs.js";
import { Ago, Duration } from "../ui/time.js";
import { Actor } from "../work/actor.js";
import { Alert } from "../work/alert.js";
import { progressOf } from "../work/progress.js";
import { RunLink, LinkedRuns } from "../work/run_link.js";
import { reasonOf, Status } from "../work/status.js";
import { SweepLink } from "../work/sweep_link.js";
import { Artifacts } from "./artifacts.js";
import { Charts } from "./charts.js";
import { RunCode, RunDetails } from "./details.js";
import { RunEvents } from "./event_list.js";
import { Log } from "./log.js";
import { RunVerbs } from "./verbs.js";

const loadTerminal = () => import("./terminal.js");

export default function RunPage({ id }) {
  const [problem, setProblem] = useState(null);
  const connections = resync.value; // load again after a reconnect
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
  }, [id, connections]);
  useEffect(() => watchRun(id), [id]);
  useKeys({ Escape: () => go("#/runs") });

  const run = knownRun(id)?.value;
  useTitle(run ? `${run.name} · ${run.status}` : "Run");
  if (problem && !run) return html`<${Problem} error=${problem} />`;
  if (!run) return html`<div class="loading" aria-busy="true"></div>`;
  const tabs = [
    {
      name: "overview",
      label: "Overview",
      show: () =>
        html`<${Alerts} run=${run} />
        <${Charts} run=${run} />
        <${Log} run=${run} />`,
    },
    { name: "details", label: "Details", show: () => html`<${RunDetails} run=${run} />` },
    { name: "code", label: "Code", show: () => html`<${RunCode} run=${run} />` },
    { name: "artifacts", label: "Artifacts", show: () => html`<${Artifacts} run=${run} />` },
    { name: "events", label: "Events", show: () => html`<${RunEvents} run=${run} />` },
    run.status === "running" &&
      run.launcher === "local" &&
      isPerson() && {
        name: "terminal",
        label: "Terminal",
        show: () => html`<${Lazy} load=${loadTerminal} run=${run} />`,
      },
  ].filter(Boolean);
  return html`<div class="page run-page" key=${id}>
    <${Header} run=${run} />
    <${Tabs} tabs=${tabs} label="Run" />
  </div>`;
}

function Header({ run }) {
  const reason = reasonOf(run);
  const done = isTerminal(run) ? null : progressOf(run);
  return html`<header class="run-head">
    <a class="back" href="#/runs">
      <${Icon} name="arrow-left" size="14" />
      Runs
    </a>
    <div class="run-title">
      <h1 title=${run.name}>${run.name}</h1>
      <${Status} run=${run} />
      ${done !== null && html`<${Meter} value=${done} label="Progress" />`}
      <${RunVerbs} run=${run} />
    </div>
    ${
      (run.deleted || reason) &&
      html`<p class="run-reason run-reason-${run.status}">
        ${run.deleted ? "This run was deleted." : html`<${LinkedRuns} text=${reason} />`}
      </p>`
    }
    <dl class="facts">
      <${Fact} name="Id">
        <${Copy} text=${run.id} label="Copy id" />
      </${Fact}>
      ${
        run.started_at &&
        html`<${Fact} name="Duration">
          <${Duration} run=${run} />
        </${Fact}>`
      }
      <${Fact} name="Created">
        <${Ago} time=${run.created_at} /> by <${Actor} actor=${run.created_by} />
      </${Fact}>
      ${
        run.ended_at &&
        html`<${Fact} name="Ended">
          <${Ago} time=${run.ended_at} />
        </${Fact}>`
      }
      ${
        run.exit_code !== null &&
        html`<${Fact} name="Exit code">
          <span class="num">${run.exit_code}</span>
        </${Fact}>`
      }
      ${
        run.gpu_uuids.length > 0 &&
        html`<${Fact} name="GPUs">
          <span title=${run.gpu_uuids.join(", ")}>${run.gpu_uuids.length}</span>
        </${Fact}>`
      }
      ${run.attempt > 1 && html`<${Fact} name="Attempt">${run.attempt}</${Fact}>`}
      ${run.node && html`<${Fact} name="Node">${run.node}</${Fact}>`}
      ${
        run.sweep_id &&
        html`<${Fact} name="Sweep">
          <${SweepLink} id=${run.sweep_id} />
        </${Fact}>`
      }
      ${
        run.parent_run_id &&
        html`<${Fact} name="Rerun of">
          <${RunLink} id=${run.parent_run_id} />
        </${Fact}>`
      }
      ${
        run.plan_id &&
        html`<${Fact} name="Plan">
          <a href=${planAddress(run.plan_id)}>${run.plan_id}</a>
        </${Fact}>`
      }
      ${
        run.tags.length > 0 &&
        html`<${Fact} name="Tags">
          ${run.tags.map(
            (tag) =>
              html`<a class="tag" key=${tag} href="#/runs?tag=${encodeURIComponent(tag)}">
                ${tag}
              </a>${" "}`,
          )}
        </${Fact}>`
      }
      ${run.archived && html`<${Fact} name="Archived">yes</${Fact}>`}
    </dl>
  </header>`;
}

const Fact = ({ name, children }) =>
  html`<div>
    <dt>${name}</dt>
    <dd>${children}</dd>
  </div>`;

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
    ${
      answered.length > 0 &&
      html`<details>
        <summary class="muted">
          ${answered.length} answered ${answered.length === 1 ? "alert" : "alerts"}
        </summary>
        ${answered.map((alert) => html`<${Alert} key=${alert.id} alert=${alert} />`)}
      </details>`
    }
  </section>`;
}
