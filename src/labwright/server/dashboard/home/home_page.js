// What is running, waiting, broken and waiting for an answer, on one page.

import { useFetched, wakesOn } from "../data/fetched.js";
import { chatAddress } from "../data/router.js";
import { isPerson } from "../data/session.js";
import { pendingAlerts } from "../data/store.js";
import { counts, useTitle } from "../data/window_title.js";
import { counted } from "../format.js";
import { html } from "../view.js";
import { Icon } from "../ui/icon.js";
import { Message, Problem } from "../ui/message.js";
import { Alert } from "../work/alert.js";
import { Approval } from "../work/approval.js";
import { GoalBox } from "../work/goal_box.js";
import { Gpus } from "../work/gpus.js";
import { NewButton } from "../work/new_work.js";
import { PlanAsks, PlanLine, waitsForSomebody } from "../work/plan_line.js";
import { RunLines } from "../work/run_link.js";
import { SweepLine } from "../work/sweep_link.js";

const AT_MOST = 8;
const OPEN_PLANS = 100; // those that ask are among them
const FEW = 5;
const runs = { wakes: wakesOn("run.status", "run.created", "run.deleted") };

export default function HomePage() {
  useTitle("Home");
  const active = useFetched("runs", { status: "running", limit: AT_MOST }, runs);
  const waiting = useFetched("runs", { status: "queued,launching,waiting", limit: AT_MOST, sort: "-priority" }, runs);
  const broken = useFetched("runs", { status: "failed,lost", limit: 5, sort: "-ended_at" }, runs);
  const sweeps = useFetched("sweeps", { limit: 50 }, { wakes: wakesOn("sweep.", "run.status") });
  const plans = useFetched(
    "plans",
    { status: "draft,approved,executing", limit: OPEN_PLANS },
    { wakes: wakesOn("plan.") },
  );
  const cluster = useFetched("cluster", {}, { wakes: wakesOn("cluster.", "run.status"), every: 5000 });
  const approvals = useFetched(
    isPerson() && "approvals",
    { status: "pending", limit: 20 },
    { wakes: wakesOn("approval.", "session.deleted") },
  );
  const asked = approvals.data ?? [];
  const unclear = (plans.data ?? []).filter(waitsForSomebody);
  if (active.problem && !active.data) return html`<${Problem} error=${active.problem} retry=${active.refresh} />`;
  if (!active.data || !waiting.data || !broken.data || !sweeps.data)
    return html`<div class="loading" aria-busy="true"></div>`;

  const going = sweeps.data.filter(({ status }) => status === "running" || status === "paused").slice(0, FEW);
  const isNew =
    counts.value && !Object.values(counts.value).some(Boolean) && !sweeps.data.length && !plans.data?.length;
  return html`<div class="page home-page">
    <header class="page-head">
      <h1>Home</h1>
      <${Tally} questions=${pendingAlerts.value.length + asked.length + unclear.length} />
    </header>
    <${GoalBox} />
    ${
      isNew
        ? html`<${FirstSteps} />`
        : html`<div class="home-grid">
          <div class="home-main">
            <${NeedsYou} approvals=${asked} plans=${unclear} />
            <${Panel} title="Running" href="#/runs?show=active" empty="Nothing runs.">
              ${lines(active.data)}
            </${Panel}>
            <${Panel} title="Waiting" href="#/cluster" empty="Nothing waits.">
              ${lines(waiting.data, true)}
            </${Panel}>
            <${Panel} title="Broken last" href="#/runs?show=failed" empty="Nothing is broken.">
              ${lines(broken.data, true)}
            </${Panel}>
          </div>
          <div class="home-side">
            <${Machine} cluster=${cluster.data} />
            <${Panel} title="Sweeps" href="#/sweeps" empty="No sweep is going.">
              ${
                going.length > 0 &&
                html`<ul class="lines">
                  ${going.map((sweep) => html`<${SweepLine} key=${sweep.id} sweep=${sweep} />`)}
                </ul>`
              }
            </${Panel}>
            <${Panel} title="Plans" href="#/plans" empty="No plan is open.">
              ${
                plans.data?.length > 0 &&
                html`<ul class="lines">
                  ${plans.data.slice(0, FEW).map((plan) => html`<${PlanLine} key=${plan.id} plan=${plan} />`)}
                </ul>`
              }
            </${Panel}>
          </div>
        </div>`
    }
  </div>`;
}

const lines = (found, reasons = false) => found.length > 0 && html`<${RunLines} runs=${found} reasons=${reasons} />`;

function Tally({ questions }) {
  if (!counts.value) return null; // no number is better than one that is not known
  const { running = 0, launching = 0, queued = 0, waiting = 0 } = counts.value;
  return html`<p class="tally muted">
    <strong class="num">${running}</strong> running · <strong class="num">${queued + launching + waiting}</strong>${" "}
    waiting · <strong class="num">${questions}</strong> ${questions === 1 ? "question" : "questions"} for you
  </p>`;
}

const Panel = ({ title, href, empty, children }) =>
  html`<section class="panel" aria-label=${title}>
    <header class="section-head">
      <h2>
        <a href=${href}>${title}</a>
      </h2>
    </header>
    ${children || html`<p class="muted">${empty}</p>`}
  </section>`;

function NeedsYou({ approvals, plans }) {
  const open = pendingAlerts.value;
  if (!open.length && !approvals.length && !plans.length) return null;
  return html`<section class="panel alerts" aria-label="Needs you">
    <header class="section-head">
      <h2>
        <a href="#/alerts">Needs you</a>
      </h2>
    </header>
    ${approvals.map(
      (approval) =>
        html`<div class="stack" key=${approval.id}>
          <${Approval} approval=${approval} />
          <p class="small">
            <a href=${chatAddress(approval.session_id)}>The conversation that asks</a>
          </p>
        </div>`,
    )}
    ${plans.slice(0, FEW).map((plan) => html`<${PlanAsks} key=${plan.id} plan=${plan} />`)}
    ${open.slice(0, 3).map((alert) => html`<${Alert} key=${alert.id} alert=${alert} withRun />`)}
    ${
      open.length > 3 &&
      html`<p>
        <a href="#/alerts">${open.length - 3} more</a>
      </p>`
    }
  </section>`;
}

function Machine({ cluster: found }) {
  if (!found) return null;
  const { cluster } = found;
  const words = {
    cpu_only: "no GPU",
    local_gpu: counted(cluster.gpu_count, "GPU"),
    slurm: `Slurm, ${counted(cluster.node_count, "node")}`,
  };
  return html`<section class="panel" aria-label="Machine">
    <header class="section-head">
      <h2>
        <a href="#/cluster">Machine</a>
      </h2>
      <span class="muted">
        ${words[cluster.type]} · ${cluster.cpu_count} cores · ${cluster.status}
      </span>
    </header>
    ${cluster.gpus.length > 0 && html`<${Gpus} gpus=${cluster.gpus} />`}
  </section>`;
}

const FirstSteps = () =>
  html`<${Message} icon="flask-conical" title="Nothing here yet">
    <p class="muted">Start a run in this project's folder. It shows up here at once.</p>
    <pre class="teach">labwright run -- python train.py</pre>
    <p class="muted">Many at a time, from one command and its parameters:</p>
    <pre class="teach">labwright sweep sweep.yaml</pre>
    <div class="verbs">
      <${NewButton} name="run" />
      <${NewButton} name="sweep" />
    </div>
    <p>
      <a href="#/help">
        <${Icon} name="book-open" size="14" /> What else there is
      </a>
    </p>
  </${Message}>`;
