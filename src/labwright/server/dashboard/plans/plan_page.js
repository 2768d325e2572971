// The page of one plan: review, document, workflow, files, versions, report.

import { counted } from "../format.js";
import { html } from "../view.js";
import { PlanReview } from "./review.js";
import { useFetched } from "../data/fetched.js";
import { useKeys } from "../data/keyboard.js";
import { go } from "../data/router.js";
import { useTitle } from "../data/window_title.js";
import { Copy } from "../ui/copy.js";
import { Icon } from "../ui/icon.js";
import { Problem } from "../ui/message.js";
import { Tabs } from "../ui/tabs.js";
import { Ago } from "../ui/time.js";
import { Actor } from "../work/actor.js";
import { StatusLabel } from "../work/status.js";
import { PlanDocument } from "./document.js";
import { PlanFiles } from "./files.js";
import { PlanGraph } from "./graph.js";
import { PlanReport } from "./report.js";
import { PlanVerbs } from "./verbs.js";
import { PlanVersions } from "./versions.js";

export default function PlanPage({ id }) {
  const path = `plans/${encodeURIComponent(id)}`;
  const { data: plan, problem, refresh } = useFetched(path, {}, { refreshOn: (event) => event.data.plan_id === id });
  useKeys({ Escape: () => go("#/plans") });
  useTitle(plan?.title ?? "Plan");
  if (problem && !plan) return html`<${Problem} error=${problem} />`;
  if (!plan) return html`<div class="loading" aria-busy="true"></div>`;
  return html`<${Plan} plan=${plan} path=${path} refresh=${refresh} />`;
}

function Plan({ plan, path, refresh }) {
  const made = plan.planning; // undefined until the plan is compiled
  const workspace = useFetched(
    made && !plan.compiling_by && `${path}/workspace`,
    {},
    { refreshOn: (event) => event.data.plan_id === plan.id },
  );
  const hasGraph = made?.progress.some(({ node, status }) => /IR/i.test(node) && status === "finished");
  const tabs = [
    made && {
      name: "review",
      label: "Review",
      show: () => html`<${PlanReview} plan=${plan} workspace=${workspace} refresh=${refresh} />`,
    },
    { name: "document", label: "Document", show: () => html`<${PlanDocument} plan=${plan} refresh=${refresh} />` },
    hasGraph && { name: "workflow", label: "Workflow", show: () => html`<${PlanGraph} plan=${plan} />` },
    made && {
      name: "files",
      label: "Code and tests",
      show: () => html`<${PlanFiles} plan=${plan} refresh=${refresh} />`,
    },
    { name: "versions", label: "Versions", show: () => html`<${PlanVersions} plan=${plan} />` },
    made &&
      made.steps.length > 0 && {
        name: "report",
        label: "Report",
        show: () => html`<${PlanReport} plan=${plan} workspace=${workspace.data} />`,
      },
  ].filter(Boolean);
  return html`<div class="page run-page">
    <${Header} plan=${plan} workspace=${workspace.data} refresh=${refresh} />
    <${Tabs} tabs=${tabs} label="Plan" />
  </div>`;
}

function Header({ plan, workspace, refresh }) {
  return html`<header class="run-head">
    <a class="back" href="#/plans">
      <${Icon} name="arrow-left" size="14" />
      Plans
    </a>
    <div class="run-title">
      <h1 title=${plan.title}>${plan.title}</h1>
      <${StatusLabel} status=${plan.status} reason=${plan.status_reason} />
      <${PlanVerbs} plan=${plan} refresh=${refresh} />
    </div>
    ${plan.status_reason && html`<p class="run-reason run-reason-${plan.status}">${plan.status_reason}</p>`}
    ${plan.planning && html`<${Lights} planning=${plan.planning} workspace=${workspace} />`}
    <dl class="facts">
      <div>
        <dt>Id</dt>
        <dd>
          <${Copy} text=${plan.id} label="Copy id" />
        </dd>
      </div>
      <div>
        <dt>Version</dt>
        <dd class="num">${plan.version}</dd>
      </div>
      <div>
        <dt>Format</dt>
        <dd>
          ${
            !plan.raw_markdown
              ? "no document"
              : plan.format.valid
                ? "valid"
                : counted(plan.format.errors.length, "error")
          }
        </dd>
      </div>
      <div>
        <dt>Created</dt>
        <dd>
          <${Ago} time=${plan.created_at} /> by <${Actor} actor=${plan.created_by} />
        </dd>
      </div>
      <div>
        <dt>Updated</dt>
        <dd>
          <${Ago} time=${plan.updated_at} />
        </dd>
      </div>
      ${
        plan.planning?.model &&
        html`<div>
          <dt>Planned by</dt>
          <dd>${plan.planning.model}</dd>
        </div>`
      }
    </dl>
  </header>`;
}

// Three separate facts. A fact about older files is shown as outdated.
function Lights({ planning, workspace }) {
  const approvalIsOld = workspace?.changed_since_approval.length > 0;
  const lights = [
    ["validated", planning.validated, workspace?.changed_since_validation.length > 0],
    ["approved", planning.approved, approvalIsOld],
    ["ready to run", planning.ready_for_run && !approvalIsOld, false],
  ];
  return html`<ul class="lights">
    ${lights.map(
      ([label, on, isOld]) =>
        html`<${Light} key=${label} label=${label} state=${on ? (isOld ? "stale" : "on") : "off"} />`,
    )}
  </ul>`;
}

const LIGHT_ICONS = { on: "circle-check", stale: "triangle-alert", off: "circle-dashed" };

const Light = ({ label, state }) =>
  html`<li class="light light-${state}">
    <${Icon} name=${LIGHT_ICONS[state]} size="14" />
    ${label}
    ${state === "stale" ? " (outdated)" : html`<span class="hidden">: ${state === "on" ? "yes" : "no"}</span>`}
  </li>`;
