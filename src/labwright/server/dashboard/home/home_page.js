// The home page: what needs attention, running and waiting runs, recent failures, the machine.

import { counted } from "../format.js";
import { html } from "../view.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { chatAddress } from "../data/router.js";
import { isPerson } from "../data/session.js";
import { pendingAlerts } from "../data/store.js";
import { counts, useTitle } from "../data/window_title.js";
import { Icon } from "../ui/icon.js";
import { Message, Problem } from "../ui/message.js";
import { Alert } from "../work/alert.js";
import { Approval } from "../work/approval.js";
import { GoalBox } from "../work/goal_box.js";
import { Gpus } from "../work/gpus.js";
import { NewButton } from "../work/new_work.js";
import { PlanCard, PlanLine, needsAttention } from "../work/plan_line.js";
import { RunLines } from "../work/run_link.js";
import { SweepLine } from "../work/sweep_link.js";

const AT_MOST = 8;
const OPEN_PLANS = 100; // plans that need attention are among them
const SHORT_LIST = 5;
const runs = { refreshOn: eventTypes("run.status", "run.created", "run.deleted") };

export default function HomePage() {
  useTitle("Home");
  const active = useFetched("runs", { status: "running", limit: AT_MOST }, runs);
  const waiting = useFetched("runs", { status: "queued,launching,waiting", limit: AT_MOST, sort: "-priority" }, runs);
  const failed = useFetched("runs", { status: "failed,lost", limit: 5, sort: "-ended_at" }, runs);
  const sweeps = useFetched("sweeps", { limit: 50 }, { refreshOn: eventTypes("sweep.", "run.status") });
  const plans = useFetched(
    "plans",
    { status: "draft,approved,executing", limit: OPEN_PLANS },
    { refreshOn: eventTypes("plan.") },
  );
  const cluster = useFetched("cluster", {}, { refreshOn: eventTypes("cluster.", "run.status"), every: 5000 });
  const approvals = useFetched(
    isPerson() && "approvals",
    { status: "pending", limit: 20 },
    { refreshOn: eventTypes("approval.", "session.deleted") },
  );
  const requests = approvals.data ?? [];
  const openPlans = (plans.data ?? []).filter(needsAttention);
  if (active.problem && !active.data) return html`<${Problem} error=${active.problem} retry=${active.refresh} />`;
  if (!active.data || !waiting.data || !failed.data || !sweeps.data)
    return html`<div class="loading" aria-busy="true"></div>`;

  const going = sweeps.data.filter(({ status }) => status === "running" || status === "paused").slice(0, SHORT_LIST);
  const isNew =
    counts.value && !Object.values(counts.value).some(Boolean) && !sweeps.data.length && !plans.data?.length;
  return html`<div class="page home-page">
    <header class="page-head">
      <h1>Home</h1>
      <${Tally} items=${pendingAlerts.value.length + requests.length + openPlans.length} />
    </header>
    <${GoalBox} />
    ${
      isNew
        ? html`<${FirstSteps} />`
        : html`<div class="home-grid">
          <div class="home-main">
            <${NeedsAttention} approvals=${requests} plans=${openPlans} />
            <${Panel} title="Running" href="#/runs?show=active" empty="No running runs.">
              ${lines(active.data)}
            </${Panel}>
            <${Panel} title="Waiting" href="#/cluster" empty="No waiting runs.">
              ${lines(waiting.data, true)}
            </${Panel}>
            <${Panel} title="Recent failures" href="#/runs?show=failed" empty="No failed runs.">
              ${lines(failed.data, true)}
            </${Panel}>
          </div>
          <div class="home-side">
            <${Machine} cluster=${cluster.data} />
            <${Panel} title="Sweeps" href="#/sweeps" empty="No active sweeps.">
              ${
                going.length > 0 &&
                html`<ul class="lines">
                  ${going.map((sweep) => html`<${SweepLine} key=${sweep.id} sweep=${sweep} />`)}
                </ul>`
              }
            </${Panel}>
            <${Panel} title="Plans" href="#/plans" empty="No open plans.">
              ${
                plans.data?.length > 0 &&
                html`<ul class="lines">
                  ${plans.data.slice(0, SHORT_LIST).map((plan) => html`<${PlanLine} key=${plan.id} plan=${plan} />`)}
                </ul>`
              }
            </${Panel}>
          </div>
        </div>`
    }
  </div>`;
}

const lines = (found, reasons = false) => found.length > 0 && html`<${RunLines} runs=${found} reasons=${reasons} />`;

function Tally({ items }) {
  if (!counts.value) return null; // unknown yet
  const { running = 0, launching = 0, queued = 0, waiting = 0 } = counts.value;
  return html`<p class="tally muted">
    <strong class="num">${running}</strong> running · <strong class="num">${queued + launching + waiting}</strong>${" "}
    waiting · <strong class="num">${items}</strong> ${items === 1 ? "item needs" : "items need"} attention
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

function NeedsAttention({ approvals, plans }) {
  const open = pendingAlerts.value;
  if (!open.length && !approvals.length && !plans.length) return null;
  return html`<section class="panel alerts" aria-label="Needs attention">
    <header class="section-head">
      <h2>
        <a href="#/alerts">Needs attention</a>
      </h2>
    </header>
    ${approvals.map(
      (approval) =>
        html`<div class="stack" key=${approval.id}>
          <${Approval} approval=${approval} />
          <p class="small">
            <a href=${chatAddress(approval.session_id)}>Open conversation</a>
          </p>
        </div>`,
    )}
    ${plans.slice(0, SHORT_LIST).map((plan) => html`<${PlanCard} key=${plan.id} plan=${plan} />`)}
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
  const labels = {
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
        ${labels[cluster.type]} · ${cluster.cpu_count} cores · ${cluster.status}
      </span>
    </header>
    ${cluster.gpus.length > 0 && html`<${Gpus} gpus=${cluster.gpus} />`}
  </section>`;
}

const FirstSteps = () =>
  html`<${Message} icon="flask-conical" title="No runs yet">
    <p class="muted">Start a run in the project folder. It appears here at once.</p>
    <pre class="teach">labwright run -- python train.py</pre>
    <p class="muted">Start many runs from one command and its parameters:</p>
    <pre class="teach">labwright sweep sweep.yaml</pre>
    <div class="verbs">
      <${NewButton} name="run" />
      <${NewButton} name="sweep" />
    </div>
    <p>
      <a href="#/help">
        <${Icon} name="book-open" size="14" /> Help
      </a>
    </p>
  </${Message}>`;
